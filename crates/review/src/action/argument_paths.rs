//! Extracts all paths from the arguments of a tool call, independent of the access.
//!
//! A diff is shown only if the arguments clearly describe a change, but path rules must always hold. The extraction is
//! therefore generous: a false path costs one evaluation, a missed path would bypass the rules.

use serde_json::Value;

/// Suffixes of argument names that hold paths, in lower case without separators.
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
/// Maximum length of a path in bytes. Longer texts are contents.
const LONGEST: usize = 4_096;
/// Maximum nesting of arguments, which bounds the recursion.
const DEEPEST: usize = 32;

/// Returns every named path as written, in order and without duplicates.
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

/// Returns the command that the tool passes to a shell, if its name denotes a shell.
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

/// Returns the paths in the headers of a patch, even if the patch as a whole is invalid.
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
    fn possible_paths_are_extracted() {
        let check = |arguments: Value, expected: &[&str]| assert_eq!(paths(&arguments), expected, "{arguments}");
        check(json!({ "file_path": "a", "content": "b" }), &["a"]);
        check(json!({ "notebookPath": "a", "edits": [{ "targetFile": "b" }] }), &["a", "b"]);
        check(json!({ "files": ["a", "b", "a"], "uri": "file:///c", "url": "https://x/y" }), &["a", "b", "/c"]);
        check(json!({ "input": "*** Begin Patch\n*** Update File: a/x\n???\n" }), &["a/x"]);
        check(json!({ "diff": "--- a/x\n+++ b/y\n@@ -1 +1 @@\n" }), &["x", "a/x", "y", "b/y"]);
        check(json!({ "content": "path" }), &[]);
    }

    #[test]
    fn shell_command_is_extracted() {
        let found = |name: &str, arguments: Value| command(name, &arguments);
        assert_eq!(found("Bash", json!({ "command": "rm x" })).as_deref(), Some("rm x"));
        assert_eq!(found("run_shell_command", json!({ "command": "rm x" })).as_deref(), Some("rm x"));
        assert_eq!(found("exec_command", json!({ "cmd": ["rm", "x"] })).as_deref(), Some("rm x"));
        assert_eq!(found("str_replace_editor", json!({ "command": "view" })), None);
    }
}
