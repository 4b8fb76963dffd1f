//! Infers file changes from the arguments of a tool call.
//!
//! Agents name the same few operations differently. A wrong inference would show a diff of a change that does not
//! happen, so unknown shapes yield no inference.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::intent::{Bytes, FileIntent, NewContent, Proposal};

/// The arguments from which a change was inferred. The tool may do something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuessedFrom {
    /// Names of the arguments.
    pub keys: Vec<String>,
}

const PATHS: &[&str] =
    &["filepath", "path", "file", "filename", "absolutepath", "targetfile", "relativepath", "relativeworkspacepath"];
const CONTENTS: &[&str] = &["content", "contents", "filetext", "newcontent", "filecontent", "text"];
const OLD: &[&str] = &["oldstring", "oldstr", "oldtext", "old", "search"];
const NEW: &[&str] = &["newstring", "newstr", "newtext", "new", "replace", "replacement"];
const LISTS: &[&str] = &["edits", "changes", "files", "replacements"];
const PATCHES: &[&str] = &["patch", "patchtext", "input", "command", "diff", "cmd", "content"];
/// Arguments that name a position within a file. The content argument is then only a part of the file.
const WITHIN: &[&str] = &[
    "insertline",
    "line",
    "startline",
    "endline",
    "linenumber",
    "offset",
    "position",
    "range",
    "append",
    "at",
    "mode",
    "insertat",
    "cellid",
    "notebookpath",
];
const READS: &[&str] = &[
    "search", "grep", "read", "list", "view", "get", "fetch", "find", "glob", "ls", "cat", "show", "open", "query",
    "describe", "stat", "tree", "head", "tail", "lookup", "check", "count", "diff", "download", "inspect", "ask",
];
/// Words for tools that send content elsewhere or append to a file.
const ELSEWHERE: &[&str] = &[
    "append", "prepend", "insert", "send", "post", "comment", "upload", "publish", "message", "email", "notify",
    "push", "tweet", "reply", "issue", "commit", "remember", "memory",
];
const DELETES: &[&str] = &["delete", "remove", "rm", "unlink", "trash"];
const MOVES: &[&str] = &["move", "rename", "mv"];

/// Arguments, with the names of the used ones.
struct Reading<'a> {
    arguments: &'a Map<String, Value>,
    keys: Vec<String>,
}

/// The kind of access to the files named in a call, inferred from the tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    Reads,
    /// The tool may change the files.
    Writes,
}

/// Infers the kind of access from the tool's name.
pub(super) fn file_access(name: &str) -> FileAccess {
    let words = words_of(name);
    // Use the last part of `mcp__files__read_file`; the parts before it name the server.
    let own = words_of(name.rsplit("__").next().unwrap_or(name));
    let reads = |words: &[String]| words.first().is_some_and(|first| READS.contains(&first.as_str()));
    if reads(&words) || reads(&own) { FileAccess::Reads } else { FileAccess::Writes }
}

/// Infers the change that a call describes, with the arguments that indicate it.
pub(super) fn infer_changes(name: &str, arguments: &Value) -> Option<(Proposal, GuessedFrom)> {
    let words = words_of(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if words.first().is_some_and(|first| READS.contains(&first.as_str())) {
        return None;
    }
    if let Some(patch) = arguments.as_str().filter(|text| is_patch(text)) {
        return Some((patch_of(patch), GuessedFrom { keys: Vec::new() }));
    }
    let mut reading = Reading { arguments: arguments.as_object()?, keys: Vec::new() };
    let asked_to_try = reading.flag(&["dryrun", "preview"]);
    let reads = matches!(reading.peek(&["command"]).and_then(Value::as_str), Some("view" | "undo_edit" | "insert"));
    if asked_to_try || reads {
        return None;
    }
    if let Some(patch) = reading.patch(has(&["patch"])) {
        return Some((patch, GuessedFrom { keys: reading.keys }));
    }
    if has(ELSEWHERE) {
        return None;
    }
    let changes = if has(DELETES) {
        reading.deletes()?
    } else if has(MOVES) {
        vec![reading.rename()?]
    } else {
        reading.changes()?
    };
    (!changes.is_empty()).then_some((Proposal { changes }, GuessedFrom { keys: reading.keys }))
}

impl<'a> Reading<'a> {
    fn find(&self, keys: &[&str]) -> Option<(&'a String, &'a Value)> {
        keys.iter().find_map(|key| self.arguments.iter().find(|(name, _)| plain_key(name) == *key))
    }

    fn peek(&self, keys: &[&str]) -> Option<&'a Value> {
        self.find(keys).map(|(_, value)| value)
    }

    fn text(&mut self, keys: &[&str]) -> Option<&'a str> {
        let (name, value) = self.find(keys)?;
        let text = value.as_str()?;
        self.keys.push(name.clone());
        Some(text)
    }

    fn flag(&self, keys: &[&str]) -> bool {
        self.peek(keys) == Some(&Value::Bool(true))
    }

    /// Returns the path argument of a single file.
    fn path(&mut self) -> Option<String> {
        self.text(PATHS).filter(|path| !path.is_empty() && !path.contains("://")).map(str::to_owned)
    }

    /// Returns a patch argument as a proposal.
    fn patch(&mut self, is_patch_tool: bool) -> Option<Proposal> {
        let (name, value) = PATCHES.iter().find_map(|key| {
            let (name, value) = self.arguments.iter().find(|(name, _)| plain_key(name) == *key)?;
            // Some tools run a program given as a list of words.
            let value = value.as_array().filter(|words| words.len() == 2).map_or(value, |words| &words[1]);
            let text = value.as_str()?;
            let is_unified = is_patch_tool || matches!(*key, "patch" | "diff" | "patchtext");
            (is_patch(text) || (is_unified && is_unified_diff(text))).then_some((name, text))
        })?;
        self.keys.push(name.clone());
        Some(patch_of(value))
    }

    fn deletes(&mut self) -> Option<Vec<FileIntent>> {
        if let Some((name, Value::Array(paths))) = self.find(&["paths", "files", "filepaths"]) {
            self.keys.push(name.clone());
            return paths.iter().map(|path| Some(FileIntent::Delete { path: path.as_str()?.to_owned() })).collect();
        }
        if self.peek(&[OLD, NEW, CONTENTS].concat()).is_some() {
            return None;
        }
        Some(vec![FileIntent::Delete { path: self.path()? }])
    }

    fn rename(&mut self) -> Option<FileIntent> {
        let from = self.text(&["source", "sourcepath", "from", "oldpath", "src", "oldname", "path", "filepath"])?;
        let to = self.text(&["destination", "destinationpath", "to", "newpath", "dest", "dst", "target", "newname"])?;
        Some(FileIntent::Rename { path: from.to_owned(), to: to.to_owned() })
    }

    fn changes(&mut self) -> Option<Vec<FileIntent>> {
        let list = self.find(LISTS).filter(|(_, value)| value.is_array());
        let Some((name, Value::Array(edits))) = list else { return Some(vec![self.one(None)?]) };
        let path = self.path();
        self.keys.push(name.clone());
        let mut changes = Vec::with_capacity(edits.len());
        for edit in edits {
            let mut inner = Reading { arguments: edit.as_object()?, keys: Vec::new() };
            changes.push(inner.one(path.as_deref())?);
            for key in inner.keys.iter().map(|key| format!("{name}[].{key}")) {
                if !self.keys.contains(&key) {
                    self.keys.push(key);
                }
            }
        }
        Some(changes)
    }

    /// Infers one edit or one whole-file write.
    fn one(&mut self, outer: Option<&str>) -> Option<FileIntent> {
        let path = match (self.path(), outer) {
            (Some(path), _) => path,
            (None, outer) => outer?.to_owned(),
        };
        if let Some(old) = self.text(OLD) {
            let new = self.text(NEW)?;
            let many = self.peek(&["expectedreplacements"]).and_then(Value::as_u64).is_some_and(|count| count > 1);
            let replace_all = many || self.flag(&["replaceall", "allowmultiple", "all"]);
            return Some(FileIntent::Edit {
                path,
                old_string: old.to_owned(),
                new_string: new.to_owned(),
                replace_all,
            });
        }
        if self.peek(WITHIN).is_some() || self.peek(NEW).is_some() {
            return None;
        }
        let new_content = self.text(CONTENTS)?.to_owned();
        Some(FileIntent::Write(NewContent { path, new_content, exact: false, executable: None, base_content: None }))
    }
}

fn patch_of(text: &str) -> Proposal {
    Proposal { changes: vec![FileIntent::Patch { patch: Bytes::new(text.as_bytes().to_vec()) }] }
}

fn is_patch(text: &str) -> bool {
    text.trim_start().starts_with("*** Begin Patch")
}

fn is_unified_diff(text: &str) -> bool {
    let has = |start: &str| text.lines().any(|line| line.starts_with(start));
    has("diff --git ") || (has("--- ") && has("+++ ") && has("@@"))
}

/// Normalizes an argument name, so that `file_path` and `filePath` are equal.
pub(super) fn plain_key(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

/// Splits a tool name into words, without its server: `mcp__files__writeFile` yields `write`, `file`.
pub(super) fn words_of(name: &str) -> Vec<String> {
    let name = name.rsplit_once("__").map_or(name, |(_, name)| name);
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for character in name.chars() {
        let starts = character.is_uppercase() && before_is_lower;
        if (starts || !character.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        before_is_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}
