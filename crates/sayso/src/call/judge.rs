//! Judges a command again just before it starts, with its real arguments, directory and redirections.

use std::ffi::OsStr;
use std::path::Path;

use sayso_gate::CallOrder;
use sayso_review::{Act, CommandPreview, Policy, RedirectAccess, Ruled, Ruling, Script, Who, WsPath};
use sayso_runner::{Judgement, PreparedCommand, Refusal, Report};

use crate::visible::visible;

/// Commands that a message lists at most.
const MAX_LISTED: usize = 5;

/// The rules of an order, compiled.
pub(super) struct Judge<'o> {
    order: &'o CallOrder,
    policy: Policy,
}

impl<'o> Judge<'o> {
    pub(super) fn new(order: &'o CallOrder, policy: Policy) -> Self {
        Self { order, policy }
    }

    /// The directory from the root of the workspace, if it is inside.
    fn start(&self, directory: &Path) -> Option<WsPath> {
        let below = directory.strip_prefix(&self.order.root).ok()?;
        if below.as_os_str().is_empty() { Some(WsPath::root()) } else { WsPath::parse(below.to_str()?).ok() }
    }
}

impl sayso_runner::Judge for Judge<'_> {
    fn judge(&self, command: &PreparedCommand) -> Judgement {
        let Some(text) = text(command) else {
            return Judgement::Refuse { reason: "a word is not UTF-8, which no rule can name".to_owned() };
        };
        let (text, start) = match self.start(&command.directory) {
            Some(start) => (text, start),
            // Outside, as if the command went there itself.
            None => (format!("cd {}\n{text}", quoted(&command.directory.to_string_lossy())), WsPath::root()),
        };
        let mut script = Script::parse(&text);
        let preview = CommandPreview::of_parsed(&text, script.clone(), &start, &self.order.root);
        script.doubts.clone_from(&preview.doubts);
        let act = Act::Run { script: &script, reads: &preview.reads(), writes: &preview.writes() };
        let who = Who { agent: self.order.agent.as_deref(), session: self.order.session.as_deref() };
        let ruled = self.policy.judge(&act, &who);
        if ruled.ruling < Ruling::Ask { Judgement::Proceed } else { Judgement::Refuse { reason: reason(&ruled) } }
    }
}

/// A command with every word quoted, so that the reader finds exactly these words, and the commands behind wrappers such as `env`.
fn text(command: &PreparedCommand) -> Option<String> {
    let mut words = Vec::new();
    for (name, value) in &command.assignments {
        words.push(format!("{}={}", name.to_str()?, quoted(value.to_str()?)));
    }
    for word in &command.argv {
        words.push(quoted(word.to_str()?));
    }
    for redirect in &command.redirects {
        let operator = match redirect.access {
            RedirectAccess::Read => "<",
            RedirectAccess::Write => ">",
            RedirectAccess::Append => ">>",
            RedirectAccess::ReadWrite => "<>",
        };
        words.push(format!("{operator} {}", quoted(redirect.path.to_str()?)));
    }
    Some(words.join(" "))
}

/// The part that is not allowed, and the rule that says so.
fn reason(ruled: &Ruled) -> String {
    let strictest = ruled.parts.iter().find(|part| part.ruling == ruled.ruling);
    let what = strictest.map(|part| format!("{} `{}`", part.access, visible(&part.what))).unwrap_or_default();
    let verb = if ruled.ruling == Ruling::Deny { "denies" } else { "asks about" };
    format!("{} {verb} {what}", ruled.by.short())
}

/// Says what ran and what did not.
pub(super) fn stopped(report: &Report, refusal: &Refusal) -> String {
    let words = |argv: &[std::ffi::OsString]| {
        let words: Vec<_> = argv.iter().map(|word| OsStr::to_string_lossy(word)).collect();
        format!("`{}`", visible(&words.join(" ")))
    };
    let mut ran: Vec<String> = report.ran.iter().take(MAX_LISTED).map(|command| words(&command.argv)).collect();
    let more = report.ran.len() + report.omitted - ran.len();
    if more > 0 {
        ran.push(format!("{more} more"));
    }
    let ran = if ran.is_empty() {
        "Nothing ran before it.".to_owned()
    } else {
        format!("Before it ran: {}.", ran.join(", "))
    };
    format!("stopped before {}: {}. {ran}", words(&refusal.command.argv), refusal.reason)
}

/// A word as the reader takes it literally.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
