//! The question about a command or a tool call: which answers it takes, and what each one leads to.

use sayso_review::{Answer, ChangeRecord, CommandPreview, ErrorKind, RememberAs, RuleScope, Ruling, Subject, WsPath};

use crate::command::command_directory;
use crate::file_review::{Leave, unknown_key};

const HELP: &str = "\
y  yes, run it
n  no; you are asked why
e  edit the command; the one that is to run instead is shown before it runs
d  show what a dry run says, where one is possible
s  yes, and by the rule that is shown for the rest of the session
a  yes, and by the rule that is shown always: you see the rule and its file before it is written
j  not now: ask again after the others
k  go back to the one before
q  decide nothing now; it waits
?  this help
";

/// The question for the reason of a denial.
pub const REASON_QUESTION: &str = "Why? The agent is told (Enter for no reason): ";

/// The rule of the key `a`.
pub const ALWAYS: RememberAs = RememberAs { scope: RuleScope::Always, ruling: Ruling::Allow };

/// The question below a suggested rule.
pub const ALWAYS_QUESTION: &str = "Write this rule, and go ahead [y,n]? ";

/// A person's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandChoice {
    /// Approve. With a rule, similar commands run without a question later.
    Approve(Option<RememberAs>),
    /// Show the suggested rule, ask with [`ALWAYS_QUESTION`], then approve with [`ALWAYS`].
    Always,
    /// Ask for a reason, then deny.
    Deny,
    /// Let the person edit the command, then show it again.
    Edit,
    /// Show the dry run, then ask again.
    DryRun,
    Leave(Leave),
    /// Show this text, then ask again.
    Help(String),
}

/// The question about a pending command or tool call.
#[derive(Debug)]
pub struct CommandPrompt<'c> {
    /// `None` for a tool call.
    command: Option<(&'c str, &'c WsPath, &'c CommandPreview)>,
    keys: Vec<&'static str>,
}

impl<'c> CommandPrompt<'c> {
    /// Prepares the question about a change.
    pub fn new(record: &'c ChangeRecord) -> Self {
        let command = match &record.subject {
            Subject::Command { command, directory, preview, .. } => Some((command.as_str(), directory, &**preview)),
            Subject::Files | Subject::Tool { .. } => None,
        };
        let has_dry_run = command.is_some_and(|(_, _, preview)| preview.dry_run.is_some());
        let optional = [("e", command.is_some()), ("d", has_dry_run), ("s", record.origin.session.is_some())];
        let offered = optional.into_iter().filter(|(_, is_offered)| *is_offered).map(|(key, _)| key);
        let keys = ["y", "n"].into_iter().chain(offered).chain(["a", "j", "k", "q", "?"]).collect();
        Self { command, keys }
    }

    /// The question with its keys, ready to show.
    pub fn text(&self) -> String {
        let question = match self.command {
            Some((_, _, preview)) => format!("Run it in {}", command_directory(preview)),
            None => "Allow it".to_owned(),
        };
        format!("{question} [{}]? ", self.keys.join(","))
    }

    /// The command as proposed. `None` for a tool call.
    pub fn command(&self) -> Option<&'c str> {
        self.command.map(|(command, _, _)| command)
    }

    /// Reads a line.
    pub fn parse(&self, line: &str) -> CommandChoice {
        let remember = |scope| CommandChoice::Approve(Some(RememberAs { scope, ruling: Ruling::Allow }));
        match line {
            _ if !self.keys.contains(&line) => CommandChoice::Help(self.help(line)),
            "y" => CommandChoice::Approve(None),
            "n" => CommandChoice::Deny,
            "e" => CommandChoice::Edit,
            "d" => CommandChoice::DryRun,
            "s" => remember(RuleScope::Session),
            "a" => CommandChoice::Always,
            "j" => CommandChoice::Leave(Leave::Later),
            "k" => CommandChoice::Leave(Leave::Back),
            "q" => CommandChoice::Leave(Leave::Quit),
            _ => CommandChoice::Help(self.help(line)),
        }
    }

    fn help(&self, line: &str) -> String {
        let is_offered = |line: &&str| self.keys.iter().any(|key| line.starts_with(key));
        let lines: Vec<&str> = HELP.lines().filter(is_offered).collect();
        format!("{}{}\n", unknown_key(line), lines.join("\n"))
    }

    /// Analyses an edited command. It is shown before it runs. `root` is the root of the workspace.
    pub fn preview_edited(&self, edited: &str, root: &str) -> Option<CommandPreview> {
        self.command.map(|(_, directory, _)| CommandPreview::of(edited, directory, root))
    }
}

/// The answer for a denial. An empty reason is none.
pub fn deny(reason: &str) -> Answer {
    Answer::Deny { reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()) }
}

/// `true` if a verdict that failed with this kind may be given again without its rule: the rule is what does not fit.
pub fn may_retry_without_rule(kind: ErrorKind) -> bool {
    kind == ErrorKind::InvalidArgs
}

/// `true` if another answer may be given after a verdict failed with this kind.
pub fn may_answer_again(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ToolDenied | ErrorKind::InvalidArgs)
}
