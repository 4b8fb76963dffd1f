//! The agent's own rules about commands.
//!
//! Claude Code matches `permissions.deny` and `permissions.ask` of its settings against the command that runs; Codex does the
//! same with its exec-policy rules. After sayso's rewrite that command is `sayso call …`, which no such rule matches. sayso
//! therefore applies the agent's rules to the original command, before its own policy.

use sayso_review::{Script, SimpleCommand};
use serde_json::Value;

/// The `deny` and `ask` rules of an agent's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnRules {
    deny: Vec<OwnRule>,
    ask: Vec<OwnRule>,
}

/// Decision of an agent's own rules about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnDecision {
    /// Denied by this rule, in its written form.
    Deny(String),
    /// To be asked by this rule, in its written form.
    Ask(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnRule {
    written: String,
    pattern: Pattern,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// Matches every command.
    Any,
    /// Claude Code: matches this command only.
    Exact(String),
    /// Claude Code: matches this command with any further arguments.
    Prefix(String),
    /// Claude Code: matches these texts with any text between them.
    Glob(Vec<String>),
    /// Codex: matches by the first words, with a list of alternatives for each.
    Words(Vec<Vec<String>>),
}

impl OwnRules {
    /// Adds the rules of one settings object of Claude Code.
    pub fn add_claude(&mut self, settings: &Value) {
        let texts = |name: &str| {
            let listed = settings["permissions"][name].as_array().cloned().unwrap_or_default();
            listed.into_iter().filter_map(|rule| rule.as_str().and_then(OwnRule::claude)).collect::<Vec<_>>()
        };
        self.deny.extend(texts("deny"));
        self.ask.extend(texts("ask"));
    }

    /// Adds tools that Claude Code is told to deny on its command line, separated by commas or spaces outside parentheses.
    pub fn add_claude_denied_tools(&mut self, list: &str) {
        let mut depth = 0_usize;
        let separates = |character: char| {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(character, ',' | ' ')
        };
        self.deny.extend(list.split(separates).filter_map(OwnRule::claude));
    }

    /// Adds the rules of one exec-policy file of Codex.
    pub fn add_codex(&mut self, text: &str) {
        for rule in codex_rules(text) {
            match rule.decision.as_str() {
                "forbidden" => self.deny.push(OwnRule::codex(rule)),
                "prompt" => self.ask.push(OwnRule::codex(rule)),
                _ => {}
            }
        }
    }

    /// Decides a command by the rules that match its whole text or one of its programs. `deny` rules precede `ask` rules. Returns
    /// `None` if no rule matches.
    pub fn decide(&self, command: &str) -> Option<OwnDecision> {
        if self.deny.is_empty() && self.ask.is_empty() {
            return None;
        }
        let script = Script::parse(command);
        let find = |rules: &[OwnRule]| {
            rules.iter().find(|rule| rule.applies_to(command, &script.commands)).map(|rule| rule.written.clone())
        };
        find(&self.deny).map(OwnDecision::Deny).or_else(|| find(&self.ask).map(OwnDecision::Ask))
    }
}

impl OwnRule {
    fn claude(written: &str) -> Option<Self> {
        let written = written.trim();
        let rest = written.strip_prefix("Bash")?;
        let pattern = match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            None if rest.is_empty() => Pattern::Any,
            None => return None,
            Some("*" | "") => Pattern::Any,
            Some(inner) => match inner.strip_suffix(":*") {
                Some(prefix) => Pattern::Prefix(prefix.to_owned()),
                None if inner.contains('*') => Pattern::Glob(inner.split('*').map(str::to_owned).collect()),
                None => Pattern::Exact(inner.to_owned()),
            },
        };
        Some(Self { written: written.to_owned(), pattern })
    }

    fn codex(rule: CodexRule) -> Self {
        let words: Vec<String> = rule.pattern.iter().map(|word| word.join("|")).collect();
        Self { written: words.join(" "), pattern: Pattern::Words(rule.pattern) }
    }

    fn applies_to(&self, whole: &str, commands: &[SimpleCommand]) -> bool {
        self.matches_text(whole.trim()) || commands.iter().any(|command| self.matches(command))
    }

    fn matches(&self, command: &SimpleCommand) -> bool {
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        match &self.pattern {
            Pattern::Words(pattern) => {
                let program = words.first().map(|word| word.rsplit('/').next().unwrap_or(word));
                let named = program.into_iter().chain(words.iter().skip(1).copied());
                words.len() >= pattern.len()
                    && pattern.iter().zip(named).all(|(any, word)| any.iter().any(|one| one == word))
            }
            _ => self.matches_text(&words.join(" ")),
        }
    }

    fn matches_text(&self, text: &str) -> bool {
        match &self.pattern {
            Pattern::Any => true,
            Pattern::Exact(exact) => text == exact,
            Pattern::Prefix(prefix) => {
                text.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            }
            Pattern::Glob(pieces) => matches_glob(pieces, text),
            Pattern::Words(_) => false,
        }
    }
}

/// `true` if a text consists of these pieces with any text between them.
fn matches_glob(pieces: &[String], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// A call of `prefix_rule` in a rules file of Codex.
struct CodexRule {
    pattern: Vec<Vec<String>>,
    decision: String,
}

/// Parses the calls of `prefix_rule`. A rule without a decision allows, and allowing rules are not applied.
fn codex_rules(text: &str) -> Vec<CodexRule> {
    let without_comments: String =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    let calls = without_comments.split("prefix_rule").skip(1);
    calls
        .map(|call| CodexRule {
            pattern: argument(call, "pattern").map(word_lists).unwrap_or_default(),
            decision: argument(call, "decision")
                .and_then(|value| strings(value).into_iter().next())
                .unwrap_or_default(),
        })
        .filter(|rule| !rule.pattern.is_empty())
        .collect()
}

/// Returns the text after `name =` in a call.
fn argument<'t>(call: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = call;
    loop {
        let at = rest.find(name)?;
        let behind = rest[at + name.len()..].trim_start();
        if let Some(value) = behind.strip_prefix('=') {
            return Some(value.trim_start());
        }
        rest = &rest[at + name.len()..];
    }
}

/// Parses `["git", ["push", "fetch"]]`: a list of words and of lists of alternatives.
fn word_lists(value: &str) -> Vec<Vec<String>> {
    let Some(mut rest) = value.strip_prefix('[') else { return Vec::new() };
    let mut lists = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ',']);
        let end = match rest.as_bytes().first() {
            Some(b'[') => rest.find(']').map(|end| end + 1),
            Some(quote @ (b'"' | b'\'')) => rest[1..].find(char::from(*quote)).map(|end| end + 2),
            _ => None,
        };
        let Some(end) = end else { return lists };
        lists.push(strings(&rest[..end]));
        rest = &rest[end..];
    }
}

/// Returns the quoted strings of a value, up to the end of the list or argument.
fn strings(value: &str) -> Vec<String> {
    let is_list = value.starts_with('[');
    let mut strings = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find(['"', '\'', ']']) {
        let quote = rest.as_bytes()[at];
        if quote == b']' {
            break;
        }
        let Some(length) = rest[at + 1..].find(char::from(quote)) else { break };
        strings.push(rest[at + 1..at + 1 + length].to_owned());
        if !is_list {
            break;
        }
        rest = &rest[at + length + 2..];
    }
    strings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claude() -> OwnRules {
        let mut rules = OwnRules::default();
        rules.add_claude(&json!({ "permissions": {
            "deny": ["Bash(ls)", "Bash(git push:*)", "Read(./.env)", "Bash(npm run *:prod)"],
            "ask": ["Bash(rm:*)", 7],
        }}));
        rules
    }

    #[test]
    fn claude_rules_apply_to_each_program() {
        let decided = |command: &str| match claude().decide(command) {
            Some(OwnDecision::Deny(rule)) => format!("deny {rule}"),
            Some(OwnDecision::Ask(rule)) => format!("ask {rule}"),
            None => "none".to_owned(),
        };
        for (command, expected) in [
            ("ls", "deny Bash(ls)"),
            ("ls -l", "none"),
            ("cd x && ls", "deny Bash(ls)"),
            ("git push", "deny Bash(git push:*)"),
            ("git push origin", "deny Bash(git push:*)"),
            ("git pushy", "none"),
            ("echo $(git push -f)", "deny Bash(git push:*)"),
            ("npm run build:prod", "deny Bash(npm run *:prod)"),
            ("npm run build", "none"),
            ("rm x; git push", "deny Bash(git push:*)"),
            ("sudo rm x", "ask Bash(rm:*)"),
        ] {
            assert_eq!(decided(command), expected, "{command}");
        }
    }

    #[test]
    fn claude_denied_tools_are_split_outside_parentheses() {
        let mut rules = OwnRules::default();
        rules.add_claude_denied_tools("Edit,Bash(git push:*) Bash(rm -rf *)");
        assert!(matches!(rules.decide("git push"), Some(OwnDecision::Deny(_))));
        assert!(matches!(rules.decide("rm -rf x"), Some(OwnDecision::Deny(_))));
        assert_eq!(rules.decide("ls"), None);
    }

    #[test]
    fn codex_rules_apply_by_words() {
        let mut rules = OwnRules::default();
        rules.add_codex(
            "# prefix_rule(pattern=[\"ls\"], decision=\"forbidden\")\n\
             prefix_rule(\n    pattern = [\"git\", [\"push\", 'fetch']],\n    decision = \"prompt\",\n    match = [[\"git\", \"push\"]],\n)\n\
             prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\nprefix_rule(pattern=[\"cat\"])\n",
        );
        assert_eq!(rules.decide("git fetch origin"), Some(OwnDecision::Ask("git push|fetch".to_owned())));
        assert_eq!(rules.decide("ls; /bin/rm x"), Some(OwnDecision::Deny("rm".to_owned())));
        assert_eq!(rules.decide("cat x | ls"), None);
    }
}
