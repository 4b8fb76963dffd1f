//! The command line by which an agent's shell carries out a command through `sayso call`.
//!
//! Whatever the agent's shell makes of a command (functions, aliases, snapshots that it sources), it reads one constant text: the absolute
//! path of sayso, `call` and the id of the order, each in single quotes, which bash, dash, zsh and fish read alike. A comment shows the user
//! what is carried out.

use super::agent::Agent;

/// Longest part of the original command in the comment, in characters.
const MAX_COMMENT: usize = 80;

/// Whether the agent's next command starts where this one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// The command leaves the working directory as it is, or the agent does not keep it.
    Unchanged,
    /// The command changes it, and the agent keeps it.
    Kept,
}

impl Folder {
    /// What an agent does with the working directory of a command. Only Claude Code keeps it for the next one.
    pub fn of(agent: Agent, changes_directory: bool) -> Self {
        if agent == Agent::Claude && changes_directory { Self::Kept } else { Self::Unchanged }
    }
}

/// Composes the text. `program` is the absolute path of sayso, without single quotes.
pub fn call_text(program: &str, id: &str, original: &str, folder: Folder) -> String {
    let comment = comment(original);
    match folder {
        Folder::Unchanged => format!("'{program}' 'call' '{id}' # {comment}"),
        // Not `exec`: Claude Code asks for the directory behind the command.
        Folder::Kept => {
            format!("'{program}' 'call' '{id}' && 'cd' '--' \"$('{program}' 'call-cwd' '{id}')\" # {comment}")
        }
    }
}

/// Returns the id in a text of [`call_text`].
pub fn call_id(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\'')?;
    let (_, rest) = rest.split_once("' 'call' '")?;
    let (id, _) = rest.split_once('\'')?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// The first line of a command, without characters that end a comment or move a cursor.
fn comment(original: &str) -> String {
    let line = original.trim().lines().next().unwrap_or_default();
    let shown: String = line.chars().filter(|character| !character.is_control()).take(MAX_COMMENT).collect();
    let cut = line.chars().count() > MAX_COMMENT || original.trim().lines().count() > 1;
    if cut { format!("{shown} …") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn call_text_is_constant_but_for_id_and_comment() {
        let text = call_text("/usr/bin/sayso", ID, "git status\nrm x", Folder::Unchanged);
        assert_eq!(text, format!("'/usr/bin/sayso' 'call' '{ID}' # git status …"));
        assert_eq!(call_id(&text), Some(ID));
        let text = call_text("/usr/bin/sayso", ID, "cd src", Folder::of(Agent::Claude, true));
        let cd = format!("'cd' '--' \"$('/usr/bin/sayso' 'call-cwd' '{ID}')\"");
        assert_eq!(text, format!("'/usr/bin/sayso' 'call' '{ID}' && {cd} # cd src"));
        assert_eq!(call_id(&text), Some(ID));
    }

    #[test]
    fn comment_never_spans_lines_or_holds_controls() {
        let text = call_text("/s", ID, "echo \u{1b}[31m\r; ls", Folder::Unchanged);
        assert_eq!(text, format!("'/s' 'call' '{ID}' # echo [31m; ls"));
        assert_eq!(call_id("git status"), None);
        assert_eq!(call_id("'/s' 'call' 'short'"), None);
    }
}
