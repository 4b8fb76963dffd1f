//! Calls for the workspace and the built-in tools.

use serde_json::Value;

use super::Client;
use super::error::ClientError;
use crate::proto;
use crate::proto::__buffa::view;

/// Rights that a caller grants to a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGrants {
    pub tools: Vec<String>,
    /// Globs of readable files, relative to the workspace.
    pub read: Vec<String>,
    /// Globs of writable files, relative to the workspace.
    pub write: Vec<String>,
}

impl Client {
    /// Reads a byte range of a file. A limit of 0 is the engine's default of 64 kB.
    pub async fn read_file(&self, path: &str, offset: u64, limit: u32) -> Result<proto::ReadFileResponse, ClientError> {
        let request = proto::ReadFileRequest { path: path.to_owned(), offset, limit, ..Default::default() };
        self.call::<_, view::ReadFileResponseView<'static>, _>(proto::WORKSPACE_SERVICE_READ_FILE_SPEC, request).await
    }

    /// Lists the entries of a directory after a name. A limit of 0 is the engine's default of 1,000.
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

    /// Evaluates policy for a hypothetical action.
    pub async fn explain_policy(
        &self,
        request: proto::ExplainPolicyRequest,
    ) -> Result<proto::ExplainPolicyResponse, ClientError> {
        let spec = proto::WORKSPACE_SERVICE_EXPLAIN_POLICY_SPEC;
        self.call::<_, view::ExplainPolicyResponseView<'static>, _>(spec, request).await
    }

    /// Returns the state of the git repository. `prefix` is the prefix of task branches; `None` as configured.
    pub async fn get_branch(&self, prefix: Option<&str>) -> Result<proto::GetBranchResponse, ClientError> {
        let request = proto::GetBranchRequest { prefix: prefix.map(str::to_owned), ..Default::default() };
        self.call::<_, view::GetBranchResponseView<'static>, _>(proto::WORKSPACE_SERVICE_GET_BRANCH_SPEC, request).await
    }

    /// Returns the effect of [`Client::check_out_branch`].
    pub async fn plan_branch(&self, task: proto::BranchTask) -> Result<proto::PlanBranchResponse, ClientError> {
        let request = proto::PlanBranchRequest { task: Some(task).into(), ..Default::default() };
        self.call::<_, view::PlanBranchResponseView<'static>, _>(proto::WORKSPACE_SERVICE_PLAN_BRANCH_SPEC, request)
            .await
    }

    /// Creates the branch of a task, or switches to it.
    pub async fn check_out_branch(
        &self,
        task: proto::BranchTask,
    ) -> Result<proto::CheckOutBranchResponse, ClientError> {
        let request = proto::CheckOutBranchRequest { task: Some(task).into(), ..Default::default() };
        let spec = proto::WORKSPACE_SERVICE_CHECK_OUT_BRANCH_SPEC;
        self.call::<_, view::CheckOutBranchResponseView<'static>, _>(spec, request).await
    }

    /// Lists the built-in tools by name.
    pub async fn list_tools(&self) -> Result<Vec<proto::Tool>, ClientError> {
        let request = proto::ListToolsRequest::default();
        let response = self
            .call::<_, view::ListToolsResponseView<'static>, _>(proto::TOOL_SERVICE_LIST_TOOLS_SPEC, request)
            .await?;
        Ok(response.tools)
    }

    /// Runs a built-in tool. `None` grants everything that policy allows.
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
        let response =
            self.call::<_, view::RunToolResponseView<'static>, _>(proto::TOOL_SERVICE_RUN_TOOL_SPEC, request).await?;
        serde_json::from_str(&response.result_json).map_err(ClientError::bad)
    }
}
