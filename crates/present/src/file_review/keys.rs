//! Keys, as `git add -p` has them, and their explanations.

use sayso_review::Placement;

use crate::escape::escape_unprintable;

/// An answer to a question about a hunk or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Yes,
    No,
    /// Approves the current hunk and all later hunks of the file.
    AllOfFile,
    /// Denies the current hunk and all later hunks of the file.
    NoneOfFile,
    /// Denies the current hunk and all later hunks of the change.
    NoneOfChange,
    Split,
    Edit,
    Comment,
    Leave(Leave),
}

/// The direction in which a person leaves a change without a decision. It stays pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// To the next one.
    Later,
    /// To the previous one.
    Back,
    Quit,
}

impl Key {
    fn parse(typed: &str) -> Option<Self> {
        Some(match typed {
            "y" => Self::Yes,
            "n" => Self::No,
            "a" => Self::AllOfFile,
            "d" => Self::NoneOfFile,
            "D" => Self::NoneOfChange,
            "s" => Self::Split,
            "e" => Self::Edit,
            "c" => Self::Comment,
            "j" => Self::Leave(Leave::Later),
            "k" => Self::Leave(Leave::Back),
            "q" => Self::Leave(Leave::Quit),
            _ => return None,
        })
    }
}

/// A question and the keys that answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The question with the keys, ready to show.
    pub text: String,
    keys: Vec<&'static str>,
    placement: Placement,
}

impl Prompt {
    pub(super) fn new(question: &str, keys: Vec<&'static str>, placement: Placement) -> Self {
        let text = format!("{question} [{}]? ", keys.join(","));
        Self { text, keys, placement }
    }

    /// The question that confirms edited lines.
    pub fn confirm_edit(placement: Placement) -> Self {
        Self::new("Take it as edited", vec!["y", "n", "?"], placement)
    }

    /// Reads a line. `Err` holds the help to show before asking again.
    pub fn parse(&self, line: &str) -> Result<Key, String> {
        if self.keys.contains(&line)
            && let Some(key) = Key::parse(line)
        {
            return Ok(key);
        }
        if line == "s" && self.keys.contains(&"a") {
            return Err("This cannot be split any further.\n".to_owned());
        }
        Err(self.help(line))
    }

    /// Explains the offered keys.
    fn help(&self, line: &str) -> String {
        let help = if self.placement == Placement::InPlace { REVIEW_HELP } else { HELP };
        // A line without two blanks explains no key and is about all of them.
        let is_offered = |line: &&str| match line.split_once("  ") {
            Some((key, _)) => self.keys.contains(&key),
            None => true,
        };
        let lines: Vec<&str> = help.lines().filter(is_offered).collect();
        format!("{}{}\n", unknown_key(line), lines.join("\n"))
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

/// The sentence above an explanation of keys. Empty if the person asked for help.
pub fn unknown_key(line: &str) -> String {
    match line {
        "?" => String::new(),
        "" => "One of these keys, and Enter:\n".to_owned(),
        line => format!("`{}` is not a key here. These are:\n", escape_unprintable(line)),
    }
}
