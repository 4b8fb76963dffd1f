//! Requests to models: what they say, what a person makes of them, and how they are treated.
//!
//! Answers are the messages of the protocol, which surfaces show as they are.

use super::Client;
use super::error::ClientError;
use crate::proto;
use crate::proto::__buffa::view;

/// Bytes of a body that are asked for at a time.
const PART: u32 = 4 << 20;

/// A call that sends a message and returns the answer.
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
    /// Requests, newest first; those that wait, oldest first.
    list_requests(ListRequestsRequest) -> ListRequestsResponse, ListRequestsResponseView,
        REQUEST_SERVICE_LIST_REQUESTS_SPEC;
    /// One request in sections.
    show_request(ShowRequestRequest) -> ShowRequestResponse, ShowRequestResponseView,
        REQUEST_SERVICE_SHOW_REQUEST_SPEC;
    /// A part of a body.
    request_body_part(GetRequestBodyRequest) -> GetRequestBodyResponse, GetRequestBodyResponseView,
        REQUEST_SERVICE_GET_REQUEST_BODY_SPEC;
    /// Edits a request that waits.
    edit_request(EditRequestRequest) -> EditRequestResponse, EditRequestResponseView,
        REQUEST_SERVICE_EDIT_REQUEST_SPEC;
    /// How a request differs from what came.
    diff_request(DiffRequestRequest) -> DiffRequestResponse, DiffRequestResponseView,
        REQUEST_SERVICE_DIFF_REQUEST_SPEC;
    /// Lets a request go on.
    resume_request(ResumeRequestRequest) -> ResumeRequestResponse, ResumeRequestResponseView,
        REQUEST_SERVICE_RESUME_REQUEST_SPEC;
    /// Ends a request that waits.
    cancel_request(CancelRequestRequest) -> CancelRequestResponse, CancelRequestResponseView,
        REQUEST_SERVICE_CANCEL_REQUEST_SPEC;
    /// How requests are treated.
    request_modes(GetModesRequest) -> GetModesResponse, GetModesResponseView, REQUEST_SERVICE_GET_MODES_SPEC;
    /// Treats requests otherwise from now on.
    set_request_mode(SetModeRequest) -> SetModeResponse, SetModeResponseView, REQUEST_SERVICE_SET_MODE_SPEC;
    /// Has the next turn wait.
    pause_next(PauseNextRequest) -> PauseNextResponse, PauseNextResponseView, REQUEST_SERVICE_PAUSE_NEXT_SPEC;
    /// Has the next turn wait so that its edits are saved.
    capture_next(CaptureNextRequest) -> CaptureNextResponse, CaptureNextResponseView,
        REQUEST_SERVICE_CAPTURE_NEXT_SPEC;
    /// The saved edits.
    list_overrides(ListOverridesRequest) -> ListOverridesResponse, ListOverridesResponseView,
        REQUEST_SERVICE_LIST_OVERRIDES_SPEC;
    /// Saves what was edited in a request.
    save_overrides(SaveOverridesRequest) -> SaveOverridesResponse, SaveOverridesResponseView,
        REQUEST_SERVICE_SAVE_OVERRIDES_SPEC;
    /// Removes the saved edits of a scope.
    remove_overrides(RemoveOverridesRequest) -> RemoveOverridesResponse, RemoveOverridesResponseView,
        REQUEST_SERVICE_REMOVE_OVERRIDES_SPEC;
    /// The last runs of subagents.
    list_subagents(ListSubagentsRequest) -> ListSubagentsResponse, ListSubagentsResponseView,
        REQUEST_SERVICE_LIST_SUBAGENTS_SPEC;
    /// Sends a recorded request again.
    replay_request(ReplayRequestRequest) -> ReplayRequestResponse, ReplayRequestResponseView,
        REQUEST_SERVICE_REPLAY_REQUEST_SPEC;
    /// Opens an entrance for a run of an agent.
    open_entrance(OpenEntranceRequest) -> OpenEntranceResponse, OpenEntranceResponseView,
        REQUEST_SERVICE_OPEN_ENTRANCE_SPEC;
    /// The entrance for an agent that a person starts by themselves.
    lasting_entrance(LastingEntranceRequest) -> LastingEntranceResponse, LastingEntranceResponseView,
        REQUEST_SERVICE_LASTING_ENTRANCE_SPEC;
    /// Closes the entrance of a run that is over.
    close_entrance(CloseEntranceRequest) -> CloseEntranceResponse, CloseEntranceResponseView,
        REQUEST_SERVICE_CLOSE_ENTRANCE_SPEC;
}

impl Client {
    /// All of a body with its credentials masked, in as many calls as it takes.
    pub async fn request_body(&self, request: u64, body: proto::RequestBody) -> Result<Vec<u8>, ClientError> {
        self.whole_body(request, body, false).await
    }

    /// All of the body that a waiting request would be sent with, for an editor.
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
                limit: PART,
                exact,
                ..Default::default()
            };
            let part = self.request_body_part(part).await?;
            if *size.get_or_insert(part.size) != part.size {
                return Err(ClientError::bad(format!("request {request} was edited while it was read")));
            }
            bytes.extend_from_slice(&part.content);
            if !part.has_more || part.content.is_empty() {
                return Ok(bytes);
            }
        }
    }
}
