//! A request that can be displayed and edited before it is sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dialect::{self, Dialect, Projection, RequestHead, RequestIdentity, RequestPurpose, SectionGroup};
use crate::edit::{EditHistory, EditOp, EditStep};
use crate::json::{Document, DocumentChange, JsonKind, ParseError, Target, text};
use crate::section::{ContentKind, Editable, NodeType, Section, SectionId, SectionKind};
use crate::validate::{RequestProblem, RequestProblemKind, validate};

/// A model request with its received and its current state.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub(crate) id: String,
    pub(crate) head: RequestHead,
    pub(crate) body: RequestBody,
    /// Groups with their sections.
    groups: Vec<(SectionGroup, Vec<Section>)>,
    /// Index of each group by its value.
    group_indexes: BTreeMap<Target, usize>,
    calls: BTreeMap<String, String>,
    pub(crate) history: EditHistory,
    pub(crate) version: u64,
    pub(crate) pins: Vec<SectionId>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum RequestBody {
    /// A body of a known format.
    Known { dialect: &'static dyn Dialect, purpose: RequestPurpose, document: Document },
    /// JSON of an unknown format.
    Json { document: Document },
    /// Bytes that are not valid JSON.
    Raw { received: Arc<[u8]>, now: Option<Arc<[u8]>>, why: ParseError },
}

impl ModelRequest {
    /// Creates a request from any body. A body of unknown format can still be forwarded.
    pub fn new(id: impl Into<String>, head: RequestHead, body: impl Into<Arc<[u8]>>) -> Self {
        let bytes = body.into();
        let body = match Document::parse(Arc::clone(&bytes)) {
            Err(why) => RequestBody::Raw { received: bytes, now: None, why },
            Ok(document) => {
                let object = document.kind(document.root()) == JsonKind::Object;
                let known = dialect::ALL.into_iter().filter(|_| object);
                let mut known = known.filter_map(|one| Some((one, one.recognise(&head, &document)?)));
                match known.next() {
                    Some((dialect, purpose)) => RequestBody::Known { dialect, purpose, document },
                    None => RequestBody::Json { document },
                }
            }
        };
        let mut request = Self {
            id: id.into(),
            head,
            body,
            groups: Vec::new(),
            group_indexes: BTreeMap::new(),
            calls: BTreeMap::new(),
            history: EditHistory::default(),
            version: 0,
            pins: Vec::new(),
        };
        request.project();
        request
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the path and headers.
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// Returns the dialect; `None` if the format is unknown.
    pub fn dialect(&self) -> Option<&'static dyn Dialect> {
        match &self.body {
            RequestBody::Known { dialect, .. } => Some(*dialect),
            _ => None,
        }
    }

    /// Returns the purpose; `None` if the format is unknown.
    pub fn purpose(&self) -> Option<RequestPurpose> {
        match &self.body {
            RequestBody::Known { purpose, .. } => Some(*purpose),
            _ => None,
        }
    }

    /// Returns the body if it is JSON.
    pub fn document(&self) -> Option<&Document> {
        match &self.body {
            RequestBody::Known { document, .. } | RequestBody::Json { document } => Some(document),
            RequestBody::Raw { .. } => None,
        }
    }

    pub(crate) fn document_mut(&mut self) -> Option<&mut Document> {
        match &mut self.body {
            RequestBody::Known { document, .. } | RequestBody::Json { document } => Some(document),
            RequestBody::Raw { .. } => None,
        }
    }

    /// Returns the identity that the request states.
    pub fn identity(&self) -> RequestIdentity {
        match &self.body {
            RequestBody::Known { dialect, document, .. } => dialect.identity(&self.head, document),
            _ => RequestIdentity { agent: self.head.agent().map(str::to_owned), ..RequestIdentity::default() },
        }
    }

    /// Returns the received body.
    pub fn original(&self) -> &Arc<[u8]> {
        match &self.body {
            RequestBody::Known { document, .. } | RequestBody::Json { document } => document.original(),
            RequestBody::Raw { received, .. } => received,
        }
    }

    /// Returns the body to send. Without an edit, these are the received bytes.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match &self.body {
            RequestBody::Known { document, .. } | RequestBody::Json { document } if document.is_original() => {
                Cow::Borrowed(document.original())
            }
            RequestBody::Known { document, .. } | RequestBody::Json { document } => Cow::Owned(document.to_bytes()),
            RequestBody::Raw { received, now, .. } => Cow::Borrowed(now.as_ref().unwrap_or(received)),
        }
    }

    /// `true` if the body to send differs from the received body.
    pub fn is_dirty(&self) -> bool {
        match &self.body {
            RequestBody::Known { document, .. } | RequestBody::Json { document } => !document.is_original(),
            RequestBody::Raw { now, .. } => now.is_some(),
        }
    }

    pub fn history(&self) -> &EditHistory {
        &self.history
    }

    /// Returns all sections in display order, including deleted ones.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.groups.iter().flat_map(|(_, sections)| sections)
    }

    pub fn section(&self, id: SectionId) -> Option<&Section> {
        let group_index = self.group_index(id.target)?;
        self.groups.get(group_index)?.1.iter().find(|section| section.id == id)
    }

    /// Returns the pinned sections in their order.
    pub fn pinned(&self) -> impl Iterator<Item = &Section> {
        self.pins.iter().filter_map(|id| self.section(*id))
    }

    pub fn is_pinned(&self, id: SectionId) -> bool {
        self.pins.contains(&id)
    }

    /// Returns the current path of a section. A deleted section has the path at which a restore would put it.
    pub fn raw_path(&self, section: &Section) -> String {
        let Some(document) = self.document() else { return String::new() };
        let path = document.path(section.id.target);
        match (section.node, section.id.tag) {
            (NodeType::Tag, Some(_)) => format!("{path}{}", section.label),
            _ => path,
        }
    }

    /// Returns the content of a section as text, or as JSON if it is not a string.
    pub fn content(&self, section: &Section) -> Cow<'_, str> {
        let Some(document) = self.document() else {
            return String::from_utf8_lossy(match &self.body {
                RequestBody::Raw { received, now, .. } => now.as_ref().unwrap_or(received),
                _ => self.original(),
            });
        };
        let shown = section.leaf.unwrap_or(section.id.target);
        if let (Some(range), JsonKind::String) = (&section.range, document.kind(shown)) {
            let raw = document.raw(shown);
            return raw.get(range.start + 1..range.end + 1).map(text::decode).unwrap_or_default();
        }
        document.text(shown).unwrap_or_else(|| {
            let bytes = document.value_bytes(shown);
            Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    /// Returns added top-level members that the API does not document.
    pub fn unknown_members(&self) -> Vec<String> {
        let RequestBody::Known { dialect, document, .. } = &self.body else { return Vec::new() };
        let added = document.children(document.root()).filter(|member| self.is_added(*member));
        let names = added.filter_map(|member| document.key(member).map(Cow::into_owned));
        names.filter(|name| !dialect.members().contains(&name.as_str())).collect()
    }

    /// Returns the problems of the request to send. An unknown format has none.
    pub fn problems(&self) -> Vec<RequestProblem> {
        match &self.body {
            RequestBody::Known { dialect, document, purpose } => {
                let mut problems = validate(*dialect, document);
                problems.extend(self.response_form_problem(*dialect, document, *purpose));
                problems
            }
            _ => Vec::new(),
        }
    }

    /// Reports an edit that changes the response between a stream and a single body, which the client did not ask for.
    fn response_form_problem(
        &self,
        dialect: &dyn Dialect,
        document: &Document,
        received: RequestPurpose,
    ) -> Option<RequestProblem> {
        dialect.recognise(&self.head, document).filter(|now| *now != received)?;
        let waits_for = if received == RequestPurpose::Stream { "a stream" } else { "an answer in one piece" };
        let target = self.resolve("stream").unwrap_or(document.root());
        let message = format!("its client waits for {waits_for}, and cannot read what this asks for");
        Some(RequestProblem { kind: RequestProblemKind::ResponseFormChanged, target, message, repairs: Vec::new() })
    }

    /// Returns the problems that block sending. An unedited request is never blocked, because the server decides.
    pub fn blocking_problems(&self) -> Vec<RequestProblem> {
        if !self.is_dirty() {
            return Vec::new();
        }
        // Problems of the received body are left to the server.
        let received = match &self.body {
            RequestBody::Known { dialect, document, .. } => validate(*dialect, &document.as_received()),
            _ => Vec::new(),
        };
        let known = |problem: &RequestProblem| {
            received.iter().any(|one| one.kind == problem.kind && one.target == problem.target)
        };
        self.problems().into_iter().filter(|problem| !known(problem)).collect()
    }

    /// Applies a checked edit and adds it to the history.
    pub(crate) fn commit(&mut self, op: EditOp) -> &EditOp {
        self.perform(&op.steps);
        self.version = op.id.version;
        self.history.redo.clear();
        self.history.undo.push(op);
        // The previous line pushed an element.
        &self.history.undo[self.history.undo.len() - 1]
    }

    /// Undoes the last edit.
    pub fn undo(&mut self) -> Option<&EditOp> {
        let op = self.history.undo.pop()?;
        self.perform(&op.inverted().steps);
        self.history.redo.push(op);
        self.history.redo.last()
    }

    /// Redoes the last undone edit.
    pub fn redo(&mut self) -> Option<&EditOp> {
        let op = self.history.redo.pop()?;
        self.perform(&op.steps);
        self.history.undo.push(op);
        self.history.undo.last()
    }

    fn perform(&mut self, steps: &[EditStep]) {
        let mut touched = Vec::new();
        for step in steps {
            match step {
                EditStep::Body(change) => {
                    if let Some(document) = self.document_mut() {
                        document.apply(change);
                    }
                    touched.push(match change {
                        DocumentChange::Value { target, .. } => Some(*target),
                        DocumentChange::Children { .. } => None,
                    });
                }
                EditStep::Pins { new, .. } => self.pins.clone_from(new),
                EditStep::Raw { new, .. } => {
                    if let RequestBody::Raw { now, .. } = &mut self.body {
                        now.clone_from(new);
                    }
                }
            }
        }
        match touched.as_slice() {
            [] => {}
            // The edit is within one section, so project only its group again.
            [Some(target)] => match self.group_index(*target).filter(|_| !self.changes_groups(*target)) {
                Some(group_index) => self.project_group(group_index),
                None => self.project(),
            },
            _ => self.project(),
        }
    }

    /// `true` if the value determines the list of groups.
    fn changes_groups(&self, target: Target) -> bool {
        let Some(document) = self.document() else { return true };
        document.parent(target).is_none_or(|parent| parent == document.root() && self.spans_several_sections(target))
    }

    /// `true` if a top-level member has, or had, more than one section.
    fn spans_several_sections(&self, target: Target) -> bool {
        let Some(document) = self.document() else { return true };
        !document.kind(target).is_leaf()
            || !document.original_kind(target).is_leaf()
            || !self.group_indexes.contains_key(&target)
    }

    /// Returns the index of the group that contains a value.
    fn group_index(&self, target: Target) -> Option<usize> {
        let mut next = Some(target);
        while let Some(target) = next {
            if let Some(group_index) = self.group_indexes.get(&target) {
                return Some(*group_index);
            }
            next = self
                .document()
                .filter(|document| document.contains(target))
                .and_then(|document| document.parent(target));
        }
        None
    }

    fn project_group(&mut self, group_index: usize) {
        let RequestBody::Known { dialect, document, .. } = &self.body else { return self.project() };
        let (group, sections) = &mut self.groups[group_index];
        let mut projection =
            Projection { sections: Vec::with_capacity(sections.len()), calls: std::mem::take(&mut self.calls) };
        dialect.project(&document.with_deleted(), group, &mut projection);
        mark_deleted(document, &mut projection.sections);
        (*sections, self.calls) = (projection.sections, projection.calls);
    }

    fn project(&mut self) {
        self.groups.clear();
        self.group_indexes.clear();
        match &self.body {
            RequestBody::Known { dialect, document, .. } => {
                let mut projection = Projection::default();
                let shown = document.with_deleted();
                for group in dialect.groups(document) {
                    dialect.project(&shown, &group, &mut projection);
                    mark_deleted(document, &mut projection.sections);
                    self.groups.push((group, std::mem::take(&mut projection.sections)));
                }
                self.calls = projection.calls;
                let targets =
                    self.groups.iter().enumerate().map(|(group_index, (group, _))| (group.target, group_index));
                self.group_indexes = targets.collect();
            }
            RequestBody::Json { .. } | RequestBody::Raw { .. } => self.project_raw(),
        }
    }

    /// Projects an unknown format as a single section.
    fn project_raw(&mut self) {
        let root = Target::WHOLE;
        let editable = match &self.body {
            // Binary content would be damaged by an edit as text.
            RequestBody::Raw { received, .. } if std::str::from_utf8(received).is_err() => {
                Editable::No("it is not text")
            }
            _ => Editable::Yes,
        };
        let section = Section {
            content: ContentKind::Text,
            leaf: Some(root),
            editable,
            ..Section::new(root, NodeType::Raw, SectionKind::Other, "Raw prompt")
        };
        let group = SectionGroup {
            target: root,
            role: dialect::GroupRole::Message,
            presence: crate::json::Presence::Present,
            index: 0,
        };
        self.group_indexes.insert(root, 0);
        self.groups.push((group, vec![section]));
    }

    /// Returns the reason why the format is unknown; `None` if it is known.
    pub fn unknown_format_reason(&self) -> Option<String> {
        match &self.body {
            RequestBody::Known { .. } => None,
            RequestBody::Json { .. } => Some(format!("`{}` is of no API that sayso knows", self.head.route())),
            RequestBody::Raw { why, .. } => Some(format!("it is not JSON: {why}")),
        }
    }
}

/// Marks deleted sections with their parts, and renumbers the others.
fn mark_deleted(document: &Document, sections: &mut [Section]) {
    if document.relisted_containers().next().is_none() {
        return;
    }
    let relisted: BTreeSet<Target> = document.relisted_containers().collect();
    for index in 0..sections.len() {
        let parent = sections[index].parent;
        let outer = sections[..index].iter().rfind(|section| Some(section.id) == parent);
        let outer = outer.is_some_and(|section| section.deleted);
        let section = &mut sections[index];
        section.deleted |= outer;
        let container = document.parent(section.id.target);
        if container.is_some_and(|container| relisted.contains(&document.current(container))) {
            section.deleted |= document.is_deleted(section.id.target);
            let last = document.steps(section.id.target).pop();
            if let (Some(_), Some(crate::json::PathStep::Element(now))) = (section.content_index, last) {
                section.content_index = Some(now);
            }
        }
        let (own, parent) = (&sections[index], sections[index].parent);
        if own.node == NodeType::ToolCall && own.tool_call_index.is_some() {
            let calls = sections[..index].iter().filter(|other| other.parent == parent && !other.deleted);
            let before = calls.filter(|other| other.node == NodeType::ToolCall).count();
            sections[index].tool_call_index = Some(before);
        }
        if matches!(sections[index].node, NodeType::Metadata | NodeType::Tag) {
            // A part takes the indexes of its parent.
            let of = sections[..index].iter().rfind(|section| Some(section.id) == parent);
            sections[index].content_index = of.and_then(|section| section.content_index);
        }
    }
}
