//! What the keys mean that a question about a change of files takes.

use sayso_review::Placement;

use crate::visible::visible;

/// What a person can say to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Yes,
    No,
    AllOfFile,
    NoneOfFile,
    NothingMore,
    Split,
    Edit,
    Comment,
    Later,
    Back,
    Quit,
}

impl Key {
    pub(super) fn of(typed: &str) -> Option<Self> {
        Some(match typed {
            "y" => Self::Yes,
            "n" => Self::No,
            "a" => Self::AllOfFile,
            "d" => Self::NoneOfFile,
            "D" => Self::NothingMore,
            "s" => Self::Split,
            "e" => Self::Edit,
            "c" => Self::Comment,
            "j" => Self::Later,
            "k" => Self::Back,
            "q" => Self::Quit,
            _ => return None,
        })
    }
}

const HELP: &str = "\
y  yes, take this
n  no, leave this out
a  take this and everything after it in this file
d  leave out this and everything after it in this file
D  leave out this and everything after it, in all files
s  split this hunk into smaller ones
e  edit the new lines before taking them
c  comment on a line of this, for the agent to read
j  not now: ask again after the others
k  go back to the one before
q  decide nothing now; it waits
?  print this
Nothing is written before the last question is answered.
";

const REVIEW_HELP: &str = "\
y  yes, keep this
n  no, take this back
a  keep this and everything after it in this file
d  take back this and everything after it in this file
D  take back this and everything after it, in all files
s  split this hunk into smaller ones
e  edit the new lines
c  comment on a line of this, for the agent to read
j  not now: ask again after the others
k  go back to the one before
q  decide later; nothing is taken back
?  print this
Nothing is written before the last question is answered.
";

/// What is said to an answer that decides nothing: which keys are offered and what they mean.
pub(super) fn explained(answer: &str, offered: &str, placement: Placement) -> String {
    let help = if placement == Placement::InPlace { REVIEW_HELP } else { HELP };
    // Lines of more than a key are about all of them.
    let is_offered = |line: &&str| match line.split_once("  ") {
        Some((key, _)) => offered.split(',').any(|offered| offered == key),
        None => true,
    };
    let lines: Vec<&str> = help.lines().filter(is_offered).collect();
    format!("{}{}\n", unknown(answer), lines.join("\n"))
}

/// What is said first, unless help was asked for.
pub(crate) fn unknown(answer: &str) -> String {
    match answer {
        "?" => String::new(),
        "" => "One of these keys, and Enter:\n".to_owned(),
        answer => format!("`{}` is not a key here. These are:\n", visible(answer)),
    }
}
