//! Pending changes, and the results of verdicts.

use sayso_review::{
    Answer, Cause, ChangeId, ContentHash, Decider, Decision, Origin, Performer, Plan, Preview, RulingRecord, Subject,
    Verdict, WsPath,
};
use sayso_workspace::ApplyError;

/// A change that is pending, with all that a verdict covers.
#[derive(Clone, Debug)]
pub struct PendingChange {
    pub change: ChangeId,
    /// Command or tool call, unless the change is only about files.
    pub subject: Subject,
    /// Effect on files.
    pub preview: Preview,
    pub(crate) origin: Origin,
    pub(crate) cause: Cause,
    pub(crate) performer: Performer,
    /// Directories to remove if the change empties them.
    pub(crate) emptied: Vec<WsPath>,
}

/// A proposed change before it is recorded.
pub(crate) struct NewChange {
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

impl NewChange {
    /// Creates a change of files that the engine applies, without a policy decision.
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

/// Result of carrying out a verdict.
#[derive(Debug)]
pub enum DecisionResult {
    /// The approved content is in the tree.
    Applied {
        agent_message: String,
        decision: Decision,
        /// Attributes of files that could not be preserved, such as access lists.
        lost: Vec<(WsPath, Vec<&'static str>)>,
    },
    /// The agent may perform the action. [`Engine::finish`](crate::Engine::finish) records the effects.
    Permitted {
        agent_message: String,
        /// Approved action, with the person's edits.
        subject: Subject,
        /// Approved file changes.
        plan: Plan,
    },
    Denied {
        agent_message: String,
    },
    /// Files changed after the preview, and no file was written. A merged change is pending instead.
    Stale {
        agent_message: String,
        files: Vec<WsPath>,
        /// The merged change.
        next: Box<PendingChange>,
    },
    /// The change could not be applied. No file was written, unless the error says so.
    Failed {
        agent_message: String,
        error: ApplyError,
    },
}

impl PendingChange {
    /// Returns the hash that a verdict must contain.
    pub fn hash(&self) -> ContentHash {
        self.subject.bind(self.preview.hash())
    }

    pub fn session(&self) -> Option<&str> {
        self.origin.session.as_deref()
    }

    /// Returns a verdict that approves the whole change.
    pub fn approval(&self) -> Verdict {
        self.verdict(Answer::Approve)
    }

    /// Returns a person's verdict.
    pub fn verdict(&self, answer: Answer) -> Verdict {
        Verdict { preview: self.hash(), answer, comments: Vec::new(), message: None, by: Decider::PERSON }
    }
}
