//! Asks about a command or a call of a tool.

use sayso_review::{
    Act, Answer, CommandPreview, DryRunEnd, DryRunOutput, FromNowOn, Rule, RuleScope, Ruling, Script, Subject, Who,
};

use super::show;
use crate::failure::Failure;
use crate::output::Output;
use crate::pending::Pending;
use crate::propose::ask::{Leaving, Questions};
use crate::propose::{edit, keys};
use crate::visible::visible;

/// What a person said to a command.
pub(crate) enum Said {
    /// This.
    Answer(Answer, Option<FromNowOn>),
    /// Show the rehearsal first.
    DryRun,
    /// Nothing for now: it waits.
    Left(Leaving),
    /// Nothing: the answers ended.
    Nothing,
}

const HELP: &str = "\
y  yes, run it
n  no; you are asked why
e  edit the command; the one that is to run instead is shown before it runs
d  show what a dry run says, where one is possible
s  yes, and by the rule that is shown for the rest of the session
a  yes, and by the rule that is shown always: it is written to your configuration
j  not now: ask again after the others
k  go back to the one before
q  decide nothing now; it waits
?  this help
";

/// Asks once.
pub(crate) fn ask(pending: &Pending, questions: &mut Questions, output: &mut Output) -> Result<Said, Failure> {
    let (question, command, rehearses) = match &pending.record.subject {
        Subject::Command { command, preview, .. } => {
            (format!("Run it in {}", show::directory(preview)), Some(command), preview.dry_run.is_some())
        }
        Subject::Files | Subject::Tool { .. } => ("Allow it".to_owned(), None, false),
    };
    let in_session = pending.session().is_some();
    let optional = [("e", command.is_some()), ("d", rehearses), ("s", in_session)];
    let optional = optional.iter().filter(|(_, offered)| *offered).map(|(key, _)| *key);
    let offers: Vec<&str> = ["y", "n"].into_iter().chain(optional).chain(["a", "j", "k", "q", "?"]).collect();
    if let Some(offer) = offered_rule(&pending.record.subject) {
        output.write(format!("{offer}\n").as_bytes())?;
    }
    loop {
        let Some(line) = questions.line(output, &format!("{question} [{}]? ", offers.join(",")))? else {
            return Ok(Said::Nothing);
        };
        let always = |scope| Some(FromNowOn { scope, ruling: Ruling::Allow });
        match line.as_str() {
            "y" => return Ok(Said::Answer(Answer::Approve, None)),
            "s" if in_session => return Ok(Said::Answer(Answer::Approve, always(RuleScope::Session))),
            "a" => return Ok(Said::Answer(Answer::Approve, always(RuleScope::Always))),
            "d" if rehearses => return Ok(Said::DryRun),
            "j" => return Ok(Said::Left(Leaving::Later)),
            "k" => return Ok(Said::Left(Leaving::Back)),
            "q" => return Ok(Said::Left(Leaving::Quit)),
            "e" if let Some(command) = command => {
                if let Some(command) = edited(command, questions, output)? {
                    return Ok(Said::Answer(Answer::Command { command }, None));
                }
            }
            "n" => {
                let reason = questions.line(output, "Why? The agent is told (Enter for no reason): ")?;
                let Some(reason) = reason else { return Ok(Said::Nothing) };
                let reason = Some(reason).filter(|reason| !reason.is_empty());
                return Ok(Said::Answer(Answer::Deny { reason }, None));
            }
            other => {
                let known = |line: &&str| offers.iter().any(|key| line.starts_with(key));
                let help: Vec<&str> = HELP.lines().filter(known).collect();
                output.write(format!("{}{}\n", keys::unknown(other), help.join("\n")).as_bytes())?;
            }
        }
    }
}

/// The rule that an approval of a command for later makes, shown before it is made.
fn offered_rule(subject: &Subject) -> Option<String> {
    let Subject::Command { command, preview, .. } = subject else { return None };
    let script = Script { doubts: preview.doubts.clone(), ..CommandPreview::read(command) };
    let act = Act::Run { script: &script, reads: &preview.reads(), writes: &preview.writes() };
    let always = FromNowOn { scope: RuleScope::Always, ruling: Ruling::Allow };
    Some(match Rule::from_now_on(&act, &Who::default(), always) {
        Ok(rule) => format!("rule of a and s: allow {}", visible(&rule.about())),
        Err(error) => format!("rule of a and s: none, {}", visible(&error.to_string())),
    })
}

/// The command as the person edits it: in their editor, or where there is none, typed anew.
fn edited(command: &str, questions: &mut Questions, output: &mut Output) -> Result<Option<String>, Failure> {
    if edit::has_editor() {
        output.flush()?;
        return edit::command(command);
    }
    let line = questions.line(output, &format!("Instead of `{}`: ", visible(command)))?;
    Ok(line.filter(|line| !line.is_empty()))
}

/// What a rehearsal said.
pub(crate) fn rehearsed(dry_run: &DryRunOutput) -> String {
    let mut text = String::new();
    for line in dry_run.output.lines().chain(dry_run.errors.lines()) {
        text.push_str(&format!("  {}\n", visible(line)));
    }
    if dry_run.is_cut {
        text.push_str("  …\n");
    }
    match &dry_run.end {
        DryRunEnd::Exited { code: 0 } if text.is_empty() => text.push_str("  (it would do nothing)\n"),
        DryRunEnd::Exited { code: 0 } => {}
        DryRunEnd::Exited { code } => text.push_str(&format!("  (the dry run ended with {code})\n")),
        DryRunEnd::Signalled { signal } => text.push_str(&format!("  (signal {signal} ended the dry run)\n")),
        DryRunEnd::TimedOut => text.push_str("  (the dry run took too long)\n"),
        DryRunEnd::NotStarted { reason } => text.push_str(&format!("  (the dry run could not be started: {reason})\n")),
    }
    text
}
