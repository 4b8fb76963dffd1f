//! The command line with which an agent's shell runs a command through `sayso call`.
//!
//! The agent's shell may redefine commands by functions, aliases and sourced snapshots. It therefore reads one constant text:
//! the absolute path of sayso, `call` and the order's id. Each is in single quotes, which bash, dash, zsh and fish parse alike.
//! A comment shows the original command to the user.

use crate::Agent;

/// Maximum length of the original command in the comment.
const MAX_COMMENT_CHARS: usize = 80;

/// Effect of a command on the working directory of the agent's next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkingDirectory {
    /// The command does not change the directory, or the agent resets it.
    Unchanged,
    /// The agent's next command starts where this one ends.
    Kept,
}

impl WorkingDirectory {
    /// Only Claude Code keeps the directory between commands.
    pub fn after(agent: Agent, changes_directory: bool) -> Self {
        if agent == Agent::Claude && changes_directory { Self::Kept } else { Self::Unchanged }
    }
}

/// Returns the command line. `program` is the absolute path of sayso and contains no single quote.
pub fn call_text(program: &str, id: &str, original: &str, directory: WorkingDirectory) -> String {
    let comment = comment(original);
    match directory {
        WorkingDirectory::Unchanged => format!("'{program}' 'call' '{id}' # {comment}"),
        // No `exec`: Claude Code appends a command that prints the directory.
        WorkingDirectory::Kept => {
            format!("'{program}' 'call' '{id}' && 'cd' '--' \"$('{program}' 'call-cwd' '{id}')\" # {comment}")
        }
    }
}

/// Returns the order's id from a command line of [`call_text`].
pub fn call_id(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\'')?;
    let (_, rest) = rest.split_once("' 'call' '")?;
    let (id, _) = rest.split_once('\'')?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// Returns the first line of a command without control characters, which could end the comment or move the cursor.
fn comment(original: &str) -> String {
    let line = original.trim().lines().next().unwrap_or_default();
    let shown: String = line.chars().filter(|character| !character.is_control()).take(MAX_COMMENT_CHARS).collect();
    let truncated = line.chars().count() > MAX_COMMENT_CHARS || original.trim().lines().count() > 1;
    if truncated { format!("{shown} …") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn call_text_varies_by_id_and_comment_only() {
        let text = call_text("/usr/bin/sayso", ID, "git status\nrm x", WorkingDirectory::Unchanged);
        assert_eq!(text, format!("'/usr/bin/sayso' 'call' '{ID}' # git status …"));
        assert_eq!(call_id(&text), Some(ID));
        let text = call_text("/usr/bin/sayso", ID, "cd src", WorkingDirectory::after(Agent::Claude, true));
        let cd = format!("'cd' '--' \"$('/usr/bin/sayso' 'call-cwd' '{ID}')\"");
        assert_eq!(text, format!("'/usr/bin/sayso' 'call' '{ID}' && {cd} # cd src"));
        assert_eq!(call_id(&text), Some(ID));
    }

    #[test]
    fn comment_has_one_line_and_no_controls() {
        let text = call_text("/s", ID, "echo \u{1b}[31m\r; ls", WorkingDirectory::Unchanged);
        assert_eq!(text, format!("'/s' 'call' '{ID}' # echo [31m; ls"));
        assert_eq!(call_id("git status"), None);
        assert_eq!(call_id("'/s' 'call' 'short'"), None);
    }
}
