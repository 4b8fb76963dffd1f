//! Calls about requests to models: lists, sections, edits, modes, saved edits and costs.

use sayso_review::{RequestId, RequestMode};
use sayso_wire::{Edit, Scope};

use super::Client;
use super::error::ClientError;
use super::responses::{decode, decode_all, required};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::replay_request_request::Form;
use crate::request::{
    BodyOf, DetailQuery, EditEffects, EditOptions, HeldFate, ModeResult, ModeState, ReplayOf, ReplayResult,
    RequestCosts, RequestDetails, RequestDiff, RequestModes, RequestQuery, RequestSummary, ResumeResult, SaveResult,
    SavedEdit, SubagentQuery, SubagentRuns,
};

/// Bytes of a body per call.
const BODY_PART_BYTES: u32 = 4 << 20;

fn scope(scope: Option<Scope>) -> proto::OverrideScope {
    scope.map(proto::OverrideScope::from).unwrap_or_default()
}

impl Client {
    /// Lists requests, newest first; held requests, oldest first.
    pub async fn list_requests(&self, query: &RequestQuery) -> Result<Vec<RequestSummary>, ClientError> {
        let request = proto::ListRequestsRequest {
            held: query.held,
            session: query.session.clone(),
            before: query.before,
            limit: query.limit,
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_LIST_REQUESTS_SPEC;
        let response = self.call::<_, view::ListRequestsResponseView<'static>, _>(spec, request).await?;
        decode_all(response.requests)
    }

    /// Returns a request in sections.
    pub async fn show_request(&self, request: RequestId, query: &DetailQuery) -> Result<RequestDetails, ClientError> {
        let request = proto::ShowRequestRequest {
            request,
            content_limit: query.content_limit,
            path: query.path.clone(),
            values: query.values,
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_SHOW_REQUEST_SPEC;
        decode(self.call::<_, view::ShowRequestResponseView<'static>, _>(spec, request).await?)
    }

    /// Edits a held request.
    pub async fn edit_request(
        &self,
        request: RequestId,
        edit: &Edit,
        options: EditOptions,
    ) -> Result<EditEffects, ClientError> {
        let request = proto::EditRequestRequest {
            request,
            edit: Some(edit.into()),
            save_scope: scope(options.save_scope).into(),
            revision: options.revision,
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_EDIT_REQUEST_SPEC;
        decode(self.call::<_, view::EditRequestResponseView<'static>, _>(spec, request).await?)
    }

    /// Compares a request with the received one. `None` is the engine's default of 3 lines of context.
    pub async fn diff_request(&self, request: RequestId, context: Option<u32>) -> Result<RequestDiff, ClientError> {
        let request = proto::DiffRequestRequest { request, context, ..Default::default() };
        let spec = proto::REQUEST_SERVICE_DIFF_REQUEST_SPEC;
        decode(self.call::<_, view::DiffRequestResponseView<'static>, _>(spec, request).await?)
    }

    /// Forwards a held request with its edits. With a revision, fails with STALE if the request has another one.
    pub async fn resume_request(&self, request: RequestId, revision: Option<u64>) -> Result<ResumeResult, ClientError> {
        let request = proto::ResumeRequestRequest { request, revision, ..Default::default() };
        let spec = proto::REQUEST_SERVICE_RESUME_REQUEST_SPEC;
        decode(self.call::<_, view::ResumeRequestResponseView<'static>, _>(spec, request).await?)
    }

    /// Cancels a request that is held or being retried.
    pub async fn cancel_request(&self, request: RequestId) -> Result<(), ClientError> {
        let request = proto::CancelRequestRequest { request, ..Default::default() };
        let spec = proto::REQUEST_SERVICE_CANCEL_REQUEST_SPEC;
        self.call::<_, view::CancelRequestResponseView<'static>, _>(spec, request).await.map(|_| ())
    }

    /// Returns the default mode and the mode of each session.
    pub async fn request_modes(&self) -> Result<RequestModes, ClientError> {
        let spec = proto::REQUEST_SERVICE_GET_MODES_SPEC;
        let request = proto::GetModesRequest::default();
        decode(self.call::<_, view::GetModesResponseView<'static>, _>(spec, request).await?)
    }

    /// Sets the mode for new requests of a session. Without a session, sets the default mode; without a mode, removes the session's own
    /// one.
    pub async fn set_request_mode(
        &self,
        session: Option<&str>,
        mode: Option<RequestMode>,
        held: HeldFate,
    ) -> Result<ModeResult, ClientError> {
        let request = proto::SetModeRequest {
            session: session.map(str::to_owned),
            mode: mode.map(proto::RequestMode::from).unwrap_or_default().into(),
            held_requests: proto::HeldRequests::from(held).into(),
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_SET_MODE_SPEC;
        decode(self.call::<_, view::SetModeResponseView<'static>, _>(spec, request).await?)
    }

    /// Pauses the next turn of a session, or of any session, once. Returns the state afterwards.
    pub async fn pause_next(&self, session: Option<&str>) -> Result<ModeState, ClientError> {
        let request = proto::PauseNextRequest { session: session.map(str::to_owned), ..Default::default() };
        let spec = proto::REQUEST_SERVICE_PAUSE_NEXT_SPEC;
        let response = self.call::<_, view::PauseNextResponseView<'static>, _>(spec, request).await?;
        decode(required::<proto::ModeState>(response.state, "state")?)
    }

    /// Pauses the next turn of a session, or of any session, and saves its edits when it is resumed. Returns the state afterwards.
    pub async fn capture_next(&self, session: Option<&str>) -> Result<ModeState, ClientError> {
        let request = proto::CaptureNextRequest { session: session.map(str::to_owned), ..Default::default() };
        let spec = proto::REQUEST_SERVICE_CAPTURE_NEXT_SPEC;
        let response = self.call::<_, view::CaptureNextResponseView<'static>, _>(spec, request).await?;
        decode(required::<proto::ModeState>(response.state, "state")?)
    }

    /// Lists the saved edits that apply to a session, or all, widest scope first.
    pub async fn list_overrides(&self, session: Option<&str>) -> Result<Vec<SavedEdit>, ClientError> {
        let request = proto::ListOverridesRequest { session: session.map(str::to_owned), ..Default::default() };
        let spec = proto::REQUEST_SERVICE_LIST_OVERRIDES_SPEC;
        let response = self.call::<_, view::ListOverridesResponseView<'static>, _>(spec, request).await?;
        decode_all(response.overrides)
    }

    /// Saves the edits of a held request for new requests. `None` is the configured scope.
    pub async fn save_overrides(
        &self,
        request: RequestId,
        save_scope: Option<Scope>,
    ) -> Result<SaveResult, ClientError> {
        let request = proto::SaveOverridesRequest { request, scope: scope(save_scope).into(), ..Default::default() };
        let spec = proto::REQUEST_SERVICE_SAVE_OVERRIDES_SPEC;
        decode(self.call::<_, view::SaveOverridesResponseView<'static>, _>(spec, request).await?)
    }

    /// Removes the saved edits of a scope. [`Scope::Session`] needs a session. Returns the number of removed edits.
    pub async fn remove_overrides(&self, from: Scope, session: Option<&str>) -> Result<u64, ClientError> {
        let request = proto::RemoveOverridesRequest {
            scope: scope(Some(from)).into(),
            session: session.map(str::to_owned),
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_REMOVE_OVERRIDES_SPEC;
        let response = self.call::<_, view::RemoveOverridesResponseView<'static>, _>(spec, request).await?;
        Ok(response.removed)
    }

    /// Lists the latest runs of subagents, newest first.
    pub async fn list_subagents(&self, query: &SubagentQuery) -> Result<SubagentRuns, ClientError> {
        let request = proto::ListSubagentsRequest {
            request: query.request,
            session: query.session.clone(),
            content_limit: query.content_limit,
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_LIST_SUBAGENTS_SPEC;
        decode(self.call::<_, view::ListSubagentsResponseView<'static>, _>(spec, request).await?)
    }

    /// Sends a recorded request again and compares the responses.
    pub async fn replay_request(&self, request: RequestId, body: ReplayOf) -> Result<ReplayResult, ClientError> {
        let request = proto::ReplayRequestRequest { request, form: Form::from(body).into(), ..Default::default() };
        let spec = proto::REQUEST_SERVICE_REPLAY_REQUEST_SPEC;
        decode(self.call::<_, view::ReplayRequestResponseView<'static>, _>(spec, request).await?)
    }

    /// Sums the cost of the requests of a session, or of all, since a time in milliseconds since 1970.
    pub async fn request_costs(&self, session: Option<&str>, since: i64) -> Result<RequestCosts, ClientError> {
        let session = session.map(str::to_owned);
        let request = proto::GetCostRequest { session, since_ms: since, ..Default::default() };
        let spec = proto::REQUEST_SERVICE_GET_COST_SPEC;
        decode(self.call::<_, view::GetCostResponseView<'static>, _>(spec, request).await?)
    }

    /// Returns a whole body with masked credentials.
    pub async fn request_body(&self, request: RequestId, body: BodyOf) -> Result<Vec<u8>, ClientError> {
        let template =
            proto::GetRequestBodyRequest { request, body: proto::RequestBody::from(body).into(), ..Default::default() };
        self.whole_body(template).await
    }

    /// Returns the body that a held request would be sent with, credentials included, for an editor.
    pub async fn exact_request_body(&self, request: RequestId) -> Result<Vec<u8>, ClientError> {
        let body = proto::RequestBody::AsSent.into();
        self.whole_body(proto::GetRequestBodyRequest { request, body, exact: true, ..Default::default() }).await
    }

    /// Reads a body part by part.
    async fn whole_body(&self, template: proto::GetRequestBodyRequest) -> Result<Vec<u8>, ClientError> {
        let spec = proto::REQUEST_SERVICE_GET_REQUEST_BODY_SPEC;
        let mut bytes = Vec::new();
        let mut size = None;
        loop {
            let request =
                proto::GetRequestBodyRequest { offset: bytes.len() as u64, limit: BODY_PART_BYTES, ..template.clone() };
            let part = self.call::<_, view::GetRequestBodyResponseView<'static>, _>(spec, request).await?;
            if *size.get_or_insert(part.size) != part.size {
                let number = template.request;
                return Err(ClientError::bad(format!("the body of request {number} changed between two reads")));
            }
            bytes.extend_from_slice(&part.content);
            if !part.has_more || part.content.is_empty() {
                return Ok(bytes);
            }
        }
    }
}
