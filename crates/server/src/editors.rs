//! The registered editors of an engine: their unsaved files, and the requests that they answer.
//!
//! The engine's threads block in [`Editors::read_buffers`] and [`Editors::apply`] until an answer arrives over
//! [`EditorService`](crate::service::editor), the editor disconnects, or the time limit passes. An editor that missed a limit is not
//! asked for text again until it calls, so that a hanging editor delays one preview and not each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sayso_api::proto::{self, oneof};
use sayso_gate::{
    Buffer, BufferRead, EditorId, EditorName, EditorOrder, EditorReport, Editors, LineReplacement, OrderedFile,
    OrderedOperation,
};
use sayso_review::{ContentHash, WsPath};
use tokio::sync::mpsc;

use crate::host::now;

/// Editors that can be registered at the same time.
pub(crate) const MAX_EDITORS: usize = 32;
/// Files with unsaved changes of one editor.
pub(crate) const MAX_DIRTY_FILES: usize = 1_000;
/// Messages that wait for an editor to read them. A slower editor is disconnected.
const MAX_QUEUED_MESSAGES: usize = 4_096;

const DISCONNECTED: &str = "it disconnected";
const NO_ANSWER: &str = "it did not answer in time";

/// Time limits for answers of editors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditorTiming {
    /// Text of a buffer.
    pub buffer: Duration,
    /// An applied and saved change. Saving may run a formatter.
    pub apply: Duration,
}

impl EditorTiming {
    pub const DEFAULT: Self = Self { buffer: Duration::from_secs(2), apply: Duration::from_secs(15) };
}

/// Message to an editor.
type Message = proto::RegisterEditorResponse;

/// The registered editors of one engine.
#[derive(Debug)]
pub(crate) struct EditorRegistry {
    state: Mutex<RegistryState>,
    /// Wakes threads that wait for an answer.
    answered: Condvar,
}

#[derive(Debug)]
struct RegistryState {
    /// In the order of registration.
    editors: Vec<RegisteredEditor>,
    last_editor: EditorId,
    last_request: u64,
    requests: BTreeMap<String, UnansweredRequest>,
    timing: EditorTiming,
}

#[derive(Debug)]
struct RegisteredEditor {
    name: EditorName,
    applies: bool,
    /// Files with unsaved changes: the path as the editor reported it, by location.
    dirty: BTreeMap<WsPath, WsPath>,
    sender: mpsc::Sender<Message>,
    /// `false` from a missed time limit until the next call of the editor.
    answers: bool,
}

/// A request to an editor without a used answer.
#[derive(Debug)]
struct UnansweredRequest {
    editor: EditorId,
    is_apply: bool,
    answer: Option<EditorAnswer>,
}

/// Answer of an editor to a request.
#[derive(Clone, Debug)]
pub(crate) enum EditorAnswer {
    Buffer(proto::BufferAnswer),
    Apply(proto::ApplyAnswer),
    /// The editor cannot do it.
    Error(String),
}

/// A registration, which ends on drop.
#[derive(Debug)]
pub(crate) struct EditorRegistration {
    registry: Arc<EditorRegistry>,
    pub(crate) id: EditorId,
    pub(crate) messages: mpsc::Receiver<Message>,
}

impl Drop for EditorRegistration {
    fn drop(&mut self) {
        self.registry.remove(self.id);
    }
}

impl Default for EditorRegistry {
    fn default() -> Self {
        let state = RegistryState {
            editors: Vec::new(),
            last_editor: 0,
            last_request: 0,
            requests: BTreeMap::new(),
            timing: EditorTiming::DEFAULT,
        };
        Self { state: Mutex::new(state), answered: Condvar::new() }
    }
}

impl EditorRegistry {
    fn state(&self) -> MutexGuard<'_, RegistryState> {
        // Each change of the state is complete before a panic could occur.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_timing(&self, timing: EditorTiming) {
        self.state().timing = timing;
    }

    /// Registers an editor. Returns `None` at the limit.
    pub(crate) fn register(
        self: &Arc<Self>,
        name: String,
        applies: bool,
        dirty: BTreeMap<WsPath, WsPath>,
    ) -> Option<EditorRegistration> {
        let mut state = self.state();
        if state.editors.len() >= MAX_EDITORS {
            return None;
        }
        state.last_editor += 1;
        let id = state.last_editor;
        let (sender, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let name = EditorName { id, name };
        state.editors.push(RegisteredEditor { name, applies, dirty, sender, answers: true });
        Some(EditorRegistration { registry: Arc::clone(self), id, messages })
    }

    /// Replaces the list of files with unsaved changes. Returns `false` for an unknown editor.
    pub(crate) fn report_dirty(&self, id: EditorId, dirty: BTreeMap<WsPath, WsPath>) -> bool {
        let mut state = self.state();
        let Some(editor) = state.editors.iter_mut().find(|editor| editor.name.id == id) else { return false };
        (editor.dirty, editor.answers) = (dirty, true);
        true
    }

    /// Takes an answer. Returns `None` for an unknown editor, and `false` if the request is over.
    pub(crate) fn answer(
        &self,
        id: EditorId,
        request: &str,
        answer: EditorAnswer,
    ) -> Option<Result<bool, &'static str>> {
        let mut state = self.state();
        state.editors.iter_mut().find(|editor| editor.name.id == id)?.answers = true;
        let Some(open) = state.requests.get_mut(request).filter(|open| open.editor == id && open.answer.is_none())
        else {
            return Some(Ok(false));
        };
        match (&answer, open.is_apply) {
            (EditorAnswer::Buffer(_), true) => return Some(Err("the request is to apply a change")),
            (EditorAnswer::Apply(_), false) => return Some(Err("the request is for a buffer")),
            _ => open.answer = Some(answer),
        }
        drop(state);
        self.answered.notify_all();
        Some(Ok(true))
    }

    fn remove(&self, id: EditorId) {
        let mut state = self.state();
        state.editors.retain(|editor| editor.name.id != id);
        for open in state.requests.values_mut().filter(|open| open.editor == id) {
            open.answer.get_or_insert_with(|| EditorAnswer::Error(DISCONNECTED.to_owned()));
        }
        drop(state);
        self.answered.notify_all();
    }

    /// Waits for the answers of requests, and ends the requests. An absent answer is late.
    fn wait(&self, requests: &[String], limit: Duration) -> Vec<Option<EditorAnswer>> {
        let deadline = Instant::now() + limit;
        let mut state = self.state();
        let is_open = |state: &RegistryState| {
            requests.iter().any(|id| state.requests.get(id).is_some_and(|open| open.answer.is_none()))
        };
        while is_open(&state) {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            (state, _) = self.answered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        requests.iter().map(|id| state.end_request(id)).collect()
    }
}

impl RegistryState {
    /// Sends a request to an editor. Returns `None` if the editor is gone, or reads no messages.
    fn send(&mut self, id: EditorId, is_apply: bool, message: impl FnOnce(String) -> Message) -> Option<String> {
        self.last_request += 1;
        let request = format!("r{}", self.last_request);
        let editor = self.editors.iter().find(|editor| editor.name.id == id)?;
        editor.sender.try_send(message(request.clone())).ok()?;
        self.requests.insert(request.clone(), UnansweredRequest { editor: id, is_apply, answer: None });
        Some(request)
    }

    /// Ends a request. Tells the editor if its answer is no longer needed.
    fn end_request(&mut self, request: &str) -> Option<EditorAnswer> {
        let open = self.requests.remove(request)?;
        if open.answer.is_none()
            && let Some(editor) = self.editors.iter_mut().find(|editor| editor.name.id == open.editor)
        {
            editor.answers = false;
            let kind = oneof::register_editor_response::Kind::CancelledRequestId(request.to_owned());
            // The editor disconnects if it reads no messages; its registration ends then.
            let _ = editor.sender.try_send(Message { kind: Some(kind), ..Default::default() });
        }
        open.answer
    }

    /// Returns the last registered editor with unsaved changes of a file.
    fn owner(&self, file: &WsPath) -> Option<&RegisteredEditor> {
        self.editors.iter().rev().find(|editor| editor.dirty.contains_key(file))
    }
}

impl Editors for EditorRegistry {
    fn dirty_files(&self) -> BTreeSet<WsPath> {
        self.state().editors.iter().flat_map(|editor| editor.dirty.keys().cloned()).collect()
    }

    fn read_buffers(&self, files: &BTreeSet<WsPath>) -> BTreeMap<WsPath, BufferRead> {
        let mut reads = BTreeMap::new();
        let mut asked = Vec::new();
        let mut state = self.state();
        let limit = state.timing.buffer;
        for file in files {
            let Some(owner) = state.owner(file) else {
                reads.insert(file.clone(), BufferRead::Saved);
                continue;
            };
            let (name, applies) = (owner.name.clone(), owner.applies);
            let path = owner.dirty.get(file).unwrap_or(file).to_string();
            let message = |request_id| {
                let buffer = proto::BufferRequest { request_id, path, ..Default::default() };
                Message { kind: buffer.into(), ..Default::default() }
            };
            let request = if owner.answers { state.send(name.id, false, message) } else { None };
            if let Some(request) = request {
                asked.push((request, file, name, applies));
            } else {
                let reason = NO_ANSWER.to_owned();
                reads.insert(file.clone(), BufferRead::Unknown { editor: name, reason });
            }
        }
        drop(state);
        let requests: Vec<String> = asked.iter().map(|(request, ..)| request.clone()).collect();
        let answers = if requests.is_empty() { Vec::new() } else { self.wait(&requests, limit) };
        for ((_, file, editor, applies), answer) in asked.into_iter().zip(answers) {
            reads.insert(file.clone(), buffer_read(editor, applies, answer));
        }
        reads
    }

    fn applying_editor(&self) -> Option<EditorName> {
        let state = self.state();
        state.editors.iter().rev().find(|editor| editor.applies).map(|editor| editor.name.clone())
    }

    fn apply(&self, order: &EditorOrder) -> EditorReport {
        let refused = |reason: &str| EditorReport::NotApplied { reason: reason.to_owned() };
        let mut state = self.state();
        let limit = state.timing.apply;
        let Some(editor) = state.editors.iter().find(|editor| editor.name.id == order.editor.id) else {
            return refused(DISCONNECTED);
        };
        let files = order.files.iter().map(|file| ordered_file(file, &editor.dirty)).collect();
        let deadline_ms = now().saturating_add(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
        let message = |request_id| {
            let apply =
                proto::ApplyRequest { request_id, change: order.change, files, deadline_ms, ..Default::default() };
            Message { kind: apply.into(), ..Default::default() }
        };
        let Some(request) = state.send(order.editor.id, true, message) else { return refused(NO_ANSWER) };
        drop(state);
        match self.wait(&[request], limit).pop().flatten() {
            Some(EditorAnswer::Apply(answer)) if answer.applied => EditorReport::Applied,
            Some(EditorAnswer::Apply(answer)) => {
                refused(answer.error.as_deref().unwrap_or("it could not, and gave no reason"))
            }
            Some(EditorAnswer::Error(reason)) => refused(&reason),
            Some(EditorAnswer::Buffer(_)) | None => refused(NO_ANSWER),
        }
    }
}

/// Translates the answer to a request for a buffer.
fn buffer_read(editor: EditorName, applies: bool, answer: Option<EditorAnswer>) -> BufferRead {
    use sayso_gate::BufferLineBreak::{CrLf, Lf};
    match answer {
        Some(EditorAnswer::Buffer(proto::BufferAnswer { text: None, .. })) => BufferRead::Saved,
        Some(EditorAnswer::Buffer(proto::BufferAnswer { text: Some(text), encoding, line_break, .. })) => {
            let line_break = line_break.map(|line_break| if line_break == "\r\n" { CrLf } else { Lf });
            BufferRead::Unsaved(Buffer { editor, applies, text, encoding, line_break })
        }
        Some(EditorAnswer::Error(reason)) => BufferRead::Unknown { editor, reason },
        Some(EditorAnswer::Apply(_)) | None => BufferRead::Unknown { editor, reason: NO_ANSWER.to_owned() },
    }
}

fn ordered_file(file: &OrderedFile, reported: &BTreeMap<WsPath, WsPath>) -> proto::apply_request::File {
    use oneof::apply_request::file::Operation;
    let edit = |edit: &LineReplacement| proto::LineEdit {
        start_line: u32::try_from(edit.start).unwrap_or(u32::MAX),
        end_line: u32::try_from(edit.end).unwrap_or(u32::MAX),
        text: edit.text.clone(),
        ..Default::default()
    };
    let operation = match &file.operation {
        OrderedOperation::Edit(edits) => {
            let edits = edits.iter().map(edit).collect();
            Operation::Edit(Box::new(proto::LineEdits { edits, ..Default::default() }))
        }
        OrderedOperation::Create(text) => Operation::Create(text.clone()),
        OrderedOperation::Delete => Operation::Delete(true),
        OrderedOperation::Rename { to } => Operation::Rename(to.to_string()),
    };
    proto::apply_request::File {
        path: reported.get(&file.path).unwrap_or(&file.path).to_string(),
        operation: Some(operation),
        buffer_hash: file.buffer_hash.as_ref().map(ContentHash::to_string),
        ..Default::default()
    }
}
