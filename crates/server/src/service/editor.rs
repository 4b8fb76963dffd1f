//! `EditorService`: surfaces that are editors. For persons only.

use std::collections::BTreeMap;
use std::sync::Arc;

use connectrpc::{ConnectError, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::stream;
use sayso_api::convert::BadMessage;
use sayso_api::proto::register_editor_response::{Heartbeat, Registered};
use sayso_api::proto::{self, oneof};
use sayso_gate::EditorId;
use sayso_review::{ContentHash, ErrorKind, MAX_FILE_BYTES, WsPath};

use super::stream::HEARTBEAT_INTERVAL;
use crate::editors::{EditorAnswer, EditorRegistration, MAX_DIRTY_FILES, MAX_EDITORS};
use crate::failure::Failure;
use crate::host::{Host, blocking, now, run_as_person};

/// Characters of an editor's name.
const MAX_NAME_CHARS: usize = 100;

#[derive(Clone, Debug)]
pub(crate) struct EditorCalls(pub(crate) Arc<Host>);

impl proto::EditorService for EditorCalls {
    async fn register_editor(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::RegisterEditorRequest>,
    ) -> ServiceResult<ServiceStream<proto::RegisterEditorResponse>> {
        let request = request.to_owned_message();
        let registration = run_as_person(&self.0, &context, move |host| register(host, request)).await?;
        self.refresh_previews();
        let registered = EditorStream { host: Arc::clone(&self.0), registration, was_told: false };
        Response::stream_ok(stream::unfold(registered, EditorStream::next))
    }

    async fn answer_editor_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AnswerEditorRequestRequest>,
    ) -> ServiceResult<proto::AnswerEditorRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(run_as_person(&self.0, &context, move |host| answer(host, request)).await?)
    }

    async fn report_dirty_files(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ReportDirtyFilesRequest>,
    ) -> ServiceResult<proto::ReportDirtyFilesResponse> {
        let request = request.to_owned_message();
        run_as_person(&self.0, &context, move |host| {
            let dirty = dirty_files(host, &request.dirty_files)?;
            let is_known = editor_id(&request.editor).is_some_and(|id| host.editors.report_dirty(id, dirty));
            if is_known { Ok(()) } else { Err(unknown_editor(&request.editor)) }
        })
        .await?;
        self.refresh_previews();
        Response::ok(proto::ReportDirtyFilesResponse::default())
    }
}

impl EditorCalls {
    /// Refreshes the previews of pending changes. Not awaited: the editor may be asked for text, and has to read its stream.
    fn refresh_previews(&self) {
        let host = Arc::clone(&self.0);
        tokio::spawn(async move {
            let refreshed = blocking(&host, |host| {
                if host.gate.read(|history| history.status())?.pending > 0 {
                    host.gate.tick(now())?;
                }
                Ok(())
            });
            if let Err(error) = refreshed.await {
                tracing::warn!(%error, "cannot refresh previews");
            }
        });
    }
}

fn register(host: &Host, request: proto::RegisterEditorRequest) -> Result<EditorRegistration, Failure> {
    let proto::RegisterEditorRequest { name, applies, dirty_files: files, .. } = request;
    if name.trim().is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        let reason = format!("it needs 1 to {MAX_NAME_CHARS} printable characters");
        return Err(BadMessage::new("name", reason).into());
    }
    let dirty = dirty_files(host, &files)?;
    host.editors.register(name, applies, dirty).ok_or_else(|| {
        Failure::new(ErrorKind::Unavailable, format!("{MAX_EDITORS} editors are registered already"))
            .hint("close an editor of this workspace")
    })
}

/// Reads a list of files with unsaved changes: the paths as given, by their location after symbolic links.
fn dirty_files(host: &Host, files: &[String]) -> Result<BTreeMap<WsPath, WsPath>, Failure> {
    if files.len() > MAX_DIRTY_FILES {
        let reason = format!("it has {} files; the limit is {MAX_DIRTY_FILES}", files.len());
        return Err(BadMessage::new("dirty_files", reason).into());
    }
    let mut dirty = BTreeMap::new();
    for file in files {
        let path = host.workspace.locate(file)?;
        let location = match host.workspace.open_path(&path) {
            Ok(opened) => opened.resolved,
            Err(sayso_workspace::OpenError::NotFound(_)) => path.clone(),
            Err(error) => return Err(error.into()),
        };
        dirty.insert(location, path);
    }
    Ok(dirty)
}

fn answer(
    host: &Host,
    request: proto::AnswerEditorRequestRequest,
) -> Result<proto::AnswerEditorRequestResponse, Failure> {
    use oneof::answer_editor_request_request::Answer;
    let proto::AnswerEditorRequestRequest { editor, request_id, answer, .. } = request;
    let (answer, buffer_hash) = match answer {
        Some(Answer::Buffer(buffer)) => {
            if buffer.text.as_ref().is_some_and(|text| text.len() as u64 > MAX_FILE_BYTES) {
                let reason = format!("the text has more than {} MiB", MAX_FILE_BYTES >> 20);
                // Answered, so that the preview does not wait for the time limit.
                let answer = EditorAnswer::Error("its text is too large".to_owned());
                let _ = editor_id(&editor).and_then(|id| host.editors.answer(id, &request_id, answer));
                return Err(BadMessage::new("buffer.text", reason).into());
            }
            let hash = buffer.text.as_ref().map(|text| ContentHash::of(text.as_bytes()).to_string());
            (EditorAnswer::Buffer(*buffer), hash)
        }
        Some(Answer::Apply(apply)) => (EditorAnswer::Apply(*apply), None),
        Some(Answer::Error(error)) => (EditorAnswer::Error(error), None),
        None => return Err(BadMessage::new("answer", "it is missing").into()),
    };
    let accepted = editor_id(&editor).and_then(|id| host.editors.answer(id, &request_id, answer));
    let accepted = accepted.ok_or_else(|| unknown_editor(&editor))?;
    let accepted = accepted.map_err(|reason| Failure::from(BadMessage::new("answer", reason)))?;
    Ok(proto::AnswerEditorRequestResponse { accepted, buffer_hash, ..Default::default() })
}

fn editor_id(text: &str) -> Option<EditorId> {
    text.parse().ok()
}

fn unknown_editor(editor: &str) -> Failure {
    Failure::new(ErrorKind::Stale, format!("no editor `{}` is registered", editor.escape_debug()))
        .hint("call RegisterEditor again; a registration ends with its stream")
}

/// The stream of `RegisterEditor`. Dropping it ends the registration.
struct EditorStream {
    host: Arc<Host>,
    registration: EditorRegistration,
    was_told: bool,
}

impl EditorStream {
    /// Produces the next message: the registration, then requests and heartbeats.
    async fn next(mut self) -> Option<(Result<proto::RegisterEditorResponse, ConnectError>, Self)> {
        if !std::mem::replace(&mut self.was_told, true) {
            let editor = self.registration.id.to_string();
            let registered = Registered { editor, ..Default::default() };
            return Some((Ok(proto::RegisterEditorResponse { kind: registered.into(), ..Default::default() }), self));
        }
        let mut stopping = self.host.stopping.subscribe();
        let message = tokio::select! {
            message = self.registration.messages.recv() => message?,
            _ = stopping.wait_for(|stopping| *stopping) => return None,
            () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {
                proto::RegisterEditorResponse { kind: Heartbeat::default().into(), ..Default::default() }
            }
        };
        Some((Ok(message), self))
    }
}
