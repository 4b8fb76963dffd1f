//! Opens text in the person's own editor.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::error::CliError;
use crate::output::say;
use crate::terminal;

/// The result of an editor.
pub(crate) enum EditorResult {
    /// The new text.
    Edited(Vec<u8>),
    /// Unchanged or empty.
    Unchanged,
    /// Holds the reason, as a sentence.
    Failed(String),
}

/// `true` if there is an editor to open.
pub(crate) fn is_available() -> bool {
    editor().is_ok()
}

/// Lets the person edit a command. `None` if there is no new one.
pub(crate) fn edit_command(command: &str) -> Result<Option<String>, CliError> {
    let Some(edited) = edit("command.sh", format!("{command}\n").as_bytes())? else { return Ok(None) };
    let edited = String::from_utf8(edited)
        .map_err(|error| CliError::invalid_input("the edited command is not UTF-8").caused_by(&error))?;
    Ok(Some(edited.trim_end_matches(['\n', '\r']).to_owned()).filter(|edited| !edited.trim().is_empty()))
}

/// Lets the person edit a text. `None` if it is unchanged or empty, or if the editor failed, as in git.
pub(crate) fn edit(name: &str, text: &[u8]) -> Result<Option<Vec<u8>>, CliError> {
    match open(name, text)? {
        EditorResult::Edited(edited) => return Ok(Some(edited)),
        EditorResult::Unchanged => say("Nothing was edited."),
        EditorResult::Failed(reason) => say(&reason),
    }
    Ok(None)
}

/// Opens a text in the person's editor. `name` tells the editor the language.
pub(crate) fn open(name: &str, text: &[u8]) -> Result<EditorResult, CliError> {
    let failed = |error: std::io::Error| CliError::io("cannot write the text for the editor", &error);
    let editor = editor()?;
    let folder = private_folder().map_err(failed)?;
    let path = folder.path().join(name);
    std::fs::write(&path, text).map_err(failed)?;
    // A shell splits the setting, which may hold arguments, as git does.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(&path);
    match terminal::lend(|| command.status()) {
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Ok(EditorResult::Failed(format!("The editor `{editor}` ended with {status}; nothing was taken.")));
        }
        Err(error) => {
            let reason = format!("The editor `{editor}` could not be started: {error}. Set EDITOR to one that can.");
            return Ok(EditorResult::Failed(reason));
        }
    }
    // An editor that removed the file is treated as an empty one.
    let edited = std::fs::read(&path).unwrap_or_default();
    let is_unchanged = edited == text || edited.is_empty();
    Ok(if is_unchanged { EditorResult::Unchanged } else { EditorResult::Edited(edited) })
}

/// Saves a text that could not be used, readable by the user only, and returns its path.
pub(crate) fn save(text: &str) -> std::io::Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("sayso-").suffix(".txt").tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file.keep()?.1)
}

/// The person's editor, or `vi` on a terminal.
fn editor() -> Result<String, CliError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    match variable("VISUAL").or_else(|| variable("EDITOR")) {
        Some(editor) => Ok(editor),
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => Ok("vi".to_owned()),
        None => Err(CliError::invalid_input("cannot open an editor without a terminal")
            .hint("set EDITOR to an editor that needs none")),
    }
}

fn private_folder() -> std::io::Result<tempfile::TempDir> {
    let private = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("sayso-").permissions(private).tempdir()
}
