//! Folders outside the workspace that belong to an agent, or that its user hands to it.

use super::agent::Agent;

/// Folders below the agent's own home that are its own: nobody else's files are in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFolders {
    /// The variable that names the agent's home.
    pub variable: &'static str,
    /// The agent's home below the user's, if the variable is not set.
    pub below_home: &'static str,
    /// Folders that the agent reads: plans, to-do lists, transcripts.
    pub read: &'static [&'static str],
    /// Folders that the agent writes with its own tools.
    pub write: &'static [&'static str],
}

impl Agent {
    /// The agent's own folders.
    pub fn own_folders(self) -> OwnFolders {
        match self {
            Self::Claude => OwnFolders {
                variable: "CLAUDE_CONFIG_DIR",
                below_home: ".claude",
                read: &["plans", "todos", "projects"],
                write: &["plans", "todos"],
            },
            // Everything else in there decides what Codex may do.
            Self::Codex => OwnFolders { variable: "CODEX_HOME", below_home: ".codex", read: &["sessions"], write: &[] },
        }
    }

    /// The folders that the user hands to the agent with `--add-dir`, as they are written.
    pub fn added_folders(self, arguments: &[String]) -> Vec<&str> {
        let mut folders = Vec::new();
        let mut words = arguments.iter().map(String::as_str).take_while(|word| *word != "--").peekable();
        while let Some(word) = words.next() {
            if let Some(folder) = word.strip_prefix("--add-dir=") {
                folders.push(folder);
            } else if word == "--add-dir" {
                folders.extend(words.next_if(|next| !next.starts_with('-')));
                // Claude Code takes every word up to the next option.
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
    fn added_folders_are_found_as_each_agent_reads_them() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = words("--add-dir a b -p x --add-dir=c -- --add-dir d");
        assert_eq!(Agent::Claude.added_folders(&line), ["a", "b", "c"]);
        assert_eq!(Agent::Codex.added_folders(&line), ["a", "c"]);
        assert!(Agent::Claude.added_folders(&words("-p --add-dir")).is_empty());
    }
}
