//! The grammar of `--approve` and `--comment`.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{Answer, Comment, CommentSide, ErrorKind, FileAnswer, FileRecord, HunkId, Note, WsPath};

use super::files::asked;
use crate::error::InputError;

const HINT: &str =
    "give all, none, hunks as the preview numbers them (1,3 or a.rs:1,b.rs:2), or whole files (a.rs,b.rs)";

/// Reads `all`, `none`, `1,3`, `path:1,path:3` or `path,path`. `all` never covers a file whose later edits would be lost.
pub fn parse_approval(text: &str, files: &[FileRecord]) -> Result<Answer, InputError> {
    match text {
        "all" => return approve_all(files),
        "none" => return Ok(Answer::Deny { reason: None }),
        _ => {}
    }
    // `None` stands for the whole file.
    let mut chosen: BTreeMap<WsPath, Option<BTreeSet<HunkId>>> = BTreeMap::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (path, hunk) = parse_item(item, files)?;
        let hunks = chosen.entry(path).or_insert_with(|| Some(BTreeSet::new()));
        match hunk {
            Some(hunk) => {
                if let Some(hunks) = hunks {
                    hunks.insert(hunk);
                }
            }
            None => *hunks = None,
        }
    }
    if chosen.is_empty() {
        return Err(InputError::new(format!("`--approve {text}` names nothing"), HINT));
    }
    let answer = |hunks: Option<BTreeSet<HunkId>>| match hunks {
        None => FileAnswer::Approve,
        Some(hunks) => FileAnswer::Hunks { hunks },
    };
    let answers = chosen.into_iter().map(|(path, hunks)| (path, answer(hunks))).collect();
    Ok(Answer::Files { files: answers, reason: None })
}

fn approve_all(files: &[FileRecord]) -> Result<Answer, InputError> {
    let overwrites = |note: &&Note| matches!(note, Note::Overwrites { .. });
    let lost = asked(files).find_map(|file| file.notes.iter().find(overwrites).map(|note| (file, note)));
    match lost {
        None => Ok(Answer::Approve),
        Some((file, note)) => Err(InputError::new(
            format!("`{}`: {note}; nothing was decided", file.path),
            "read it without --approve, or name the hunks or files that you want all the same",
        )
        .of_kind(ErrorKind::Stale)),
    }
}

/// Reads a file or a hunk of one.
fn parse_item(item: &str, files: &[FileRecord]) -> Result<(WsPath, Option<HunkId>), InputError> {
    let find = |path: &str| files.iter().find(|file| file.path.as_str() == path).map(|file| file.path.clone());
    // A file name wins, because it may look like a hunk number.
    if let Some(path) = find(item) {
        return Ok((path, None));
    }
    if let Some((path, hunk)) = item.rsplit_once(':') {
        let path = find(path).ok_or_else(|| InputError::new(format!("`{path}` is not part of this proposal"), HINT))?;
        let hunk = hunk.parse().map_err(|error| InputError::new(format!("{error}"), HINT))?;
        return Ok((path, Some(hunk)));
    }
    let hunk = item.parse().map_err(|_| {
        InputError::new(format!("`{item}` is neither a file of this proposal nor the number of a hunk"), HINT)
    })?;
    match files {
        [file] => Ok((file.path.clone(), Some(hunk))),
        files => {
            let first = files.first().map(|file| file.path.to_string()).unwrap_or_default();
            Err(InputError::new(
                format!("hunk {hunk} of which file? There are {}", files.len()),
                format!("name the file too, such as {first}:{hunk}"),
            ))
        }
    }
}

/// Reads `PATH:LINE:TEXT`.
pub fn parse_comment(text: &str, files: &[FileRecord]) -> Result<Comment, InputError> {
    let bad =
        || InputError::new(format!("`{text}` is not a comment"), "give PATH:LINE:TEXT, with a file of this proposal");
    for file in files {
        let rest = text.strip_prefix(file.path.as_str()).and_then(|rest| rest.strip_prefix(':'));
        if let Some((line, text)) = rest.and_then(|rest| rest.split_once(':')) {
            let line = line.trim().parse().map_err(|_| bad())?;
            let (path, text) = (file.path.clone(), text.trim().to_owned());
            return Ok(Comment { path, line, side: CommentSide::Proposed, text });
        }
    }
    Err(bad())
}
