//! Folders outside the workspace that belong to an agent or that the user grants it.

use crate::Agent;

/// Folders below an agent's home that contain only the agent's own files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFolders {
    /// Environment variable that names the agent's home.
    pub variable: &'static str,
    /// The agent's home relative to the user's, if the variable is not set.
    pub below_home: &'static str,
    /// Folders that the agent may read without a rule of the user: plans, to-do lists, transcripts.
    pub read: &'static [&'static str],
    /// Folders that the agent may write without a rule of the user, with its own tools.
    pub write: &'static [&'static str],
}

impl Agent {
    /// Returns `None` for an agent without hooks: sayso decides none of its tool calls.
    pub fn own_folders(self) -> Option<OwnFolders> {
        Some(match self {
            Self::Claude => OwnFolders {
                variable: "CLAUDE_CONFIG_DIR",
                below_home: ".claude",
                read: &["plans", "todos", "projects"],
                write: &["plans", "todos"],
            },
            // Other files in Codex's home control its permissions.
            Self::Codex => OwnFolders { variable: "CODEX_HOME", below_home: ".codex", read: &["sessions"], write: &[] },
            Self::Gemini | Self::Copilot | Self::Opencode => return None,
        })
    }

    /// Returns the arguments of `--add-dir`, as written.
    pub fn added_folders(self, arguments: &[String]) -> Vec<&str> {
        let mut folders = Vec::new();
        let mut words = arguments.iter().map(String::as_str).take_while(|word| *word != "--").peekable();
        while let Some(word) = words.next() {
            if let Some(folder) = word.strip_prefix("--add-dir=") {
                folders.push(folder);
            } else if word == "--add-dir" {
                folders.extend(words.next_if(|next| !next.starts_with('-')));
                // Claude Code takes all words up to the next option.
                while self == Self::Claude
                    && let Some(folder) = words.next_if(|next| !next.starts_with('-'))
                {
                    folders.push(folder);
                }
            }
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_folders_follow_each_agents_syntax() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = words("--add-dir a b -p x --add-dir=c -- --add-dir d");
        assert_eq!(Agent::Claude.added_folders(&line), ["a", "b", "c"]);
        assert_eq!(Agent::Codex.added_folders(&line), ["a", "c"]);
        assert!(Agent::Claude.added_folders(&words("-p --add-dir")).is_empty());
    }
}
