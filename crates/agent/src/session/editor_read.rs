//! Reads through an editor, which has unsaved text, in scenarios that only propose.

use sayso_tools::ToolOutput;
use serde_json::Value;

use super::calls::CallResult;
use super::invocation::{InvocationEnd, InvocationRun};
use super::shorten::head_and_tail;
use crate::host::{EditorText, SurfaceAnswer, SurfaceRequest};

/// Maximum size of a text from an editor for the model, in bytes.
const MAX_EDITOR_BYTES: usize = 100_000;

impl InvocationRun<'_> {
    /// Asks an editor for the text of a file that was read from disk. Falls back to the text from disk and says so.
    pub(super) async fn read_through_editor(
        &self,
        from_disk: ToolOutput,
        arguments: &Value,
    ) -> Result<CallResult, InvocationEnd> {
        let path = ["path", "file_path"].iter().find_map(|name| arguments.get(name)?.as_str());
        let Some(path) = path.filter(|_| self.scenario().is_ok_and(|scenario| scenario.proposes_only())) else {
            return Ok(from_disk.into());
        };
        let number = |name: &str| u32::try_from(arguments.get(name)?.as_u64()?).ok();
        let (offset, limit) = (number("offset"), number("limit"));
        let reason = "the agent needs the current text, with unsaved changes".to_owned();
        let request = SurfaceRequest::FileRead { path: path.to_owned(), offset, limit, reason };
        let note = match self.ask(request).await? {
            SurfaceAnswer::FileText(text) => return Ok(CallResult::text(numbered(&text, offset.unwrap_or(1)))),
            SurfaceAnswer::FileError { message } => format!("the editor could not read it: {message}"),
            SurfaceAnswer::TimedOut => "the editor did not answer in time".to_owned(),
            _ => "no editor is attached".to_owned(),
        };
        let mut result = CallResult::from(from_disk);
        result.text = format!("{}\n(Read from disk: {note}.)", result.text.trim_end_matches('\n'));
        Ok(result)
    }
}

/// Writes lines with their numbers, in the form of the Read tool.
fn numbered(text: &EditorText, first: u32) -> String {
    let mut shown = String::new();
    for (index, line) in text.content.lines().enumerate() {
        shown.push_str(&format!("{:>6}\t{line}\n", index as u64 + u64::from(first)));
    }
    if shown.is_empty() {
        shown.push_str("(empty)\n");
    }
    if text.unsaved {
        shown.push_str("(From the editor, with unsaved changes.)\n");
    }
    head_and_tail(&shown, MAX_EDITOR_BYTES, 0)
}
