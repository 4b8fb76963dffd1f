//! Calls for requests to models: lists, sections, edits, modes, overrides and agent endpoints.

use super::Client;
use super::error::ClientError;
use crate::proto;
use crate::proto::__buffa::view;

/// Bytes of a body per call.
const BODY_PART_BYTES: u32 = 4 << 20;

/// Defines a method for each call that takes and returns a message of the protocol.
macro_rules! calls {
    ($($(#[$documentation:meta])* $name:ident($request:ident) -> $response:ident, $view:ident, $spec:ident;)*) => {
        impl Client {$(
            $(#[$documentation])*
            pub async fn $name(&self, request: proto::$request) -> Result<proto::$response, ClientError> {
                self.call::<_, view::$view<'static>, _>(proto::$spec, request).await
            }
        )*}
    };
}

calls! {
    /// Lists requests, newest first; held requests, oldest first.
    list_requests(ListRequestsRequest) -> ListRequestsResponse, ListRequestsResponseView,
        REQUEST_SERVICE_LIST_REQUESTS_SPEC;
    /// Returns a request in sections.
    show_request(ShowRequestRequest) -> ShowRequestResponse, ShowRequestResponseView,
        REQUEST_SERVICE_SHOW_REQUEST_SPEC;
    /// Returns a byte range of a body.
    request_body_part(GetRequestBodyRequest) -> GetRequestBodyResponse, GetRequestBodyResponseView,
        REQUEST_SERVICE_GET_REQUEST_BODY_SPEC;
    /// Edits a held request.
    edit_request(EditRequestRequest) -> EditRequestResponse, EditRequestResponseView,
        REQUEST_SERVICE_EDIT_REQUEST_SPEC;
    /// Compares a request with the received one.
    diff_request(DiffRequestRequest) -> DiffRequestResponse, DiffRequestResponseView,
        REQUEST_SERVICE_DIFF_REQUEST_SPEC;
    /// Forwards a held request with its edits.
    resume_request(ResumeRequestRequest) -> ResumeRequestResponse, ResumeRequestResponseView,
        REQUEST_SERVICE_RESUME_REQUEST_SPEC;
    /// Cancels a request that is held or being retried.
    cancel_request(CancelRequestRequest) -> CancelRequestResponse, CancelRequestResponseView,
        REQUEST_SERVICE_CANCEL_REQUEST_SPEC;
    /// Returns the default mode and the mode of each session.
    request_modes(GetModesRequest) -> GetModesResponse, GetModesResponseView, REQUEST_SERVICE_GET_MODES_SPEC;
    /// Sets the mode for new requests.
    set_request_mode(SetModeRequest) -> SetModeResponse, SetModeResponseView, REQUEST_SERVICE_SET_MODE_SPEC;
    /// Pauses the next turn once.
    pause_next(PauseNextRequest) -> PauseNextResponse, PauseNextResponseView, REQUEST_SERVICE_PAUSE_NEXT_SPEC;
    /// Pauses the next turn and saves its edits when it is resumed.
    capture_next(CaptureNextRequest) -> CaptureNextResponse, CaptureNextResponseView,
        REQUEST_SERVICE_CAPTURE_NEXT_SPEC;
    /// Lists saved edits, widest scope first.
    list_overrides(ListOverridesRequest) -> ListOverridesResponse, ListOverridesResponseView,
        REQUEST_SERVICE_LIST_OVERRIDES_SPEC;
    /// Saves the edits of a held request for new requests.
    save_overrides(SaveOverridesRequest) -> SaveOverridesResponse, SaveOverridesResponseView,
        REQUEST_SERVICE_SAVE_OVERRIDES_SPEC;
    /// Removes the saved edits of a scope.
    remove_overrides(RemoveOverridesRequest) -> RemoveOverridesResponse, RemoveOverridesResponseView,
        REQUEST_SERVICE_REMOVE_OVERRIDES_SPEC;
    /// Lists the latest runs of subagents, newest first.
    list_subagents(ListSubagentsRequest) -> ListSubagentsResponse, ListSubagentsResponseView,
        REQUEST_SERVICE_LIST_SUBAGENTS_SPEC;
    /// Sends a recorded request again and compares the responses.
    replay_request(ReplayRequestRequest) -> ReplayRequestResponse, ReplayRequestResponseView,
        REQUEST_SERVICE_REPLAY_REQUEST_SPEC;
    /// Sums the cost of requests per turn, per session and in total.
    request_costs(GetCostRequest) -> GetCostResponse, GetCostResponseView, REQUEST_SERVICE_GET_COST_SPEC;
    /// Opens an endpoint for one run of an agent.
    open_endpoint(OpenEndpointRequest) -> OpenEndpointResponse, OpenEndpointResponseView,
        REQUEST_SERVICE_OPEN_ENDPOINT_SPEC;
    /// Returns the persistent endpoint for an agent that a person configures.
    persistent_endpoint(GetPersistentEndpointRequest) -> GetPersistentEndpointResponse,
        GetPersistentEndpointResponseView, REQUEST_SERVICE_GET_PERSISTENT_ENDPOINT_SPEC;
    /// Closes the endpoint of a finished run.
    close_endpoint(CloseEndpointRequest) -> CloseEndpointResponse, CloseEndpointResponseView,
        REQUEST_SERVICE_CLOSE_ENDPOINT_SPEC;
}

impl Client {
    /// Returns a whole body with masked credentials.
    pub async fn request_body(&self, request: u64, body: proto::RequestBody) -> Result<Vec<u8>, ClientError> {
        self.whole_body(request, body, false).await
    }

    /// Returns the body that a held request would be sent with, credentials included, for an editor.
    pub async fn exact_request_body(&self, request: u64) -> Result<Vec<u8>, ClientError> {
        self.whole_body(request, proto::RequestBody::AsSent, true).await
    }

    async fn whole_body(&self, request: u64, body: proto::RequestBody, exact: bool) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        let mut size = None;
        loop {
            let part = proto::GetRequestBodyRequest {
                request,
                body: body.into(),
                offset: bytes.len() as u64,
                limit: BODY_PART_BYTES,
                exact,
                ..Default::default()
            };
            let part = self.request_body_part(part).await?;
            if *size.get_or_insert(part.size) != part.size {
                return Err(ClientError::bad(format!("the body of request {request} changed between two reads")));
            }
            bytes.extend_from_slice(&part.content);
            if !part.has_more || part.content.is_empty() {
                return Ok(bytes);
            }
        }
    }
}
