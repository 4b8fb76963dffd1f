//! The paths that the arguments of a tool name, whatever the tool does with them.
//!
//! A diff is shown only where the arguments surely look like a change; a rule about paths has to hold in any case. So this takes
//! whatever may be a path: one too many is judged for nothing, one too few would get past the rules.

use serde_json::Value;

/// Endings of keys that hold paths, without case and separators.
const KEYS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "directory",
    "dir",
    "folder",
    "uri",
    "destination",
    "source",
    "target",
    "from",
    "to",
    "root",
    "cwd",
    "workdir",
    "location",
    "notebook",
    "document",
    "output",
    "input",
];
/// Longer texts are contents, not names.
const LONGEST: usize = 4_096;
/// Deeper arguments are made to exhaust the stack.
const DEEPEST: usize = 32;

/// Every path that is named, as it is written, in order and once.
pub(super) fn paths(arguments: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(arguments, false, DEEPEST, &mut found);
    let mut once = Vec::new();
    for path in found {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    once
}

/// The command that a call hands to a shell, if the tool is one.
pub(super) fn command(name: &str, arguments: &Value) -> Option<String> {
    const SHELLS: [&str; 8] = ["bash", "shell", "sh", "terminal", "exec", "command", "zsh", "powershell"];
    const KEYS: [&str; 4] = ["command", "cmd", "script", "commands"];
    let name = name.to_lowercase();
    let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
    if !words.any(|word| SHELLS.contains(&word)) {
        return None;
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        // A program and its arguments.
        Value::Array(words) => words
            .iter()
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .map(|words| words.join(" ")),
        _ => None,
    };
    KEYS.iter().find_map(|key| arguments.get(key)).and_then(text)
}

fn collect(value: &Value, is_path: bool, depth: usize, found: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::String(text) => {
            found.extend(in_patch(text));
            let path = text.strip_prefix("file://").unwrap_or(text);
            if is_path && !path.is_empty() && path.len() <= LONGEST && !path.contains("://") && !path.contains('\n') {
                found.push(path.to_owned());
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, is_path, depth, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
                collect(value, KEYS.iter().any(|ending| key.ends_with(ending)), depth, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The files that a patch is about, even one that cannot be read as a whole.
fn in_patch(text: &str) -> Vec<String> {
    const SECTIONS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    const UNIFIED: [&str; 4] = ["+++ ", "--- ", "rename to ", "rename from "];
    let sections = text.contains("*** Begin Patch");
    let unified = text.contains("\n@@ ") || text.starts_with("diff --git ") || text.contains("\ndiff --git ");
    let mut paths = Vec::new();
    for line in text.lines() {
        let section = SECTIONS.iter().find_map(|words| line.trim().strip_prefix(words)).filter(|_| sections);
        let header = UNIFIED.iter().find_map(|words| line.strip_prefix(words)).filter(|_| unified);
        if let Some(path) = section.or(header).map(|path| path.split('\t').next().unwrap_or(path).trim())
            && path != "/dev/null"
        {
            let bare = path.strip_prefix("a/").or(path.strip_prefix("b/")).filter(|_| section.is_none());
            paths.extend(bare.into_iter().chain([path]).map(str::to_owned));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_may_be_a_path_is_named() {
        let check = |arguments: Value, expected: &[&str]| assert_eq!(paths(&arguments), expected, "{arguments}");
        check(json!({ "file_path": "a", "content": "b" }), &["a"]);
        check(json!({ "notebookPath": "a", "edits": [{ "targetFile": "b" }] }), &["a", "b"]);
        check(json!({ "files": ["a", "b", "a"], "uri": "file:///c", "url": "https://x/y" }), &["a", "b", "/c"]);
        check(json!({ "input": "*** Begin Patch\n*** Update File: a/x\n???\n" }), &["a/x"]);
        check(json!({ "diff": "--- a/x\n+++ b/y\n@@ -1 +1 @@\n" }), &["x", "a/x", "y", "b/y"]);
        check(json!({ "content": "path" }), &[]);
    }

    #[test]
    fn the_command_of_a_shell_is_found() {
        let found = |name: &str, arguments: Value| command(name, &arguments);
        assert_eq!(found("Bash", json!({ "command": "rm x" })).as_deref(), Some("rm x"));
        assert_eq!(found("run_shell_command", json!({ "command": "rm x" })).as_deref(), Some("rm x"));
        assert_eq!(found("exec_command", json!({ "cmd": ["rm", "x"] })).as_deref(), Some("rm x"));
        assert_eq!(found("str_replace_editor", json!({ "command": "view" })), None);
    }
}
