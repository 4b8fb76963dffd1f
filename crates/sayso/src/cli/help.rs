//! The help of `sayso` itself: commands by group, the first three for a newcomer.

use clap::CommandFactory as _;
use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};

use super::Cli;

pub(super) const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Every command, by group. A test compares it with the parser.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run agents", &["prompt", "sessions", "demo", "run", "exec", "propose", "env", "hook"]),
    ("Decide", &["review", "policy", "trust"]),
    ("History", &["log", "show", "status", "watch", "undo", "redo", "snapshot", "diff"]),
    ("Requests", &["request"]),
    ("Set up", &["serve", "open", "login", "doctor", "config", "branch", "gc", "tool", "serve-model", "completions"]),
];

const START_HERE: &str = "\
Start here:
  sayso demo             Show the whole thing, offline, in a minute
  sayso run -- claude    Run an agent under the gate
  sayso -p 'PROMPT'      Give the built-in agent a task
  sayso review --follow  Decide about its changes, in another terminal
  sayso undo             Undo the last change";

const TEMPLATE: &str = "{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

const SHORT_END: &str = "`sayso COMMAND -h` explains a command; `sayso --help` has a line for each.";

const LONG_END: &str = "\
Examples:
  sayso propose change.patch               decide hunk by hunk, as with `git add -p`
  sayso propose change.json --approve 1,3  take two hunks and refuse the rest
  sayso exec 'make fmt'                    run a command under the gate
  sayso run -- claude                      run claude, codex, gemini, copilot or opencode
  sayso review                             decide pending changes
  sayso serve                              serve this workspace's engine
  sayso request mode pause-next            pause an agent's next request, to edit it
  sayso policy explain run 'rm -rf build'  explain what the rules decide
  sayso log                                list changes
  sayso undo                               undo the last change
  sayso diff old.rs new.rs                 compare two files, with words and syntax coloured
  sayso diff old.rs new.rs > change.patch  write the same as a patch
  git show HEAD:a.rs | sayso diff - a.rs   compare with standard input
  sayso diff before/ after/ | git apply -  compare two directory trees
  sayso diff a b --inline                  print the ten lines that a card shows
  sayso tool list                          list the built-in tools
  sayso tool Diff --grant Diff --read 'src/**' --args '{\"path_a\":\"src/a.rs\",\"path_b\":\"src/b.rs\"}'

Exit codes:
  0   done, or no difference
  1   a difference, or a person denied
  2   wrong usage or bad input
  3   refused: not granted, or denied by a rule
  4   stale or conflict
  70  a failure of the system or of sayso itself";

/// Builds the parser with its help.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let long = long_groups(&command);
    command
        .help_template(TEMPLATE)
        .before_help(short_groups())
        .before_long_help(long)
        .after_help(SHORT_END)
        .after_long_help(LONG_END)
}

/// The names of all commands, a line for each group.
fn short_groups() -> String {
    let mut text = format!("{START_HERE}\n\nCommands:");
    for (group, names) in GROUPS {
        text.push_str(&format!("\n  {group:<11}  {}", names.join(", ")));
    }
    text
}

/// The summaries of all commands.
fn long_groups(command: &clap::Command) -> String {
    let mut text = START_HERE.to_owned();
    for (group, names) in GROUPS {
        text.push_str(&format!("\n\n{group}:"));
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            text.push_str(&format!("\n  {name:<11}  {}", about.map(ToString::to_string).unwrap_or_default()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let commands = Cli::command();
        let known: BTreeSet<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len());
    }

    #[test]
    fn summaries_have_at_most_72_characters() {
        fn check(command: &clap::Command, path: &str) {
            for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
                let path = format!("{path} {}", command.get_name());
                let about = command.get_about().unwrap_or_else(|| panic!("`{path}` has no summary")).to_string();
                assert!(about.chars().count() <= 72, "`{path}`: {about}");
                assert!(!about.ends_with('.'), "`{path}`: {about}");
                check(command, &path);
            }
        }
        check(&command(), "sayso");
    }

    #[test]
    fn short_help_fits_on_one_screen() {
        let help = command().term_width(80).render_help().to_string();
        assert!(help.lines().count() <= 24, "{} lines\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
