//! Reports of the result of a review, as text or JSON.

use std::process::ExitCode;

use sayso_api::client::ChangeDetails;
use sayso_present::change::applied_text;
use sayso_review::{ChangeRecord, ChangeStatus, ErrorKind, Placement, Ruling, WsPath};
use serde_json::{Value, json};

use super::{FileReview, has_problem};
use crate::error::{CliError, DENIED, REFUSED, exit_code};
use crate::output::say;
use crate::pending::Pending;

impl FileReview<'_> {
    /// Reports a proposal that policy decided.
    pub(in crate::propose) fn report_policy_decision(&mut self, details: ChangeDetails) -> Result<ExitCode, CliError> {
        let is_later = details.record.ruling.as_ref().is_some_and(|ruling| ruling.ruling == Ruling::Later);
        let lost_attributes = details.lost_attributes.clone();
        let decided = Pending::from_details(details);
        let message = decided.record.agent_message.clone().unwrap_or_default();
        if !self.json {
            self.show(&decided)?;
        }
        match &decided.record.status {
            ChangeStatus::Failed { .. } if has_problem(&decided.record.files) => {
                if self.json {
                    self.write_json(&decided, json!({ "outcome": "failed", "agent_message": message }))?;
                }
                self.output.flush()?;
                say(&format!("Error: {message}"));
                Ok(exit_code(ErrorKind::Conflict))
            }
            ChangeStatus::Denied => {
                if self.json {
                    self.write_json(&decided, json!({ "outcome": "denied", "agent_message": message }))?;
                }
                self.output.flush()?;
                if !self.json {
                    say(&format!("Refused; nothing was written. The agent is told: {message}"));
                }
                Ok(ExitCode::from(REFUSED))
            }
            _ => {
                let record = decided.record.clone();
                let code = self.report(&decided, &record, &lost_attributes)?;
                if is_later && !self.json {
                    say("It is reviewed at the end of the turn: `sayso review`.");
                }
                Ok(code)
            }
        }
    }

    /// Reports a change that others decided.
    pub(in crate::propose) fn report_decided(&mut self, record: &ChangeRecord) -> Result<ExitCode, CliError> {
        let message = record.agent_message.clone().unwrap_or_default();
        if self.json {
            let value = json!({ "outcome": record.status, "change": record.change, "agent_message": message });
            self.output.json(&value)?;
        }
        self.output.flush()?;
        if !self.json {
            let told = if message.is_empty() { String::new() } else { format!(" The agent is told: {message}") };
            say(&format!("Change {} is {}.{told}", record.change, record.status));
        }
        Ok(match record.status {
            ChangeStatus::Applied if !record.partial => ExitCode::SUCCESS,
            ChangeStatus::Stale => exit_code(ErrorKind::Stale),
            _ => ExitCode::from(DENIED),
        })
    }

    pub(super) fn report_stale(
        &mut self,
        pending: &Pending,
        merged: &Pending,
        names: &str,
        message: &str,
    ) -> Result<ExitCode, CliError> {
        if self.json {
            let merged = merged.preview(self.engine)?.object();
            self.write_json(pending, json!({ "outcome": "stale", "agent_message": message, "merged": merged }))?;
        } else {
            self.show(merged)?;
            self.output.flush()?;
            say(&format!(
                "Error: {names} changed after it was shown; nothing was written\nHint: propose it again to decide about both changes together"
            ));
        }
        self.output.flush()?;
        Ok(exit_code(ErrorKind::Stale))
    }

    /// Reports the result of a verdict.
    pub(super) fn report(
        &mut self,
        shown: &Pending,
        record: &ChangeRecord,
        lost_attributes: &[(WsPath, Vec<String>)],
    ) -> Result<ExitCode, CliError> {
        let message = record.agent_message.clone().unwrap_or_default();
        let (code, outcome, text) = match &record.status {
            ChangeStatus::Applied | ChangeStatus::Undone { .. } => {
                let is_whole = !record.partial;
                let mut text = applied_text(record);
                for (path, attributes) in lost_attributes {
                    text.push_str(&format!("\nnote: `{path}` could not keep its {}", attributes.join(" and ")));
                }
                let code = if is_whole { ExitCode::SUCCESS } else { ExitCode::from(DENIED) };
                (code, json!({ "outcome": "applied", "partial": !is_whole, "agent_message": message }), text)
            }
            ChangeStatus::Failed { reason } => {
                let outcome = json!({ "outcome": "failed", "reason": reason, "agent_message": message });
                (exit_code(ErrorKind::Unavailable), outcome, format!("Error: {reason}"))
            }
            ChangeStatus::Permitted => {
                (ExitCode::SUCCESS, json!({ "outcome": "permitted", "agent_message": message }), message)
            }
            ChangeStatus::Stale => (exit_code(ErrorKind::Stale), json!({ "outcome": "stale" }), String::new()),
            ChangeStatus::Denied | ChangeStatus::Pending | ChangeStatus::Cancelled | ChangeStatus::Interrupted => {
                let text = format!("Denied; nothing was written. The agent is told: {message}");
                (ExitCode::from(DENIED), json!({ "outcome": "denied", "agent_message": message }), text)
            }
        };
        if self.json {
            self.write_json(shown, outcome)?;
        }
        self.output.flush()?;
        if !self.json {
            say(&text);
            for message in self.queued_messages(shown)? {
                say(&format!("The agent is also told: {message}"));
            }
        }
        Ok(code)
    }

    fn write_json(&mut self, shown: &Pending, mut outcome: Value) -> Result<(), CliError> {
        outcome["change"] = json!(shown.change());
        outcome["preview"] = json!(shown.preview(self.engine)?.object());
        let messages = self.queued_messages(shown)?;
        if !messages.is_empty() {
            outcome["messages"] = json!(messages);
        }
        self.output.json(&outcome)
    }

    /// Takes the queued messages of the proposing agent, which this output delivers.
    fn queued_messages(&self, shown: &Pending) -> Result<Vec<String>, CliError> {
        match shown.session().filter(|_| shown.placement() == Placement::Proposed) {
            Some(session) => self.engine.block(self.engine.client().take_messages(session)),
            None => Ok(Vec::new()),
        }
    }
}
