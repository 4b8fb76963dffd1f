//! Whose a request is.

use sayso_review::{Origin, RequestSeen, SubagentMark};
use sayso_wire::{Glance, Head, Marks};

use super::Taken;

/// Where the model is in most bodies.
const BEGINNING: usize = 4 << 10;

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

    /// By what the beginning of its body says, too.
    pub(crate) fn by_glance(run: &Run, head: &Head, key: Option<&str>, body: &Taken) -> Self {
        let (glance, mut whose) = if let Some(whose) = Self::by_head(run, head) {
            let glance = |most| Some(Glance::for_model(&body.beginning(most))).filter(|glance| glance.model.is_some());
            (glance(BEGINNING).or_else(|| glance(Glance::MOST)).unwrap_or_default(), whose)
        } else {
            let glance = Glance::for_conversation(&body.beginning(Glance::MOST));
            let session = unnamed(run, head, key, glance.first_words.as_deref());
            let (agent, subagent) = (agent(run, head), subagent(head.subagent()));
            (glance, Self { agent, session, subagent, ..Self::default() })
        };
        whose.model = glance.model.or_else(|| model_in_path(head));
        whose
    }

    /// By all that a request says of itself.
    pub fn by_marks(run: &Run, head: &Head, key: Option<&str>, body: &[u8], marks: Marks) -> Self {
        let session = marks
            .session
            .unwrap_or_else(|| unnamed(run, head, key, Glance::for_conversation(body).first_words.as_deref()));
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
