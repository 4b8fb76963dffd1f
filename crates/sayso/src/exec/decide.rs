//! Deciding about a command or a call of a tool.

use sayso_api::client::{ClientError, Progress, Shown, View};
use sayso_review::{Answer, ChangeStatus, CommandPreview, ErrorKind, FromNowOn, Subject};

use super::ask::{self, Said};
use super::{Verdict, show};
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::pending::{Pending, overtaken};
use crate::propose::ask::Questions;
use crate::terminal::Terminal;

/// Somebody who is asked.
pub(crate) struct Asking<'a> {
    pub(crate) connected: &'a Connected,
    /// The workspace's root.
    pub(crate) root: &'a str,
    pub(crate) questions: &'a mut Questions,
    pub(crate) terminal: Terminal,
}

impl Asking<'_> {
    /// Asks until there is an answer, and carries it out. Others can decide meanwhile.
    pub(crate) fn decide(&mut self, pending: &Pending, output: &mut Output) -> Result<Verdict, Failure> {
        let client = self.connected.client();
        loop {
            let (answer, from_now_on) = match ask::ask(pending, self.questions, output)? {
                Said::DryRun => {
                    let dry_run = self.connected.block(client.rehearse(pending.change()))?;
                    output.write(ask::rehearsed(&dry_run).as_bytes())?;
                    continue;
                }
                Said::Nothing => return self.left(pending),
                Said::Left(leaving) => return Ok(Verdict::Left(leaving)),
                Said::Answer(answer, from_now_on) => (answer, from_now_on),
            };
            if let (Answer::Command { command }, Subject::Command { directory, .. }) =
                (&answer, &pending.record.subject)
            {
                // What runs instead is shown before it runs, like anything else.
                let preview = CommandPreview::of(command, directory, self.root);
                output.write(show::command(&preview, self.terminal).as_bytes())?;
                if self.questions.line(output, "Run this instead [y,n]? ")?.as_deref() != Some("y") {
                    continue;
                }
            }
            match self.send(pending, answer, from_now_on) {
                Ok(progress) => {
                    if let Some(kept) = &progress.rule_kept {
                        say(&format!("note: {}", rule_text(kept)));
                    }
                    return Ok(Verdict::of(&progress.record));
                }
                Err(error) => {
                    if let Some(verdict) = self.decided_elsewhere(pending, &error)? {
                        return Ok(verdict);
                    }
                    output.write(format!("{error}\n").as_bytes())?;
                }
            }
        }
    }

    /// What became of it that nobody answered here.
    fn left(&self, pending: &Pending) -> Result<Verdict, Failure> {
        let client = self.connected.client();
        let now = self.connected.block(client.get_change(pending.change(), View::Nothing, Shown::Proposed))?;
        if now.record.status != ChangeStatus::Pending {
            return Ok(Verdict::of(&overtaken(self.connected, pending.change())?));
        }
        Ok(Verdict::of(&now.record))
    }

    /// Gives an answer; for this time only, where it cannot be one for what comes, too.
    fn send(&self, pending: &Pending, answer: Answer, from_now_on: Option<FromNowOn>) -> Result<Progress, ClientError> {
        let client = self.connected.client();
        let verdict = pending.verdict(answer, Vec::new());
        let decide =
            |meant| self.connected.wait(client.decide(pending.change(), verdict.clone(), meant, View::Nothing));
        match decide(from_now_on) {
            Err(error) if from_now_on.is_some() && error.kind() == ErrorKind::InvalidArgs => {
                let decided = decide(None)?;
                say(&format!("note: decided for this time only: {error}"));
                Ok(decided)
            }
            decided => decided,
        }
    }

    /// What somebody else decided first; `None` if it waits still and the answer can be another one.
    fn decided_elsewhere(&self, pending: &Pending, error: &ClientError) -> Result<Option<Verdict>, Failure> {
        let change = pending.change();
        let now = self.connected.block(self.connected.client().get_change(change, View::Nothing, Shown::Proposed))?;
        if now.record.status == ChangeStatus::Pending {
            return match error.kind() {
                ErrorKind::ToolDenied | ErrorKind::InvalidArgs => Ok(None),
                kind => Err(Failure::of(kind, error.to_string())),
            };
        }
        Ok(Some(Verdict::of(&overtaken(self.connected, change)?)))
    }
}

/// What is said of a rule for what comes, from where the engine says that it is.
fn rule_text(kept: &str) -> String {
    const COVERS: &str = "these very words and the files that they name";
    match (kept.strip_prefix("in "), kept.strip_prefix("nowhere: ")) {
        (Some(path), _) => format!("a rule in {path} allows {COVERS}"),
        (None, Some(why)) => format!("decided for this time only: {why}"),
        (None, None) => format!("{COVERS} are allowed {kept}"),
    }
}
