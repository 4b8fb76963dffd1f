//! Judges a command again just before it starts, with its real arguments, directory and redirections.

use std::ffi::OsStr;
use std::path::Path;

use sayso_gate::CallOrder;
use sayso_review::{
    CommandPreview, Policy, PolicyDecision, PolicyQuery, Principal, RedirectAccess, Ruling, Script, WsPath,
};
use sayso_runner::{Judgement, PreparedCommand, Refusal, Report};

use sayso_present::escape::escape_unprintable;

/// Commands that a message lists at most.
const MAX_LISTED: usize = 5;

/// Judges commands by the rules of an order.
pub(super) struct CallJudge<'o> {
    order: &'o CallOrder,
    policy: Policy,
}

impl<'o> CallJudge<'o> {
    pub(super) fn new(order: &'o CallOrder, policy: Policy) -> Self {
        Self { order, policy }
    }

    /// Returns a directory relative to the workspace. `None` outside.
    fn workspace_directory(&self, directory: &Path) -> Option<WsPath> {
        let below = directory.strip_prefix(&self.order.root).ok()?;
        if below.as_os_str().is_empty() { Some(WsPath::root()) } else { WsPath::parse(below.to_str()?).ok() }
    }
}

impl sayso_runner::Judge for CallJudge<'_> {
    fn judge(&self, command: &PreparedCommand) -> Judgement {
        let Some(text) = text(command) else {
            return Judgement::Refuse { reason: "a word is not UTF-8, which no rule can name".to_owned() };
        };
        let (text, start) = match self.workspace_directory(&command.directory) {
            Some(start) => (text, start),
            // A directory outside is judged like a `cd` to it.
            None => (format!("cd {}\n{text}", quoted(&command.directory.to_string_lossy())), WsPath::root()),
        };
        let mut script = Script::parse(&text);
        let preview = CommandPreview::of_parsed(&text, script.clone(), &start, &self.order.root);
        script.uncertainties.clone_from(&preview.uncertainties);
        let act = PolicyQuery::Run { script: &script, reads: &preview.reads(), writes: &preview.writes() };
        let who = Principal { agent: self.order.agent.as_deref(), session: self.order.session.as_deref() };
        let ruled = self.policy.evaluate(&act, &who);
        if ruled.ruling < Ruling::Ask { Judgement::Proceed } else { Judgement::Refuse { reason: reason(&ruled) } }
    }
}

/// Formats a command with every word quoted. The parser then finds exactly these words, and the commands behind wrappers such as `env`.
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

/// Names the part that is not allowed, and the deciding rule.
fn reason(ruled: &PolicyDecision) -> String {
    let strictest = ruled.parts.iter().find(|part| part.ruling == ruled.ruling);
    let what =
        strictest.map(|part| format!("{} `{}`", part.access, escape_unprintable(&part.target))).unwrap_or_default();
    let verb = if ruled.ruling == Ruling::Deny { "denies" } else { "asks about" };
    format!("{} {verb} {what}", ruled.rule.short_name())
}

/// Describes the commands that ran and the refused command.
pub(super) fn stopped(report: &Report, refusal: &Refusal) -> String {
    let words = |argv: &[std::ffi::OsString]| {
        let words: Vec<_> = argv.iter().map(|word| OsStr::to_string_lossy(word)).collect();
        format!("`{}`", escape_unprintable(&words.join(" ")))
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

/// Quotes a word, so that the parser takes it literally.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
