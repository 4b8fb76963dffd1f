//! A change that waits for a verdict, and what a verdict led to.

use sayso_review::{
    Answer, Cause, ChangeId, ContentHash, Decider, Decision, Origin, Performer, Plan, Preview, RulingRecord, Subject,
    Verdict, WsPath,
};
use sayso_workspace::ApplyError;

/// A change that waits for a verdict.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// Its number.
    pub change: ChangeId,
    /// What it is about besides files.
    pub subject: Subject,
    /// What it would do to files.
    pub preview: Preview,
    pub(crate) origin: Origin,
    pub(crate) cause: Cause,
    pub(crate) performer: Performer,
    /// Directories that are to go if nothing is left in them.
    pub(crate) emptied: Vec<WsPath>,
}

/// What is proposed, before it has a number.
pub(crate) struct Proposing {
    pub(crate) subject: Subject,
    pub(crate) preview: Preview,
    pub(crate) origin: Origin,
    pub(crate) cause: Cause,
    pub(crate) performer: Performer,
    pub(crate) emptied: Vec<WsPath>,
    pub(crate) ruled: Option<RulingRecord>,
    pub(crate) intent: Option<Vec<u8>>,
    pub(crate) deadline: Option<i64>,
}

impl Proposing {
    /// A change of files that we carry out, and that nobody has an opinion about yet.
    pub(crate) fn files(preview: Preview, origin: Origin, cause: Cause) -> Self {
        Self {
            subject: Subject::Files,
            preview,
            origin,
            cause,
            performer: Performer::Gate,
            emptied: Vec::new(),
            ruled: None,
            intent: None,
            deadline: None,
        }
    }
}

/// How a verdict ended.
#[derive(Debug)]
pub enum Decided {
    /// What was approved is in the tree.
    Applied {
        /// What the agent is told.
        told: String,
        /// What was approved.
        decision: Decision,
        /// What files had besides their content that could not be kept.
        lost: Vec<(WsPath, Vec<&'static str>)>,
    },
    /// Whoever wants to do it may, and [`Engine::finish`](crate::Engine::finish) says what became of it.
    Permitted {
        /// What the agent is told.
        told: String,
        /// What was approved, with the person's edits.
        subject: Subject,
        /// What was approved of the files.
        plan: Plan,
    },
    /// Nothing was approved.
    Denied {
        /// What the agent is told.
        told: String,
    },
    /// Files changed after they were shown. Nothing was written; both changes together wait for a verdict of their own.
    Stale {
        /// What the agent is told.
        told: String,
        /// The files.
        files: Vec<WsPath>,
        /// What is to be decided instead.
        next: Box<Proposed>,
    },
    /// It could not be done. Nothing was written, unless the error says so.
    Failed {
        /// What the agent is told.
        told: String,
        /// Why.
        error: ApplyError,
    },
}

impl Proposed {
    /// What a verdict on it is bound to.
    pub fn hash(&self) -> ContentHash {
        self.subject.bind(self.preview.hash())
    }

    /// The conversation it comes from.
    pub fn session(&self) -> Option<&str> {
        self.origin.session.as_deref()
    }

    /// The verdict that takes all of it.
    pub fn approval(&self) -> Verdict {
        self.verdict(Answer::Approve)
    }

    /// A person's verdict on it.
    pub fn verdict(&self, answer: Answer) -> Verdict {
        Verdict { preview: self.hash(), answer, comments: Vec::new(), by: Decider::Person }
    }
}
