//! Adds a rule to the user's file and leaves the rest untouched.

use std::path::Path;

use sayso_review::{Access, Rule};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value, value};

use super::file::File;
use super::read_if_there;
use super::trust::replace_file;
use crate::error::CliError;

/// Adds a rule as the last one. Keeps comments and formatting, and creates the file and its folder if needed.
///
/// An equal rule is not added twice: it stays, or moves to the end if a later rule has another ruling.
pub(crate) fn append_rule(path: &Path, rule: &Rule) -> Result<(), CliError> {
    let bad = |cause: String| {
        CliError::invalid_input(format!("cannot add the rule to {}", path.display()))
            .because(cause)
            .hint("correct the file first; `sayso config` says what is wrong with it")
    };
    let text = String::from_utf8(read_if_there(path)?.unwrap_or_default()).map_err(|error| bad(error.to_string()))?;
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| bad(error.message().to_owned()))?;
    let mut table = table(rule);
    let present = File::parse(text.as_bytes(), &path.display().to_string())?.rule;
    let same = present.iter().position(|other| other == rule);
    if same.is_some_and(|same| present.iter().skip(same).all(|later| later.then == rule.then)) {
        return Ok(());
    }
    match document.entry("rule").or_insert(Item::ArrayOfTables(ArrayOfTables::new())) {
        Item::ArrayOfTables(rules) => {
            if let Some((same, old)) = same.and_then(|same| Some((same, rules.get(same)?))) {
                *table.decor_mut() = old.decor().clone();
                rules.remove(same);
            }
            rules.push(table);
        }
        Item::Value(Value::Array(rules)) => {
            if let Some(same) = same {
                rules.remove(same);
            }
            rules.push(table.into_inline_table());
        }
        _ => return Err(bad("`rule` is no list of rules there".to_owned())),
    }
    replace_file(path, document.to_string().as_bytes())
}

/// Formats a rule as the configuration file has it.
pub(crate) fn rule_toml(rule: &Rule) -> String {
    format!("[[rule]]\n{}", table(rule))
}

fn table(rule: &Rule) -> Table {
    let mut table = Table::new();
    let mut text = |key: &str, text: Option<&String>| {
        if let Some(text) = text {
            table.insert(key, value(text));
        }
    };
    text("name", rule.name.as_ref());
    text("agent", rule.agent.as_ref());
    text("session", rule.session.as_ref());
    for access in Access::ALL {
        match rule.patterns(access) {
            [] => {}
            [one] => _ = table.insert(access.name(), value(one)),
            many => _ = table.insert(access.name(), value(many.iter().collect::<Array>())),
        }
    }
    table.insert("then", value(rule.then.name()));
    if let Some(reason) = &rule.reason {
        table.insert("reason", value(reason));
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::os::unix::fs::PermissionsExt as _;

    use sayso_review::Ruling;

    use super::*;

    fn rule() -> Rule {
        let mut rule = Rule::new(Ruling::Allow);
        rule.run = vec!["git status $".to_owned(), "echo 'a \"b\"' $".to_owned()];
        rule.reason = Some("said \"from now on\"".to_owned());
        rule
    }

    #[test]
    fn added_rule_leaves_the_rest_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let before = "# mine\n[policy]\nwrite   =  'ask' # sic\n\n[[rule]]\nwrite = \"a\"\nthen = \"deny\"\n";
        std::fs::write(&path, before).unwrap();
        append_rule(&path, &rule()).unwrap();
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(before), "{after}");
        let file = File::parse(after.as_bytes(), "x").unwrap();
        assert_eq!((file.rule.len(), &file.rule[1]), (2, &rule()));
    }

    #[test]
    fn new_file_is_private_to_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/config.toml");
        append_rule(&path, &rule()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(File::parse(&std::fs::read(&path).unwrap(), "x").unwrap().rule, [rule()]);
    }

    #[test]
    fn equal_rule_is_not_added_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let rules = || File::parse(&std::fs::read(&path).unwrap(), "x").unwrap().rule;
        let mut other = Rule::new(Ruling::Allow);
        other.run = vec!["ls $".to_owned()];
        for added in [rule(), other.clone(), rule(), other.clone()] {
            append_rule(&path, &added).unwrap();
        }
        assert_eq!(rules(), [rule(), other.clone()]);
        // A later rule with another ruling wins, so that the equal rule has to move to the end.
        let asking = Rule { then: Ruling::Ask, ..rule() };
        append_rule(&path, &asking).unwrap();
        append_rule(&path, &rule()).unwrap();
        assert_eq!(rules(), [other, asking, rule()]);
    }

    #[test]
    fn inline_list_and_link_stay_and_damaged_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("real.toml"), folder.path().join("config.toml"));
        std::fs::write(&path, "rule = [{ tool = \"x\", then = \"ask\" }]\n").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        append_rule(&link, &rule()).unwrap();
        assert!(link.is_symlink());
        assert_eq!(File::parse(&std::fs::read(&path).unwrap(), "x").unwrap().rule.len(), 2);
        std::fs::write(&path, "[[rule]\n").unwrap();
        assert!(append_rule(&path, &rule()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"[[rule]\n");
    }
}
