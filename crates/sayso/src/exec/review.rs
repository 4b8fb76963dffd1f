//! Asks a person about a command or a tool call, and carries the answer out.

use sayso_api::client::{ChangeDetails, ClientError, PreviewDetail, PreviewOf, RememberedRule, RuleSuggestion};
use sayso_present::command::{render_command, render_dry_run};
use sayso_present::command_prompt::{
    ALWAYS, ALWAYS_QUESTION, CommandChoice, CommandPrompt, REASON_QUESTION, deny, may_answer_again,
    may_retry_without_rule,
};
use sayso_present::file_review::Leave;
use sayso_present::rule_suggestion::{no_rule_offer, render_rule_suggestion, rule_offer};
use sayso_review::{Answer, ChangeRecord, ChangeStatus, RememberAs, Subject, Verdict};

use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::pending::{Pending, report_decided_elsewhere};
use crate::propose::editor;
use crate::propose::prompt::Prompter;
use crate::terminal::Terminal;

/// The result of a question about a command or tool call.
pub(crate) enum CommandOutcome {
    Permitted(Subject),
    /// Holds the message to the agent.
    Denied(String),
    /// Still pending, because input ended.
    Undecided,
    /// Still pending, because the person went elsewhere.
    Left(Leave),
    /// Ended without a verdict, or carried out by now.
    Ended(ChangeStatus),
}

impl CommandOutcome {
    pub(crate) fn of(record: &ChangeRecord) -> Self {
        match record.status {
            ChangeStatus::Permitted => Self::Permitted(record.approved()),
            ChangeStatus::Denied | ChangeStatus::Failed { .. } => {
                Self::Denied(record.agent_message.clone().unwrap_or_default())
            }
            ChangeStatus::Pending => Self::Undecided,
            _ => Self::Ended(record.status.clone()),
        }
    }
}

/// A person who is asked about commands and tool calls.
pub(crate) struct CommandReview<'a> {
    pub(crate) engine: &'a EngineConnection,
    /// Root of the workspace.
    pub(crate) root: &'a str,
    pub(crate) prompter: &'a mut Prompter,
    pub(crate) terminal: Terminal,
    /// Message to the agent with the verdict.
    pub(crate) message: Option<&'a str>,
}

impl CommandReview<'_> {
    /// Asks until there is an answer, and carries it out. Others may decide meanwhile.
    pub(crate) fn decide(&mut self, pending: &Pending, output: &mut Output) -> Result<CommandOutcome, CliError> {
        let prompt = CommandPrompt::new(&pending.record);
        let suggestion = self.suggest_rule(pending, output)?;
        loop {
            let Some(line) = self.prompter.line(output, &prompt.text())? else {
                return self.after_end_of_input(pending);
            };
            let (answer, remember) = match prompt.parse(&line) {
                CommandChoice::Approve(remember) => (Answer::Approve, remember),
                CommandChoice::Always => match self.confirm_rule(suggestion.as_ref(), output)? {
                    Some(true) => (Answer::Approve, Some(ALWAYS)),
                    Some(false) => continue,
                    None => return self.after_end_of_input(pending),
                },
                CommandChoice::Leave(leave) => return Ok(CommandOutcome::Left(leave)),
                CommandChoice::Deny => match self.prompter.line(output, REASON_QUESTION)? {
                    Some(reason) => (deny(&reason), None),
                    None => return self.after_end_of_input(pending),
                },
                CommandChoice::Edit => match self.edit(&prompt, output)? {
                    Some(command) => (Answer::Command { command }, None),
                    None => continue,
                },
                CommandChoice::DryRun => {
                    let dry_run = self.engine.block(self.engine.client().dry_run(pending.change()))?;
                    output.write(render_dry_run(&dry_run).as_bytes())?;
                    continue;
                }
                CommandChoice::Help(help) => {
                    output.write(help.as_bytes())?;
                    continue;
                }
            };
            match self.send(pending, &answer, remember) {
                Ok(details) => {
                    if let Some(rule) = &details.remembered_rule {
                        say(&format!("note: {}", remembered_rule_text(rule)));
                    }
                    return Ok(CommandOutcome::of(&details.record));
                }
                Err(error) => {
                    if let Some(outcome) = self.outcome_after_failure(pending, &error)? {
                        return Ok(outcome);
                    }
                    output.write(format!("{error}\n").as_bytes())?;
                }
            }
        }
    }

    /// Shows in one line the rule that the keys `a` and `s` create. `None` if there can be none.
    fn suggest_rule(&self, pending: &Pending, output: &mut Output) -> Result<Option<RuleSuggestion>, CliError> {
        let suggested = self.engine.wait(self.engine.client().suggest_rule(pending.change(), ALWAYS));
        let (offer, suggestion) = match suggested {
            Ok(suggestion) => (rule_offer(&suggestion), Some(suggestion)),
            Err(ClientError::Remote(error)) if may_retry_without_rule(error.kind) => {
                (no_rule_offer(&error.message), None)
            }
            // Decided elsewhere by now, which the answer will show.
            Err(ClientError::Remote(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        output.write(format!("{offer}\n").as_bytes())?;
        Ok(suggestion)
    }

    /// Shows the rule, its file and the decisions that it would have covered, and asks for confirmation. `None` at the end of input.
    fn confirm_rule(
        &mut self,
        suggestion: Option<&RuleSuggestion>,
        output: &mut Output,
    ) -> Result<Option<bool>, CliError> {
        // Without a rule, the engine tells why when it gets the verdict.
        let Some(suggestion) = suggestion else { return Ok(Some(true)) };
        output.styled(&render_rule_suggestion(suggestion), self.terminal)?;
        Ok(self.prompter.line(output, ALWAYS_QUESTION)?.map(|line| line == "y"))
    }

    /// Lets the person edit the command, shows the result, and asks for confirmation. `None` if the old command stands.
    fn edit(&mut self, prompt: &CommandPrompt<'_>, output: &mut Output) -> Result<Option<String>, CliError> {
        let Some(command) = prompt.command() else { return Ok(None) };
        let edited = if editor::is_available() {
            output.flush()?;
            editor::edit_command(command)?
        } else {
            let question = format!("Instead of `{}`: ", sayso_present::escape::escape_unprintable(command));
            self.prompter.line(output, &question)?.filter(|line| !line.is_empty())
        };
        let Some(edited) = edited else { return Ok(None) };
        if let Some(preview) = prompt.preview_edited(&edited, self.root) {
            output.styled(&render_command(&preview), self.terminal)?;
        }
        let confirmed = self.prompter.line(output, "Run this instead [y,n]? ")?.as_deref() == Some("y");
        Ok(confirmed.then_some(edited))
    }

    fn after_end_of_input(&self, pending: &Pending) -> Result<CommandOutcome, CliError> {
        let change = pending.change();
        let now = self.engine.client().get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed);
        let now = self.engine.block(now)?.record;
        if now.status == ChangeStatus::Pending {
            return Ok(CommandOutcome::Undecided);
        }
        Ok(CommandOutcome::of(&report_decided_elsewhere(self.engine, change)?))
    }

    /// Sends a verdict. If its rule is not accepted, sends it again without the rule.
    fn send(
        &self,
        pending: &Pending,
        answer: &Answer,
        remember: Option<RememberAs>,
    ) -> Result<ChangeDetails, ClientError> {
        let client = self.engine.client();
        let message = self.message.map(ToOwned::to_owned);
        let verdict = Verdict { message, ..pending.verdict(answer.clone(), Vec::new()) };
        let decide = |remember| {
            let call = client.decide(pending.change(), verdict.clone(), remember, PreviewDetail::Omitted);
            self.engine.wait(call)
        };
        match decide(remember) {
            Err(error) if remember.is_some() && may_retry_without_rule(error.kind()) => {
                let decided = decide(None)?;
                say(&format!("note: decided for this time only: {error}"));
                Ok(decided)
            }
            decided => decided,
        }
    }

    /// Returns the outcome if others decided first. `None` if the person may answer again.
    fn outcome_after_failure(
        &self,
        pending: &Pending,
        error: &ClientError,
    ) -> Result<Option<CommandOutcome>, CliError> {
        let change = pending.change();
        let now = self.engine.client().get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed);
        if self.engine.block(now)?.record.status == ChangeStatus::Pending {
            if may_answer_again(error.kind()) {
                return Ok(None);
            }
            return Err(CliError::new(error.kind(), error.to_string()));
        }
        Ok(Some(CommandOutcome::of(&report_decided_elsewhere(self.engine, change)?)))
    }
}

/// Describes the rule that a verdict created.
fn remembered_rule_text(rule: &RememberedRule) -> String {
    const COVERED: &str = "these very words and the files that they name";
    match rule {
        RememberedRule::File(path) => format!("a rule in {path} allows {COVERED}"),
        RememberedRule::Session => format!("{COVERED} are allowed for the rest of the session"),
        RememberedRule::Failed(reason) => format!("decided for this time only: {reason}"),
    }
}
