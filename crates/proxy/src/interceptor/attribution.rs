//! Attribution of a request to an agent, a session, a turn and a subagent.

use sayso_review::{ContentHash, Origin, RequestReceived, SubagentMark};
use sayso_wire::stream::Api;
use sayso_wire::{PrefixScan, RequestHead, RequestIdentity, Subagent};

use super::RequestMetadata;
use crate::bodies::BodyDelta;

/// The run that an agent endpoint was opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRun {
    /// The first characters of the capability.
    pub name: String,
    /// The agent that `sayso run` started.
    pub agent: Option<String>,
}

/// The sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    pub agent: Option<String>,
    pub session: String,
    /// The turn, if the agent names it.
    pub turn: Option<String>,
    pub subagent: Option<SubagentMark>,
    pub model: Option<String>,
}

/// Requests with equal keys belong to one conversation and may supersede each other. Another model is another conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConversationKey {
    session: String,
    subagent: Option<String>,
    model: Option<String>,
}

impl ConversationKey {
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Session and subagent, without the model.
    pub(crate) fn thread_key(&self) -> (&str, Option<&str>) {
        (&self.session, self.subagent.as_deref())
    }
}

impl Attribution {
    /// Attributes by headers alone. `None` if they name no session.
    pub fn from_headers(run: &AgentRun, head: &RequestHead) -> Option<Self> {
        let session = head.session()?.to_owned();
        Some(Self { agent: agent(run, head), session, turn: None, subagent: mark(head.subagent()), model: None })
    }

    /// Attributes by headers and by the first and last bytes of the body, which may overlap. The model is known only if the body names it
    /// before the first user message.
    pub(crate) fn from_body_ends(
        run: &AgentRun,
        head: &RequestHead,
        key: Option<&str>,
        prefix: &[u8],
        tail: &[u8],
    ) -> Self {
        let scan = PrefixScan::for_session(prefix);
        let model = scan.model.or_else(|| model_in_path(head));
        if let Some(attribution) = Self::from_headers(run, head) {
            return Self { model, ..attribution };
        }
        let session = derive_session_id(run, head, key, scan.first_user_message_hash.as_deref());
        let attribution = Self { agent: agent(run, head), session, subagent: mark(head.subagent()), turn: None, model };
        attribution.or_session_in_tail(head, tail)
    }

    /// Takes the session that the end of a body names, unless a header names one.
    pub(crate) fn or_session_in_tail(mut self, head: &RequestHead, tail: &[u8]) -> Self {
        if head.session().is_none()
            && let Some(named) = Api::from_path(head.route()).and_then(|api| PrefixScan::session_in_tail(api, tail))
        {
            self.session = named;
        }
        self
    }

    /// Attributes by headers and a body, or the prefix of a body.
    pub(crate) fn from_prefix(metadata: &RequestMetadata, body: &mut BodyDelta) -> Self {
        let RequestMetadata { run, head, key, .. } = metadata;
        let attribution = Self::from_headers(run, head).unwrap_or_else(|| {
            let bytes = body.to_bytes();
            Self::from_body_ends(run, head, key.as_deref(), &bytes, &bytes)
        });
        attribution.with_model(head, body)
    }

    /// Adds the model that a body names at any position.
    pub(crate) fn with_model(mut self, head: &RequestHead, body: &mut BodyDelta) -> Self {
        let model = body.find_model();
        if self.model.is_none() {
            self.model = model.or_else(|| model_in_path(head));
        }
        self
    }

    /// Attributes a parsed request.
    pub fn from_request(
        run: &AgentRun,
        head: &RequestHead,
        key: Option<&str>,
        body: &[u8],
        identity: RequestIdentity,
    ) -> Self {
        // Same derivation as for a forwarded body, so that both paths give a session the same id.
        let derived = || Self::from_body_ends(run, head, key, body, body).session;
        let session = head.session().map_or_else(derived, str::to_owned);
        Self {
            agent: run.agent.clone().or(identity.agent),
            session,
            turn: identity.turn,
            subagent: mark(identity.subagent),
            model: identity.model.or_else(|| model_in_path(head)),
        }
    }

    pub(crate) fn from_record(received: &RequestReceived) -> Self {
        let RequestReceived { origin, model, subagent, .. } = received;
        Self {
            agent: origin.agent.clone(),
            session: origin.session.clone().unwrap_or_default(),
            turn: origin.turn.clone(),
            subagent: subagent.clone(),
            model: model.clone(),
        }
    }

    pub fn origin(&self) -> Origin {
        Origin { agent: self.agent.clone(), session: Some(self.session.clone()), turn: self.turn.clone(), call: None }
    }

    /// `true` for the session itself and for its subagents.
    pub(super) fn belongs_to(&self, session: &str) -> bool {
        let parent = self.subagent.as_ref().and_then(|mark| mark.parent.as_deref());
        self.session == session || parent == Some(session)
    }

    /// Session and subagent, without the model.
    pub(crate) fn thread_key(&self) -> (&str, Option<&str>) {
        let subagent = self.subagent.as_ref().map(|mark| mark.id.as_deref().unwrap_or_default());
        (&self.session, subagent)
    }

    pub(crate) fn conversation_key(&self) -> ConversationKey {
        let (session, subagent) = self.thread_key();
        let (session, subagent) = (session.to_owned(), subagent.map(str::to_owned));
        ConversationKey { session, subagent, model: self.model.clone() }
    }
}

fn agent(run: &AgentRun, head: &RequestHead) -> Option<String> {
    run.agent.clone().or_else(|| head.agent().map(str::to_owned))
}

fn mark(subagent: Option<Subagent>) -> Option<SubagentMark> {
    subagent.map(|subagent| SubagentMark { id: subagent.id, parent: subagent.parent })
}

/// Derives an id for a session that names none, from its run, agent, API key and first user message.
fn derive_session_id(run: &AgentRun, head: &RequestHead, key: Option<&str>, first_message: Option<&str>) -> String {
    let agent = agent(run, head);
    let clues = [
        &run.name,
        head.header("user-agent").unwrap_or_default(),
        key.unwrap_or_default(),
        first_message.unwrap_or_default(),
    ];
    let hash = ContentHash::of(clues.join("\n").as_bytes()).short();
    format!("{}-{hash}", agent.as_deref().unwrap_or("agent"))
}

/// Gemini names the model in the path: `/v1beta/models/gemini-2.5-pro:streamGenerateContent`.
fn model_in_path(head: &RequestHead) -> Option<String> {
    let (_, rest) = head.route().rsplit_once("/models/")?;
    let (model, _) = rest.rsplit_once(':')?;
    Some(model.to_owned())
}
