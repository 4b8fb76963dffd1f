//! Whose a request is.

use sayso_review::{Origin, RequestSeen, SubagentMark};
use sayso_wire::{Glance, Head, Marks};

use super::Taken;
use crate::route::api_of;

/// The run that an entrance was opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What tells it from others: the beginning of its capability.
    pub name: String,
    /// The agent that was to be run.
    pub agent: Option<String>,
}

/// Whose a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// The agent.
    pub agent: Option<String>,
    /// The session.
    pub session: String,
    /// The turn, as the agent says.
    pub turn: Option<String>,
    /// The subagent.
    pub subagent: Option<SubagentMark>,
    /// The model.
    pub model: Option<String>,
}

/// What supersedes what: requests of one conversation. Another model is another conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Conversation {
    session: String,
    subagent: Option<String>,
    model: Option<String>,
}

impl Conversation {
    /// The session that it belongs to.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// The session and the subagent, whatever the model.
    pub(super) fn strand(&self) -> (&str, Option<&str>) {
        (&self.session, self.subagent.as_deref())
    }
}

impl Whose {
    /// By a request's headers alone, if they name a session.
    pub fn by_head(run: &Run, head: &Head) -> Option<Self> {
        let session = head.session()?.to_owned();
        Some(Self { agent: agent(run, head), session, turn: None, subagent: subagent(head.subagent()), model: None })
    }

    /// By its headers and by the first and the last bytes of its body, which may overlap. The model is known only if it
    /// comes before the first user message.
    pub(crate) fn from_clues(run: &Run, head: &Head, key: Option<&str>, prefix: &[u8], tail: &[u8]) -> Self {
        let glance = Glance::for_session(prefix);
        let model = glance.model.or_else(|| model_in_path(head));
        if let Some(whose) = Self::by_head(run, head) {
            return Self { model, ..whose };
        }
        let session = unnamed(run, head, key, glance.first_words.as_deref());
        let whose = Self { agent: agent(run, head), session, subagent: subagent(head.subagent()), turn: None, model };
        whose.or_named_in(head, tail)
    }

    /// The session that the end of a body names, where no header names one.
    pub(crate) fn or_named_in(mut self, head: &Head, tail: &[u8]) -> Self {
        if head.session().is_none()
            && let Some(named) = api_of(head.route()).and_then(|api| Glance::session_in_tail(api, tail))
        {
            self.session = named;
        }
        self
    }

    /// By a body that is there.
    pub(crate) fn by_glance(run: &Run, head: &Head, key: Option<&str>, body: &mut Taken) -> Self {
        let whose = Self::by_head(run, head).unwrap_or_else(|| {
            let whole = body.whole();
            Self::from_clues(run, head, key, &whole, &whole)
        });
        whose.with_model(head, body)
    }

    /// With the model that a body names, wherever it does.
    pub(crate) fn with_model(mut self, head: &Head, body: &mut Taken) -> Self {
        let model = body.find_model();
        if self.model.is_none() {
            self.model = model.or_else(|| model_in_path(head));
        }
        self
    }

    /// By all that a request says of itself.
    pub fn by_marks(run: &Run, head: &Head, key: Option<&str>, body: &[u8], marks: Marks) -> Self {
        // The same clues as for a request that is forwarded while it comes: both paths name a session alike.
        let by_clues = || Self::from_clues(run, head, key, body, body).session;
        let session = head.session().map_or_else(by_clues, str::to_owned);
        Self {
            agent: run.agent.clone().or(marks.agent),
            session,
            turn: marks.turn,
            subagent: subagent(marks.subagent),
            model: marks.model.or_else(|| model_in_path(head)),
        }
    }

    /// As somebody was when their request was recorded.
    pub(crate) fn recorded(seen: &RequestSeen) -> Self {
        let RequestSeen { origin, model, subagent, .. } = seen;
        Self {
            agent: origin.agent.clone(),
            session: origin.session.clone().unwrap_or_default(),
            turn: origin.turn.clone(),
            subagent: subagent.clone(),
            model: model.clone(),
        }
    }

    /// As it is recorded.
    pub fn origin(&self) -> Origin {
        Origin { agent: self.agent.clone(), session: Some(self.session.clone()), turn: self.turn.clone(), call: None }
    }

    /// Whether it is a session's, or of a part of it.
    pub(super) fn is_of(&self, session: &str) -> bool {
        let parent = self.subagent.as_ref().and_then(|mark| mark.parent.as_deref());
        self.session == session || parent == Some(session)
    }

    /// The session and the subagent, whatever the model.
    pub(super) fn strand(&self) -> (&str, Option<&str>) {
        let subagent = self.subagent.as_ref().map(|mark| mark.id.as_deref().unwrap_or_default());
        (&self.session, subagent)
    }

    pub(crate) fn conversation(&self) -> Conversation {
        let (session, subagent) = self.strand();
        let (session, subagent) = (session.to_owned(), subagent.map(str::to_owned));
        Conversation { session, subagent, model: self.model.clone() }
    }
}

fn agent(run: &Run, head: &Head) -> Option<String> {
    run.agent.clone().or_else(|| head.agent().map(str::to_owned))
}

fn subagent(subagent: Option<sayso_wire::Subagent>) -> Option<SubagentMark> {
    subagent.map(|subagent| SubagentMark { id: subagent.id, parent: subagent.parent })
}

/// A name for a session that has none: by its run, its agent, its key and what was said first.
fn unnamed(run: &Run, head: &Head, key: Option<&str>, first_words: Option<&str>) -> String {
    let agent = agent(run, head);
    let said = [&run.name, head.header("user-agent").unwrap_or_default(), key.unwrap_or_default()];
    let said = [said.join("\n").as_str(), first_words.unwrap_or_default()].join("\n");
    let hash = sayso_review::ContentHash::of(said.as_bytes()).short();
    format!("{}-{hash}", agent.as_deref().unwrap_or("agent"))
}

/// Gemini names the model in the path: `/v1beta/models/gemini-2.5-pro:streamGenerateContent`.
fn model_in_path(head: &Head) -> Option<String> {
    let (_, rest) = head.route().rsplit_once("/models/")?;
    let (model, _) = rest.rsplit_once(':')?;
    Some(model.to_owned())
}
