//! `--approve` and `--comment`: answers without a question.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{Answer, Comment, CommentSide, FileAnswer, HunkId, Note, Preview, WsPath};

use crate::failure::Failure;
use crate::state::STALE;

/// Reads `all`, `none`, `1,3`, `path:1,path:3` or `path,path`.
pub(crate) fn answer(text: &str, preview: &Preview) -> Result<Answer, Failure> {
    match text {
        "all" => {
            let overwrites = |note: &&Note| matches!(note, Note::Overwrites { .. });
            let lost = preview.asked().find_map(|file| file.notes.iter().find(overwrites).map(|note| (file, note)));
            return match lost {
                None => Ok(Answer::Approve),
                Some((file, note)) => Err(Failure::of(STALE, format!("`{}`: {note}; nothing was decided", file.path))
                    .hint("read it without --approve, or name the hunks or files that you want all the same")),
            };
        }
        "none" => return Ok(Answer::Deny { reason: None }),
        _ => {}
    }
    let mut chosen: BTreeMap<WsPath, Option<BTreeSet<HunkId>>> = BTreeMap::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (path, hunk) = choice(item, preview)?;
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
        return Err(Failure::bad_input(format!("`--approve {text}` names nothing")).hint(HINT));
    }
    let answer = |hunks: Option<BTreeSet<HunkId>>| match hunks {
        None => FileAnswer::Approve,
        Some(hunks) => FileAnswer::Hunks { hunks },
    };
    let files = chosen.into_iter().map(|(path, hunks)| (path, answer(hunks))).collect();
    Ok(Answer::Files { files, reason: None })
}

const HINT: &str =
    "give all, none, hunks as the preview numbers them (1,3 or a.rs:1,b.rs:2), or whole files (a.rs,b.rs)";

/// A file, and a hunk of it unless all of it is meant.
fn choice(item: &str, preview: &Preview) -> Result<(WsPath, Option<HunkId>), Failure> {
    let known =
        |path: &str| preview.files().iter().find(|file| file.path.as_str() == path).map(|file| file.path.clone());
    // A file's name first: it may look like anything.
    if let Some(path) = known(item) {
        return Ok((path, None));
    }
    if let Some((path, hunk)) = item.rsplit_once(':') {
        let path = known(path)
            .ok_or_else(|| Failure::bad_input(format!("`{path}` is not part of this proposal")).hint(HINT))?;
        let hunk = hunk.parse().map_err(|error| Failure::bad_input(format!("{error}")).hint(HINT))?;
        return Ok((path, Some(hunk)));
    }
    let hunk = item.parse().map_err(|_| {
        Failure::bad_input(format!("`{item}` is neither a file of this proposal nor the number of a hunk")).hint(HINT)
    })?;
    match preview.files() {
        [file] => Ok((file.path.clone(), Some(hunk))),
        files => {
            let first = files.first().map(|file| file.path.to_string()).unwrap_or_default();
            Err(Failure::bad_input(format!("hunk {hunk} of which file? There are {}", files.len()))
                .hint(format!("name the file too, such as {first}:{hunk}")))
        }
    }
}

/// Reads `PATH:LINE:TEXT`.
pub(crate) fn comment(text: &str, preview: &Preview) -> Result<Comment, Failure> {
    let bad = || {
        Failure::bad_input(format!("`{text}` is not a comment"))
            .hint("give PATH:LINE:TEXT, with a file of this proposal")
    };
    for file in preview.files() {
        let rest = text.strip_prefix(file.path.as_str()).and_then(|rest| rest.strip_prefix(':'));
        if let Some((line, text)) = rest.and_then(|rest| rest.split_once(':')) {
            let line = line.trim().parse().map_err(|_| bad())?;
            let (path, text) = (file.path.clone(), text.trim().to_owned());
            return Ok(Comment { path, line, side: CommentSide::Proposed, text });
        }
    }
    Err(bad())
}
