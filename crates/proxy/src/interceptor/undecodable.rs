//! Requests that cannot be inspected: the body has an unknown or broken compression, or an unknown format.

use std::sync::Arc;

use sayso_review::{OverrideReport, RequestEnd, RequestMode, RequestStep, Ruling};
use sayso_wire::stream::Api;

use super::recording::QueuedBody;
use super::{Admission, Attribution, ForwardRequest, Interceptor, Recording, RequestEnvelope, RequestMetadata, lock};
use crate::bodies::BodyDelta;
use crate::recorder::Flush;
use crate::settings::{Keep, Pause};

impl Interceptor {
    /// Admits a request whose body cannot be decoded. It is rejected if policy denies it or if it might have to be held; otherwise it
    /// is forwarded, and the upstream reports the problem.
    pub(crate) fn admit_undecodable(
        self: &Arc<Self>,
        metadata: RequestMetadata,
        api: Api,
        problem: &str,
        now: i64,
    ) -> Admission {
        let request = self.next_id();
        let named = Attribution::from_headers(&metadata.run, &metadata.head);
        let session = named.as_ref().map(|attribution| attribution.session.clone());
        let unnamed = || Attribution::from_prefix(&metadata, &mut BodyDelta::default());
        let attribution = named.unwrap_or_else(unnamed);
        let encoding = metadata.encoding.as_deref().unwrap_or_default();
        let problem = format!("content-encoding `{encoding}`: {problem}");
        let envelope = RequestEnvelope { request, attribution, metadata, api: Some(api) };
        self.touch_session(&envelope, &BodyDelta::default(), now);
        let RequestEnvelope { attribution, metadata, .. } = &envelope;
        let denial = match self.evaluate_policy(attribution, &metadata.upstream) {
            Some((Ruling::Deny, message)) => Some(message),
            _ => self.reject_uninspectable(metadata, attribution, session.as_deref(), &problem),
        };
        if let Some(message) = denial {
            self.record_request(envelope, QueuedBody::omitted(), Flush::Immediate, None);
            let end = RequestEnd::Denied { message };
            self.recorder.step(request, RequestStep::Ended { end: end.clone(), edited: None }, Flush::Immediate);
            return Admission::Reject { request, api: Some(api), end };
        }
        let attribution = envelope.attribution.clone();
        let recording = if self.settings().keep == Keep::All { Recording::Enabled } else { Recording::Disabled };
        if recording == Recording::Enabled {
            self.record_request(envelope, QueuedBody::omitted(), Flush::Batched, None);
            self.record_sent_verbatim(request, OverrideReport::default());
        }
        let in_flight = self.in_flight(request, recording);
        Admission::Forward(ForwardRequest { api: Some(api), attribution, body: None, in_flight })
    }

    /// Message to the agent if an uninspectable request must be rejected, because an inspected one might have been held. `session` is
    /// `None` if the session is unknown.
    pub(super) fn reject_uninspectable(
        &self,
        metadata: &RequestMetadata,
        attribution: &Attribution,
        session: Option<&str>,
        problem: &str,
    ) -> Option<String> {
        let remedy = match self.evaluate_policy(attribution, &metadata.upstream) {
            Some((Ruling::Ask, rule)) => format!("remove {rule} from your policy"),
            _ if self.settings().rules.iter().any(|rule| rule.pause == Pause::Yes) => {
                "remove the rules that pause from [request]".to_owned()
            }
            _ if self.may_hold(session) => "forward requests unread: `sayso request mode normal`".to_owned(),
            _ => return None,
        };
        let uncompressed = if metadata.encoding.is_some() { "send it without compression, or " } else { "" };
        Some(format!("sayso cannot read this request ({problem}), so it cannot be reviewed; {uncompressed}{remedy}"))
    }

    /// `true` if a turn of the session would be held; of any session if it is unknown.
    fn may_hold(&self, session: Option<&str>) -> bool {
        let modes = &lock(&self.state).registry.modes;
        let Some(session) = session else { return !modes.is_passthrough() };
        let effective = modes.effective(Some(session));
        effective.mode != RequestMode::Off || effective.pause_next || effective.capture_next
    }
}
