//! An editor of a workspace: it reports unsaved files, and answers requests of the engine.

use sayso_review::{ChangeId, ContentHash, WsPath};

use super::Client;
use super::call::ResponseStream;
use super::error::{CallFailure, ClientError, SideEffect};
use super::watch::next_message;
use crate::convert::{BadMessage, field};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::answer_editor_request_request::Answer;
use crate::proto::oneof::apply_request::file::Operation;
use crate::proto::oneof::register_editor_response::Kind;

/// A registered editor. The registration ends with the connection; register again after an error.
#[derive(Debug)]
pub struct Editor {
    client: Client,
    id: String,
    stream: Box<ResponseStream<view::RegisterEditorResponseView<'static>>>,
}

/// Request of the engine to an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorRequest {
    /// Asks for the unsaved text of a file.
    Buffer { request: String, path: WsPath },
    /// Asks to apply and save an approved change, as one edit with one undo.
    Apply {
        request: String,
        change: ChangeId,
        files: Vec<EditorFile>,
        /// Time after which the engine writes the files itself, in milliseconds since 1970.
        deadline: i64,
    },
    /// The engine no longer needs an answer.
    Cancelled { request: String },
}

/// One file of a change to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorFile {
    pub path: WsPath,
    pub operation: EditorOperation,
    /// Hash of the text that the edits are for, as [`Editor::answer_buffer`] returned it. `None` for a file without unsaved changes.
    pub buffer_hash: Option<ContentHash>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorOperation {
    /// Edits from the last line to the first.
    Edit(Vec<EditorLineEdit>),
    Create(String),
    Delete,
    Rename {
        to: WsPath,
    },
}

/// Replaces the lines from `start` up to `end`, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorLineEdit {
    pub start: usize,
    pub end: usize,
    pub text: String,
}

/// Unsaved text of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditorBuffer {
    /// `None` if the file is not open, or has no unsaved changes.
    pub text: Option<String>,
    /// Encoding in which the editor saves the file, such as `utf8bom`.
    pub encoding: Option<String>,
    /// Line break with which the editor saves the file.
    pub line_break: Option<String>,
}

/// Use of an answer by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerUse {
    /// `false` if the answer was late.
    pub accepted: bool,
    /// Hash of the text of a buffer.
    pub buffer_hash: Option<ContentHash>,
}

impl Client {
    /// Registers an editor. `applies` offers to apply approved changes as well.
    pub async fn register_editor(&self, name: &str, applies: bool, dirty: &[WsPath]) -> Result<Editor, ClientError> {
        let request = proto::RegisterEditorRequest {
            name: name.to_owned(),
            applies,
            dirty_files: dirty.iter().map(ToString::to_string).collect(),
            ..Default::default()
        };
        let spec = proto::EDITOR_SERVICE_REGISTER_EDITOR_SPEC;
        let mut stream = Box::new(self.stream(spec, request).await.map_err(failure)?);
        let first: proto::RegisterEditorResponse = next_message(&mut stream).await.map_err(failure)?;
        match first.kind {
            Some(Kind::Registered(registered)) => Ok(Editor { client: self.clone(), id: registered.editor, stream }),
            _ => Err(ClientError::bad("the first message is not the registration")),
        }
    }
}

impl Editor {
    /// Returns the next request. Cancel-safe: dropping the future loses no request.
    pub async fn next(&mut self) -> Result<EditorRequest, ClientError> {
        loop {
            let message: proto::RegisterEditorResponse = next_message(&mut self.stream).await.map_err(failure)?;
            match message.kind {
                Some(Kind::Buffer(buffer)) => {
                    let path = field::path(&buffer.path, "buffer.path").map_err(ClientError::bad)?;
                    return Ok(EditorRequest::Buffer { request: buffer.request_id, path });
                }
                Some(Kind::Apply(apply)) => return apply_request(*apply).map_err(ClientError::bad),
                Some(Kind::CancelledRequestId(request)) => return Ok(EditorRequest::Cancelled { request }),
                Some(Kind::Heartbeat(_) | Kind::Registered(_)) | None => {}
            }
        }
    }

    /// Replaces the list of files with unsaved changes.
    pub async fn report_dirty_files(&self, dirty: &[WsPath]) -> Result<(), ClientError> {
        let dirty_files = dirty.iter().map(ToString::to_string).collect();
        let request = proto::ReportDirtyFilesRequest { editor: self.id.clone(), dirty_files, ..Default::default() };
        let spec = proto::EDITOR_SERVICE_REPORT_DIRTY_FILES_SPEC;
        self.client.call::<_, view::ReportDirtyFilesResponseView<'static>, _>(spec, request).await.map(drop)
    }

    /// Answers a request for a buffer.
    pub async fn answer_buffer(&self, request: &str, buffer: EditorBuffer) -> Result<AnswerUse, ClientError> {
        let EditorBuffer { text, encoding, line_break } = buffer;
        let answer = proto::BufferAnswer { text, encoding, line_break, ..Default::default() };
        self.answer(request, Answer::Buffer(Box::new(answer))).await
    }

    /// Reports the end of an apply: success, or the reason why nothing was changed.
    pub async fn answer_apply(&self, request: &str, result: Result<(), String>) -> Result<AnswerUse, ClientError> {
        let answer = proto::ApplyAnswer { applied: result.is_ok(), error: result.err(), ..Default::default() };
        self.answer(request, Answer::Apply(Box::new(answer))).await
    }

    /// Declines a request.
    pub async fn decline(&self, request: &str, reason: &str) -> Result<AnswerUse, ClientError> {
        self.answer(request, Answer::Error(reason.to_owned())).await
    }

    async fn answer(&self, request: &str, answer: Answer) -> Result<AnswerUse, ClientError> {
        let request = proto::AnswerEditorRequestRequest {
            editor: self.id.clone(),
            request_id: request.to_owned(),
            answer: Some(answer),
            ..Default::default()
        };
        let spec = proto::EDITOR_SERVICE_ANSWER_EDITOR_REQUEST_SPEC;
        let response = self.client.call::<_, view::AnswerEditorRequestResponseView<'static>, _>(spec, request).await?;
        let hash = response.buffer_hash.as_deref().map(|hash| field::hash(hash, "buffer_hash")).transpose();
        Ok(AnswerUse { accepted: response.accepted, buffer_hash: hash.map_err(ClientError::bad)? })
    }
}

/// Turns a failed call into an error. A registration is not repeated: the caller reports its unsaved files anew.
fn failure(failure: CallFailure) -> ClientError {
    match failure {
        CallFailure::Remote(error) => error,
        CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause) => {
            ClientError::Unreachable { cause, side_effect: SideEffect::None }
        }
    }
}

fn apply_request(apply: proto::ApplyRequest) -> Result<EditorRequest, BadMessage> {
    let proto::ApplyRequest { request_id: request, change, files, deadline_ms: deadline, .. } = apply;
    let files = files
        .into_iter()
        .enumerate()
        .map(|(index, file)| editor_file(file).map_err(|error| error.within(&format!("apply.files[{index}]"))));
    Ok(EditorRequest::Apply { request, change, files: files.collect::<Result<_, _>>()?, deadline })
}

fn editor_file(file: proto::apply_request::File) -> Result<EditorFile, BadMessage> {
    let line_edit = |edit: proto::LineEdit| EditorLineEdit {
        start: edit.start_line as usize,
        end: edit.end_line as usize,
        text: edit.text,
    };
    let operation = match field::oneof(file.operation, "operation")? {
        Operation::Edit(edit) => EditorOperation::Edit(edit.edits.into_iter().map(line_edit).collect()),
        Operation::Create(text) => EditorOperation::Create(text),
        Operation::Delete(_) => EditorOperation::Delete,
        Operation::Rename(to) => EditorOperation::Rename { to: field::path(&to, "rename")? },
    };
    let buffer_hash = file.buffer_hash.map(|hash| field::hash(&hash, "buffer_hash")).transpose()?;
    Ok(EditorFile { path: field::path(&file.path, "path")?, operation, buffer_hash })
}
