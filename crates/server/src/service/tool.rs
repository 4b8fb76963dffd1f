//! `ToolService`: built-in tools under policy.

use std::sync::{Arc, OnceLock};

use connectrpc::{PreEncoded, RequestContext, Response, ServiceRequest, ServiceResult};
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_gate::Submission;
use sayso_review::{ErrorKind, Grants, Intent, Origin, PathGlobs, Ruling};
use sayso_tools::{Context, Registry};
use serde_json::Value;

use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::{Host, blocking};

#[derive(Clone, Debug)]
pub(crate) struct Tools(pub(crate) Arc<Host>);

impl proto::ToolService for Tools {
    async fn list_tools(
        &self,
        _: RequestContext,
        _: ServiceRequest<'_, proto::ListToolsRequest>,
    ) -> ServiceResult<PreEncoded<proto::ListToolsResponse>> {
        // Encoded once: the list is constant.
        static LIST: OnceLock<PreEncoded<proto::ListToolsResponse>> = OnceLock::new();
        Response::ok(LIST.get_or_init(|| PreEncoded::from_message(&list())).clone())
    }

    async fn run_tool(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::RunToolRequest>,
    ) -> ServiceResult<proto::RunToolResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let result = blocking(&self.0, move |host| run(host, peer, request)).await?;
        Response::ok(proto::RunToolResponse { result_json: super::json(&result), ..Default::default() })
    }
}

fn list() -> proto::ListToolsResponse {
    let tool = |description: sayso_tools::Description| proto::Tool {
        name: description.name.to_owned(),
        description: description.description.to_owned(),
        schema_json: super::json(&description.schema),
        needs_json: super::json(&description.needs),
        ..Default::default()
    };
    let tools = Registry::builtin().descriptions().map(tool).collect();
    proto::ListToolsResponse { tools, ..Default::default() }
}

fn run(host: &Host, peer: Option<Peer>, request: proto::RunToolRequest) -> Result<Value, Failure> {
    let bad = |field: &str, reason: String| Failure::from(BadMessage::new(field, reason));
    let arguments: Value = serde_json::from_str(&request.arguments_json)
        .map_err(|error| bad("arguments_json", format!("cannot parse it as JSON: {error}")))?;
    let globs = |field: &str, patterns: &[String]| {
        PathGlobs::new(patterns.iter().map(String::as_str)).map_err(|error| bad(field, error.to_string()))
    };
    let has_grants = request.grants.is_set();
    let everything = vec!["**".to_owned()];
    let grants = match request.grants.into_option() {
        Some(grants) => Grants {
            tools: grants.tools.into_iter().collect(),
            read: globs("grants.read", &grants.read)?,
            write: globs("grants.write", &grants.write)?,
        },
        None => Grants {
            tools: [request.name.clone()].into(),
            read: globs("grants.read", &everything)?,
            write: globs("grants.write", &everything)?,
        },
    };
    host.refresh()?;
    // Policy applies in addition to the grants.
    let intent = Intent::CallTool { name: request.name.clone(), arguments: arguments.clone() };
    let mut origin = Origin::default();
    host.authorize_origin(peer, &mut origin)?;
    let assessment = host.gate.assess(Submission::new(intent, origin))?;
    // An explicit grant of a person replaces the question that policy would ask.
    let strictest =
        if has_grants && Peer::require_decider(peer, &host.agents).is_ok() { Ruling::Ask } else { Ruling::Later };
    if assessment.ruled.ruling > strictest {
        let (ruling, rule) = (assessment.ruled.ruling, assessment.ruled.rule.short_name());
        return Err(Failure::new(ErrorKind::ToolDenied, format!("policy rules `{ruling}` for this call: {rule}"))
            .hint("submit it as an intent for a person to decide, or run `sayso policy explain tool`"));
    }
    Ok(Registry::builtin().run(&request.name, &arguments, &Context::new(&host.workspace, &grants))?)
}
