//! Lets a person change the new lines of a hunk in their own editor.

use std::io::{IsTerminal as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use sayso_diff::{Encoding, Hunk};
use sayso_review::{FilePreview, FileState};

use crate::failure::Failure;
use crate::output::say;
use crate::terminal;

/// The bytes that the person wants in place of the hunk's new lines; `None` if they changed nothing, emptied the file or left the
/// editor with an error, as in git.
pub(crate) fn lines(file: &FilePreview, hunk: &Hunk<'_, '_>) -> Result<Option<Vec<u8>>, Failure> {
    let is_file = |state: &FileState| !matches!(state, FileState::Link { .. });
    let (true, true, Some(content)) = (is_file(&file.before), is_file(&file.after), file.after.bytes()) else {
        say("There are no lines to edit; take or leave it.");
        return Ok(None);
    };
    let lines = &content[ranges(hunk).1];
    if !matches!(Encoding::of(content), Encoding::Utf8) {
        say("Only UTF-8 text can be edited here; take or leave it, or edit the file afterwards.");
        return Ok(None);
    }
    let name = file.path.names().next_back().unwrap_or("lines");
    // Carriage returns are put back afterwards; an editor may show or keep them in ways of its own.
    let crlf = lines.windows(2).any(|pair| pair == b"\r\n");
    let text = if crlf { String::from_utf8_lossy(lines).replace("\r\n", "\n").into_bytes() } else { lines.to_vec() };
    let Some(mut edited) = in_editor(name, &text)? else { return Ok(None) };
    // What follows must not be joined to the last line.
    let is_last = ranges(hunk).1.end == content.len();
    if !edited.ends_with(b"\n") && (!is_last || lines.ends_with(b"\n")) {
        edited.push(b'\n');
    }
    Ok(Some(if crlf { with_crlf(&edited) } else { edited }))
}

/// The command that the person wants instead; `None` if they changed nothing, emptied the file or left the editor with an error.
pub(crate) fn command(command: &str) -> Result<Option<String>, Failure> {
    let Some(edited) = in_editor("command.sh", format!("{command}\n").as_bytes())? else { return Ok(None) };
    let edited =
        String::from_utf8(edited).map_err(|error| Failure::bad_input("the edited command is not text").why(&error))?;
    Ok(Some(edited.trim_end_matches(['\n', '\r']).to_owned()).filter(|edited| !edited.trim().is_empty()))
}

/// Whether there is an editor that could be opened.
pub(crate) fn has_editor() -> bool {
    editor().is_ok()
}

/// How a person left their editor.
pub(crate) enum Left {
    /// With another text.
    Edited(Vec<u8>),
    /// With what was there, or nothing.
    AsItWas,
    /// It failed, for this reason.
    Failed(String),
}

/// A text as the person leaves it in their own editor; `None` if they changed nothing, emptied it or left the editor with an error.
fn in_editor(name: &str, text: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    match open(name, text)? {
        Left::Edited(edited) => return Ok(Some(edited)),
        Left::AsItWas => say("Nothing was edited."),
        Left::Failed(why) => say(&why),
    }
    Ok(None)
}

/// Opens a text in the person's own editor.
pub(crate) fn open(name: &str, text: &[u8]) -> Result<Left, Failure> {
    let failed = |error: std::io::Error| Failure::bad_input("what is to be edited could not be written").why(&error);
    let editor = editor()?;
    // A folder of its own, readable by nobody else, with the file's own name, so that the editor knows the language.
    let folder = folder().map_err(failed)?;
    let path = folder.path().join(name);
    std::fs::write(&path, text).map_err(failed)?;
    // Through the shell, as git does, since a setting may hold arguments.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(&path);
    match terminal::lend(|| command.status()) {
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Ok(Left::Failed(format!("The editor `{editor}` ended with {status}; nothing was taken.")));
        }
        Err(error) => {
            let why = format!("The editor `{editor}` could not be started: {error}. Set EDITOR to one that can.");
            return Ok(Left::Failed(why));
        }
    }
    // An editor that removed its file left nothing to take.
    let edited = std::fs::read(&path).unwrap_or_default();
    Ok(if edited == text || edited.is_empty() { Left::AsItWas } else { Left::Edited(edited) })
}

/// Keeps what a person wrote and could not be taken, readable by them alone; says where.
pub(crate) fn keep(text: &str) -> std::io::Result<std::path::PathBuf> {
    let mut file = tempfile::Builder::new().prefix("sayso-").suffix(".txt").tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file.keep()?.1)
}

/// What a hunk takes from the old content and puts into the new one, from its first changed line to its last.
pub(crate) fn ranges(hunk: &Hunk<'_, '_>) -> (Range<usize>, Range<usize>) {
    match (hunk.changes().first(), hunk.changes().last()) {
        (Some(first), Some(last)) => {
            (first.old.start.offset..last.old.end.offset, first.new.start.offset..last.new.end.offset)
        }
        _ => (0..0, 0..0),
    }
}

fn with_crlf(bytes: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len() + bytes.len() / 32);
    for &byte in bytes {
        if byte == b'\n' && result.last() != Some(&b'\r') {
            result.push(b'\r');
        }
        result.push(byte);
    }
    result
}

/// The person's own editor, or the one that is everywhere, which needs a terminal.
fn editor() -> Result<String, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    match variable("VISUAL").or_else(|| variable("EDITOR")) {
        Some(editor) => Ok(editor),
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => Ok("vi".to_owned()),
        None => {
            Err(Failure::bad_input("there is no terminal to open an editor in")
                .hint("set EDITOR to one that needs none"))
        }
    }
}

fn folder() -> std::io::Result<tempfile::TempDir> {
    let private = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("sayso-").permissions(private).tempdir()
}
