//! Making calls, and making them again where that is safe.

use buffa::{Message, MessageView};
use connectrpc::client::{CallOptions, ServerStream, call_server_stream, call_unary};
use connectrpc::{IdempotencyLevel, JsonDeserialize, JsonSerialize, Spec, SpecOrigin};

use super::Client;
use super::error::{ClientError, Ended, Fate};
use super::patience::Backoff;
use super::transport::Answer;

// What a call gives back is a parameter of its own everywhere here: named through the view, futures would not be `Send`.

/// A stream of answers.
pub(super) type Answers<View> = ServerStream<Answer, View>;

impl Client {
    /// Makes a call once.
    pub(super) async fn once<Request, View, Owned>(&self, spec: Spec, request: Request) -> Result<Owned, Ended>
    where
        Request: Message + JsonSerialize,
        View: MessageView<'static, Owned = Owned> + Send,
        Owned: Message + JsonDeserialize,
    {
        let spec = spec.with_origin(SpecOrigin::Client);
        let options = CallOptions::default();
        let answer = call_unary::<_, _, View>(&self.transport, &self.config, spec, request, options).await?;
        Ok(answer.into_owned())
    }

    /// Makes a call, again where it never reached an engine or does nothing there.
    pub(super) async fn call<Request, View, Owned>(&self, spec: Spec, request: Request) -> Result<Owned, ClientError>
    where
        Request: Message + JsonSerialize,
        View: MessageView<'static, Owned = Owned> + Send,
        Owned: Message + JsonDeserialize,
    {
        let harmless = matches!(spec.idempotency_level, IdempotencyLevel::NoSideEffects | IdempotencyLevel::Idempotent);
        let mut backoff = Backoff::new(self.patience);
        loop {
            let why = match self.once::<_, View, _>(spec, request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(Ended::Answered(error)) => return Err(error),
                Err(Ended::Cut(why)) if !harmless => {
                    return Err(ClientError::Unreachable { why, fate: Fate::Unknown });
                }
                Err(Ended::Cut(why) | Ended::Unsent(why)) => why,
            };
            backoff.again(why).await?;
        }
    }

    /// Opens a stream once.
    pub(super) async fn stream<Request, View, Owned>(
        &self,
        spec: Spec,
        request: Request,
    ) -> Result<Answers<View>, Ended>
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
    /// Pauses before the next attempt, if there is to be one.
    pub(super) async fn again(&mut self, why: String) -> Result<(), ClientError> {
        self.pause(why).await.map_err(|why| ClientError::Unreachable { why, fate: Fate::Nothing })
    }
}
