//! Writing a rule into the user's file, all else in it untouched.

use std::path::Path;

use sayso_review::{Access, Rule};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value, value};

use super::file::File;
use super::read_if_there;
use super::trust::write_whole;
use crate::failure::Failure;

/// Adds a rule as the last one, keeping comments and formatting; makes the file and its folder if there are none. A rule that is there
/// already is not there twice: it stays, or becomes the last one should a later rule say otherwise.
pub(crate) fn append_rule(path: &Path, rule: &Rule) -> Result<(), Failure> {
    let bad = |why: &dyn ToString| {
        Failure::bad_input(format!("the rule cannot be added to {}", path.display()))
            .why(&why.to_string())
            .hint("correct the file first; `sayso config` says what is wrong with it")
    };
    let text = String::from_utf8(read_if_there(path)?.unwrap_or_default()).map_err(|error| bad(&error))?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| bad(&error.message()))?;
    let mut table = table(rule);
    let there = File::parse(text.as_bytes(), &path.display().to_string())?.rule;
    let same = there.iter().position(|other| other == rule);
    if same.is_some_and(|same| there.iter().skip(same).all(|later| later.then == rule.then)) {
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
        _ => return Err(bad(&"`rule` is no list of rules there")),
    }
    write_whole(path, document.to_string().as_bytes())
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
    fn a_rule_is_added_and_all_else_stays() {
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
    fn a_file_that_is_not_there_is_made_for_the_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/config.toml");
        append_rule(&path, &rule()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(File::parse(&std::fs::read(&path).unwrap(), "x").unwrap().rule, [rule()]);
    }

    #[test]
    fn a_rule_that_is_there_is_not_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let rules = || File::parse(&std::fs::read(&path).unwrap(), "x").unwrap().rule;
        let mut other = Rule::new(Ruling::Allow);
        other.run = vec!["ls $".to_owned()];
        for added in [rule(), other.clone(), rule(), other.clone()] {
            append_rule(&path, &added).unwrap();
        }
        assert_eq!(rules(), [rule(), other.clone()]);
        // A later one that says otherwise would count more than the first.
        let asking = Rule { then: Ruling::Ask, ..rule() };
        append_rule(&path, &asking).unwrap();
        append_rule(&path, &rule()).unwrap();
        assert_eq!(rules(), [other, asking, rule()]);
    }

    #[test]
    fn a_list_in_one_line_a_link_and_a_damaged_file() {
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
