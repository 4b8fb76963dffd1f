//! The workspace itself, and the built-in tools.

use serde_json::Value;

use super::Client;
use super::error::ClientError;
use crate::proto;
use crate::proto::__buffa::view;

/// What a caller grants a tool, as patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGrants {
    /// Tools by name.
    pub tools: Vec<String>,
    /// Files that may be read, as patterns from the root of the workspace.
    pub read: Vec<String>,
    /// Files that may be written.
    pub write: Vec<String>,
}

impl Client {
    /// Reads a part of a file.
    pub async fn read_file(&self, path: &str, offset: u64, limit: u32) -> Result<proto::ReadFileResponse, ClientError> {
        let request = proto::ReadFileRequest { path: path.to_owned(), offset, limit, ..Default::default() };
        self.call::<_, view::ReadFileResponseView<'static>, _>(proto::WORKSPACE_SERVICE_READ_FILE_SPEC, request).await
    }

    /// Lists a directory, from after a name on.
    pub async fn list_directory(
        &self,
        path: &str,
        limit: u32,
        after: Option<&str>,
    ) -> Result<proto::ListDirectoryResponse, ClientError> {
        let (path, after) = (path.to_owned(), after.map(str::to_owned));
        let request = proto::ListDirectoryRequest { path, limit, after, ..Default::default() };
        let spec = proto::WORKSPACE_SERVICE_LIST_DIRECTORY_SPEC;
        self.call::<_, view::ListDirectoryResponseView<'static>, _>(spec, request).await
    }

    /// What policy says to something, and why.
    pub async fn explain_policy(
        &self,
        request: proto::ExplainPolicyRequest,
    ) -> Result<proto::ExplainPolicyResponse, ClientError> {
        let spec = proto::WORKSPACE_SERVICE_EXPLAIN_POLICY_SPEC;
        self.call::<_, view::ExplainPolicyResponseView<'static>, _>(spec, request).await
    }

    /// How the workspace's git repository stands, where names of tasks' branches begin like this; as configured, if not said.
    pub async fn get_branch(&self, prefix: Option<&str>) -> Result<proto::GetBranchResponse, ClientError> {
        let request = proto::GetBranchRequest { prefix: prefix.map(str::to_owned), ..Default::default() };
        self.call::<_, view::GetBranchResponseView<'static>, _>(proto::WORKSPACE_SERVICE_GET_BRANCH_SPEC, request).await
    }

    /// What taking up a task's branch would do.
    pub async fn plan_branch(&self, task: proto::BranchTask) -> Result<proto::PlanBranchResponse, ClientError> {
        let request = proto::PlanBranchRequest { task: Some(task).into(), ..Default::default() };
        self.call::<_, view::PlanBranchResponseView<'static>, _>(proto::WORKSPACE_SERVICE_PLAN_BRANCH_SPEC, request)
            .await
    }

    /// Makes a task's branch, or goes to it.
    pub async fn take_up_branch(&self, task: proto::BranchTask) -> Result<proto::TakeUpBranchResponse, ClientError> {
        let request = proto::TakeUpBranchRequest { task: Some(task).into(), ..Default::default() };
        let spec = proto::WORKSPACE_SERVICE_TAKE_UP_BRANCH_SPEC;
        self.call::<_, view::TakeUpBranchResponseView<'static>, _>(spec, request).await
    }

    /// The built-in tools.
    pub async fn list_tools(&self) -> Result<Vec<proto::Tool>, ClientError> {
        let request = proto::ListToolsRequest::default();
        let answer = self
            .call::<_, view::ListToolsResponseView<'static>, _>(proto::TOOL_SERVICE_LIST_TOOLS_SPEC, request)
            .await?;
        Ok(answer.tools)
    }

    /// Runs a built-in tool with what is granted here; with all that policy allows, if that is not said.
    pub async fn run_tool(
        &self,
        name: &str,
        arguments: &Value,
        grants: Option<ToolGrants>,
    ) -> Result<Value, ClientError> {
        let grants = grants.map(|ToolGrants { tools, read, write }| proto::run_tool_request::Grants {
            tools,
            read,
            write,
            ..Default::default()
        });
        let request = proto::RunToolRequest {
            name: name.to_owned(),
            arguments_json: arguments.to_string(),
            grants: grants.into(),
            ..Default::default()
        };
        let answer =
            self.call::<_, view::RunToolResponseView<'static>, _>(proto::TOOL_SERVICE_RUN_TOOL_SPEC, request).await?;
        serde_json::from_str(&answer.result_json).map_err(ClientError::bad)
    }
}
