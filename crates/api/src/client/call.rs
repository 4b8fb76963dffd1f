//! Unary and streaming calls, with retries where a repeated call is safe.

use buffa::{Message, MessageView};
use connectrpc::client::{CallOptions, ServerStream, call_server_stream, call_unary};
use connectrpc::{IdempotencyLevel, JsonDeserialize, JsonSerialize, Spec, SpecOrigin};

use super::Client;
use super::error::{CallFailure, ClientError, SideEffect};
use super::retry::Backoff;
use super::transport::ResponseBody;

// `Owned` is a type parameter although `View` determines it: the futures would not be `Send` if they named it through `View`.

/// A stream of response messages.
pub(super) type ResponseStream<View> = ServerStream<ResponseBody, View>;

impl Client {
    /// Makes a call once.
    pub(super) async fn once<Request, View, Owned>(&self, spec: Spec, request: Request) -> Result<Owned, CallFailure>
    where
        Request: Message + JsonSerialize,
        View: MessageView<'static, Owned = Owned> + Send,
        Owned: Message + JsonDeserialize,
    {
        let spec = spec.with_origin(SpecOrigin::Client);
        let options = CallOptions::default();
        let response = call_unary::<_, _, View>(&self.transport, &self.config, spec, request, options).await?;
        Ok(response.into_owned())
    }

    /// Makes a call. Retries if the request was not delivered, or if the call is idempotent.
    pub(super) async fn call<Request, View, Owned>(&self, spec: Spec, request: Request) -> Result<Owned, ClientError>
    where
        Request: Message + JsonSerialize,
        View: MessageView<'static, Owned = Owned> + Send,
        Owned: Message + JsonDeserialize,
    {
        let repeatable =
            matches!(spec.idempotency_level, IdempotencyLevel::NoSideEffects | IdempotencyLevel::Idempotent);
        let mut backoff = Backoff::new(self.retry_budget);
        loop {
            let cause = match self.once::<_, View, _>(spec, request.clone()).await {
                Ok(response) => return Ok(response),
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::ConnectionLost(cause)) if !repeatable => {
                    return Err(ClientError::Unreachable { cause, side_effect: SideEffect::Unknown });
                }
                Err(CallFailure::ConnectionLost(cause) | CallFailure::NotSent(cause)) => cause,
            };
            backoff.wait(cause).await?;
        }
    }

    /// Opens a stream once.
    pub(super) async fn stream<Request, View, Owned>(
        &self,
        spec: Spec,
        request: Request,
    ) -> Result<ResponseStream<View>, CallFailure>
    where
        Request: Message + JsonSerialize,
        View: MessageView<'static, Owned = Owned> + Send,
        Owned: Message + JsonDeserialize,
    {
        let spec = spec.with_origin(SpecOrigin::Client);
        let options = CallOptions::default();
        Ok(call_server_stream::<_, _, View>(&self.transport, &self.config, spec, request, options).await?)
    }
}

impl Backoff {
    /// Waits before the next attempt, or fails once the budget is used up.
    pub(super) async fn wait(&mut self, cause: String) -> Result<(), ClientError> {
        let unreachable = |cause| ClientError::Unreachable { cause, side_effect: SideEffect::None };
        self.pause(cause).await.map_err(unreachable)
    }
}
