//! The first two steps of an admission: attribution, and assessment without the state lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use sayso_review::{RequestMode, Ruling, SkippedEdit};
use sayso_wire::dialect::Dialect;
use sayso_wire::stream::Api;
use sayso_wire::{ModelRequest, Overrides, RequestPurpose};

use super::edits::RequestEdits;
use super::pause;
use super::turn_edits::{RunningTurn, TurnChange};
use super::{Attribution, BodySignature, Interceptor, RequestEnvelope, RequestMetadata, lock};
use crate::bodies::BodyDelta;
use crate::settings::{Pause, PauseRule, Settings};

/// A received request, parsed and attributed.
pub(super) struct IncomingRequest {
    pub(super) envelope: RequestEnvelope,
    pub(super) body: Arc<[u8]>,
    pub(super) parsed: ModelRequest,
    pub(super) purpose: Option<RequestPurpose>,
    pub(super) retry_key: String,
    pub(super) message_hashes: Vec<String>,
    /// `true` for a turn of an agent that works for the person.
    pub(super) is_turn: bool,
}

impl IncomingRequest {
    pub(super) fn body_delta(&self) -> BodyDelta {
        BodyDelta::from(Bytes::from_owner(Arc::clone(&self.body)))
    }

    fn takes_overrides(&self, mode: RequestMode) -> bool {
        self.is_turn && self.envelope.metadata.signed == BodySignature::Unsigned && mode != RequestMode::Off
    }
}

/// The verdicts of policy, rules and overrides on a request.
pub(super) struct Assessment {
    /// Message to the agent if policy denies the request, or if the request cannot be inspected although it might have to be.
    pub(super) denial: Option<String>,
    /// The policy rule that asks a person.
    pub(super) ask_rule: Option<String>,
    /// The first pause rule of the configuration that matches.
    pub(super) rule: Option<PauseRule>,
    /// Edits of the same request at an earlier engine.
    pub(super) handed_over: Option<RequestEdits>,
    overrides: Overrides,
    /// Failure to read the overrides. The request is then treated as if it had some: no one is asked to make them again.
    overrides_error: Option<String>,
    running_turn: Option<RunningTurn>,
    prepared: PreparedEdits,
}

/// The edits that a request gets in one mode.
pub(super) struct PreparedEdits {
    mode: RequestMode,
    pub(super) edits: RequestEdits,
    pub(super) turn_change: TurnChange,
}

impl Assessment {
    pub(super) fn has_overrides(&self) -> bool {
        !self.overrides.edits.is_empty() || self.overrides_error.is_some()
    }

    /// The edits for a mode. They are computed again only if the mode is not the assessed one.
    pub(super) fn into_edits(self, incoming: &IncomingRequest, mode: RequestMode) -> PreparedEdits {
        if self.prepared.mode == mode { self.prepared } else { self.prepare(incoming, mode) }
    }

    fn prepare(&self, incoming: &IncomingRequest, mode: RequestMode) -> PreparedEdits {
        prepare_edits(incoming, mode, &self.overrides, self.overrides_error.as_deref(), self.running_turn.as_ref())
    }
}

/// Applies overrides, then the edits of the running turn.
fn prepare_edits(
    incoming: &IncomingRequest,
    mode: RequestMode,
    overrides: &Overrides,
    overrides_error: Option<&str>,
    running_turn: Option<&RunningTurn>,
) -> PreparedEdits {
    let mut edits = RequestEdits::default();
    if incoming.takes_overrides(mode) {
        edits = RequestEdits::from_overrides(overrides, &incoming.parsed);
        let error = overrides_error.map(|error| SkippedEdit::failed(String::new(), error));
        edits.overrides.skipped.extend(error);
    }
    let turn_change =
        running_turn.map_or(TurnChange::Unchanged, |turn| turn.clone().apply(&incoming.parsed, &mut edits));
    PreparedEdits { mode, edits, turn_change }
}

impl Interceptor {
    /// Parses a request, finds its session, and counts it there.
    pub(super) fn attribute(&self, mut metadata: RequestMetadata, body: Arc<[u8]>, now: i64) -> IncomingRequest {
        let request = self.next_id();
        let parsed = ModelRequest::new(request.to_string(), metadata.head.clone(), Arc::clone(&body));
        let RequestMetadata { run, head, key, .. } = &metadata;
        let attribution = Attribution::from_request(run, head, key.as_deref(), &body, parsed.identity());
        // An unknown body gets error replies in the format of its path.
        let api = parsed.dialect().map(Dialect::api).or_else(|| Api::from_path(metadata.head.route()));
        let purpose = parsed.purpose();
        if purpose == Some(RequestPurpose::Stream) {
            // Keep-alive events prevent the client's timeout.
            metadata.deadline = None;
        }
        let is_turn = pause::is_turn(&attribution, &parsed);
        let (retry_key, message_hashes) = (parsed.retry_key(), parsed.message_hashes());
        let envelope = RequestEnvelope { request, attribution, metadata, api };
        let incoming = IncomingRequest { envelope, body, parsed, purpose, retry_key, message_hashes, is_turn };
        self.touch_session(&incoming.envelope, &incoming.body_delta(), now);
        incoming
    }

    /// Evaluates policy, rules and overrides. Token counts, files and patches are slow, so this runs without the state lock.
    pub(super) fn assess(&self, incoming: &IncomingRequest) -> Assessment {
        let settings = self.settings();
        let RequestEnvelope { attribution, metadata, .. } = &incoming.envelope;
        let policy = self.evaluate_policy(attribution, &metadata.upstream);
        let counter = || lock(&self.rules_counter);
        let rule = pause::matching_rule(attribution, &incoming.parsed, &settings.rules, counter).cloned();
        let (overrides, overrides_error) = self.overrides_for(&attribution.session, &settings);
        let running_turn = self.running_turn(attribution, &incoming.parsed, metadata.signed);
        let mode = self.effective(Some(&attribution.session)).mode;
        let prepared = prepare_edits(incoming, mode, &overrides, overrides_error.as_deref(), running_turn.as_ref());
        let handed_over = self.handed_over(attribution, &incoming.retry_key, &incoming.parsed);
        let may_pause = rule.as_ref().is_none_or(|rule| rule.pause == Pause::Yes);
        let (denial, ask_rule) = match policy {
            Some((Ruling::Deny, message)) => (Some(message), None),
            policy => {
                let problem = "its body is not a request that this API knows";
                let uninspectable = (incoming.purpose.is_none() && may_pause)
                    .then(|| self.reject_uninspectable(metadata, attribution, Some(&attribution.session), problem));
                let ask_rule = policy.filter(|(ruling, _)| *ruling == Ruling::Ask).map(|(_, rule)| rule);
                (uninspectable.flatten(), ask_rule)
            }
        };
        Assessment { denial, ask_rule, rule, handed_over, overrides, overrides_error, running_turn, prepared }
    }

    fn overrides_for(&self, session: &str, settings: &Settings) -> (Overrides, Option<String>) {
        match self.overrides.all(session, settings.preview_limit) {
            Ok(overrides) => (overrides, None),
            Err(error) => {
                tracing::error!(%error, session, "cannot read overrides; requests are sent without them");
                (Overrides::default(), Some(error.to_string()))
            }
        }
    }

    /// Evaluates the policy. Returns the ruling with the message to the agent (deny) or the name of the rule (ask, allow).
    pub(super) fn evaluate_policy(&self, attribution: &Attribution, upstream: &str) -> Option<(Ruling, String)> {
        if !self.has_policy.load(Ordering::Acquire) {
            return None;
        }
        let ruled = match self.gate.evaluate_request(upstream, attribution.agent.as_deref(), &attribution.session) {
            Ok(ruled) => ruled?,
            Err(error) => return Some((Ruling::Deny, error.to_string())),
        };
        let rule = ruled.rule.short_name();
        let message = match (&ruled.ruling, &ruled.reason) {
            (Ruling::Deny, Some(reason)) => format!("Request denied by {rule}: {reason}"),
            (Ruling::Deny, None) => format!("Request denied by {rule}"),
            _ => rule,
        };
        Some((ruled.ruling, message))
    }
}
