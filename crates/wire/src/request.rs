//! A request that a person can look at and edit before it is sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dialect::{self, Dialect, Group, Head, Marks, Projection, Purpose};
use crate::edit::{EditHistory, EditOp, Step};
use crate::json::{Change, Document, Kind, ParseError, Target, text};
use crate::section::{ContentKind, Editable, NodeType, Section, SectionId, SectionKind};
use crate::validate::{Problem, ProblemKind, validate};

/// A request to a model, as it came and as it is to be sent.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub(crate) id: String,
    pub(crate) head: Head,
    pub(crate) body: Body,
    /// The sections of each value that has some.
    groups: Vec<(Group, Vec<Section>)>,
    /// Which of them is of which value.
    places: BTreeMap<Target, usize>,
    calls: BTreeMap<String, String>,
    pub(crate) history: EditHistory,
    pub(crate) version: u64,
    pub(crate) pins: Vec<SectionId>,
    collapsed: BTreeMap<SectionId, bool>,
}

/// A request's body.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// One whose structure is known.
    Known { dialect: &'static dyn Dialect, purpose: Purpose, document: Document },
    /// JSON of an API that is not.
    Json { document: Document },
    /// Bytes.
    Raw { came: Arc<[u8]>, now: Option<Arc<[u8]>>, why: ParseError },
}

impl ModelRequest {
    /// Takes in a request. Whatever it is, it can be sent on.
    pub fn new(id: impl Into<String>, head: Head, body: impl Into<Arc<[u8]>>) -> Self {
        let bytes = body.into();
        let body = match Document::parse(Arc::clone(&bytes)) {
            Err(why) => Body::Raw { came: bytes, now: None, why },
            Ok(document) => {
                let object = document.kind(document.root()) == Kind::Object;
                let known = dialect::ALL.into_iter().filter(|_| object);
                let mut known = known.filter_map(|one| Some((one, one.recognise(&head, &document)?)));
                match known.next() {
                    Some((dialect, purpose)) => Body::Known { dialect, purpose, document },
                    None => Body::Json { document },
                }
            }
        };
        let mut request = Self {
            id: id.into(),
            head,
            body,
            groups: Vec::new(),
            places: BTreeMap::new(),
            calls: BTreeMap::new(),
            history: EditHistory::default(),
            version: 0,
            pins: Vec::new(),
            collapsed: BTreeMap::new(),
        };
        request.project();
        request
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What came before its body.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The API that it is of; `None` if that is not known.
    pub fn dialect(&self) -> Option<&'static dyn Dialect> {
        match &self.body {
            Body::Known { dialect, .. } => Some(*dialect),
            _ => None,
        }
    }

    /// What it is for.
    pub fn purpose(&self) -> Option<Purpose> {
        match &self.body {
            Body::Known { purpose, .. } => Some(*purpose),
            _ => None,
        }
    }

    /// Its body, if that is JSON.
    pub fn document(&self) -> Option<&Document> {
        match &self.body {
            Body::Known { document, .. } | Body::Json { document } => Some(document),
            Body::Raw { .. } => None,
        }
    }

    pub(crate) fn document_mut(&mut self) -> Option<&mut Document> {
        match &mut self.body {
            Body::Known { document, .. } | Body::Json { document } => Some(document),
            Body::Raw { .. } => None,
        }
    }

    /// Whose request it is.
    pub fn marks(&self) -> Marks {
        match &self.body {
            Body::Known { dialect, document, .. } => dialect.marks(&self.head, document),
            _ => Marks { agent: self.head.agent().map(str::to_owned), ..Marks::default() },
        }
    }

    /// The body as it came.
    pub fn original(&self) -> &Arc<[u8]> {
        match &self.body {
            Body::Known { document, .. } | Body::Json { document } => document.original(),
            Body::Raw { came, .. } => came,
        }
    }

    /// The body as it is to be sent. Without an edit, the bytes that came.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match &self.body {
            Body::Known { document, .. } | Body::Json { document } if document.is_original() => {
                Cow::Borrowed(document.original())
            }
            Body::Known { document, .. } | Body::Json { document } => Cow::Owned(document.to_bytes()),
            Body::Raw { came, now, .. } => Cow::Borrowed(now.as_ref().unwrap_or(came)),
        }
    }

    /// Whether what is to be sent is not what came.
    pub fn is_dirty(&self) -> bool {
        match &self.body {
            Body::Known { document, .. } | Body::Json { document } => !document.is_original(),
            Body::Raw { now, .. } => now.is_some(),
        }
    }

    /// Its edits.
    pub fn history(&self) -> &EditHistory {
        &self.history
    }

    /// Everything in it, in the order in which a person reads it. What was taken out is there, and says so.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.groups.iter().flat_map(|(_, sections)| sections)
    }

    /// One section.
    pub fn section(&self, id: SectionId) -> Option<&Section> {
        let place = self.place(id.target)?;
        self.groups.get(place)?.1.iter().find(|section| section.id == id)
    }

    /// The sections that are kept at the top, in their order.
    pub fn pinned(&self) -> impl Iterator<Item = &Section> {
        self.pins.iter().filter_map(|id| self.section(*id))
    }

    /// Whether a section is kept at the top.
    pub fn is_pinned(&self, id: SectionId) -> bool {
        self.pins.contains(&id)
    }

    /// Whether no more than a section's label is shown.
    pub fn is_collapsed(&self, id: SectionId) -> bool {
        let usual = || self.section(id).is_some_and(|section| section.collapsed);
        self.collapsed.get(&id).copied().unwrap_or_else(usual)
    }

    /// Shows no more than a section's label, or all of it. This is no edit.
    pub fn collapse(&mut self, id: SectionId, folded: Folded) {
        self.collapsed.insert(id, folded == Folded::Yes);
    }

    /// Where a section is now: for what was taken out, where it would be.
    pub fn raw_path(&self, section: &Section) -> String {
        let Some(document) = self.document() else { return String::new() };
        let path = document.path(section.id.target);
        match (section.node, section.id.tag) {
            (NodeType::Tag, Some(_)) => format!("{path}{}", section.label),
            _ => path,
        }
    }

    /// What a section says: a text, or JSON where it is no text.
    pub fn content(&self, section: &Section) -> Cow<'_, str> {
        let Some(document) = self.document() else {
            return String::from_utf8_lossy(match &self.body {
                Body::Raw { came, now, .. } => now.as_ref().unwrap_or(came),
                _ => self.original(),
            });
        };
        let shown = section.leaf.unwrap_or(section.id.target);
        if let (Some(range), Kind::String) = (&section.range, document.kind(shown)) {
            let raw = document.raw(shown);
            return raw.get(range.start + 1..range.end + 1).map(text::decode).unwrap_or_default();
        }
        document.text(shown).unwrap_or_else(|| {
            let bytes = document.value_bytes(shown);
            Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    /// Members at the top of the body that did not come with it and that the API does not document.
    pub fn unknown_members(&self) -> Vec<String> {
        let Body::Known { dialect, document, .. } = &self.body else { return Vec::new() };
        let added = document.children(document.root()).filter(|member| self.is_added(*member));
        let names = added.filter_map(|member| document.key(member).map(Cow::into_owned));
        names.filter(|name| !dialect.members().contains(&name.as_str())).collect()
    }

    /// What is wrong with it, as it would be sent. What is not understood is not judged.
    pub fn problems(&self) -> Vec<Problem> {
        match &self.body {
            Body::Known { dialect, document, purpose } => {
                let mut problems = validate(*dialect, document);
                problems.extend(self.other_answer(*dialect, document, *purpose));
                problems
            }
            _ => Vec::new(),
        }
    }

    /// A client reads what it asked for: a stream, or one piece.
    fn other_answer(&self, dialect: &dyn Dialect, document: &Document, came: Purpose) -> Option<Problem> {
        dialect.recognise(&self.head, document).filter(|now| *now != came)?;
        let waits_for = if came == Purpose::Stream { "a stream" } else { "an answer in one piece" };
        let target = self.at("stream").unwrap_or(document.root());
        let message = format!("its client waits for {waits_for}, and cannot read what this asks for");
        Some(Problem { kind: ProblemKind::OtherAnswer, target, message, repairs: Vec::new() })
    }

    /// Whether it can be sent: unedited, always, since that is for the server to judge.
    pub fn blocking(&self) -> Vec<Problem> {
        if !self.is_dirty() {
            return Vec::new();
        }
        // What was wrong when it came is not for us to mend.
        let came = match &self.body {
            Body::Known { dialect, document, .. } => validate(*dialect, &document.as_came()),
            _ => Vec::new(),
        };
        let known = |problem: &Problem| came.iter().any(|one| one.kind == problem.kind && one.target == problem.target);
        self.problems().into_iter().filter(|problem| !known(problem)).collect()
    }

    /// Makes an edit that is known to fit, and remembers it.
    pub(crate) fn commit(&mut self, op: EditOp) -> &EditOp {
        self.perform(&op.steps);
        self.version = op.id.version;
        self.history.redo.clear();
        self.history.undo.push(op);
        // It was pushed just now.
        &self.history.undo[self.history.undo.len() - 1]
    }

    /// Takes the last edit back.
    pub fn undo(&mut self) -> Option<&EditOp> {
        let op = self.history.undo.pop()?;
        self.perform(&op.inverted().steps);
        self.history.redo.push(op);
        self.history.redo.last()
    }

    /// Makes an edit again that was taken back.
    pub fn redo(&mut self) -> Option<&EditOp> {
        let op = self.history.redo.pop()?;
        self.perform(&op.steps);
        self.history.undo.push(op);
        self.history.undo.last()
    }

    fn perform(&mut self, steps: &[Step]) {
        let mut touched = Vec::new();
        for step in steps {
            match step {
                Step::Body(change) => {
                    if let Some(document) = self.document_mut() {
                        document.apply(change);
                    }
                    touched.push(match change {
                        Change::Value { target, .. } => Some(*target),
                        Change::Children { .. } => None,
                    });
                }
                Step::Pins { new, .. } => self.pins.clone_from(new),
                Step::Raw { new, .. } => {
                    if let Body::Raw { now, .. } = &mut self.body {
                        now.clone_from(new);
                    }
                }
            }
        }
        match touched.as_slice() {
            [] => {}
            // One value in a section: only what shows it is made anew.
            [Some(target)] => match self.place(*target).filter(|_| !self.is_structure(*target)) {
                Some(place) => self.project_again(place),
                None => self.project(),
            },
            _ => self.project(),
        }
    }

    /// Whether a value decides which sections there are.
    fn is_structure(&self, target: Target) -> bool {
        let Some(document) = self.document() else { return true };
        document.parent(target).is_none_or(|parent| parent == document.root() && self.place_of_root(target))
    }

    /// Whether a member of the whole is, or was, more than one section.
    fn place_of_root(&self, target: Target) -> bool {
        let Some(document) = self.document() else { return true };
        !document.kind(target).is_leaf()
            || !document.original_kind(target).is_leaf()
            || !self.places.contains_key(&target)
    }

    /// The group that a value is in.
    fn place(&self, target: Target) -> Option<usize> {
        let mut next = Some(target);
        while let Some(target) = next {
            if let Some(place) = self.places.get(&target) {
                return Some(*place);
            }
            next =
                self.document().filter(|document| document.knows(target)).and_then(|document| document.parent(target));
        }
        None
    }

    fn project_again(&mut self, place: usize) {
        let Body::Known { dialect, document, .. } = &self.body else { return self.project() };
        let (group, sections) = &mut self.groups[place];
        let mut projection =
            Projection { sections: Vec::with_capacity(sections.len()), calls: std::mem::take(&mut self.calls) };
        dialect.project(&document.with_deleted(), group, &mut projection);
        mark_deleted(document, &mut projection.sections);
        (*sections, self.calls) = (projection.sections, projection.calls);
    }

    fn project(&mut self) {
        self.groups.clear();
        self.places.clear();
        match &self.body {
            Body::Known { dialect, document, .. } => {
                let mut projection = Projection::default();
                let shown = document.with_deleted();
                for group in dialect.groups(document) {
                    dialect.project(&shown, &group, &mut projection);
                    mark_deleted(document, &mut projection.sections);
                    self.groups.push((group, std::mem::take(&mut projection.sections)));
                }
                self.calls = projection.calls;
                let targets = self.groups.iter().enumerate().map(|(place, (group, _))| (group.target, place));
                self.places = targets.collect();
            }
            Body::Json { .. } | Body::Raw { .. } => self.project_raw(),
        }
    }

    /// One section with everything, where nothing in it is understood.
    fn project_raw(&mut self) {
        let root = Target::WHOLE;
        let editable = match &self.body {
            // What is not text would not survive being shown.
            Body::Raw { came, .. } if std::str::from_utf8(came).is_err() => Editable::No("it is not text"),
            _ => Editable::Yes,
        };
        let section = Section {
            content: ContentKind::Text,
            leaf: Some(root),
            editable,
            ..Section::new(root, NodeType::Raw, SectionKind::Other, "Raw prompt")
        };
        let group =
            Group { target: root, role: dialect::GroupRole::Message, presence: crate::json::Presence::Here, index: 0 };
        self.places.insert(root, 0);
        self.groups.push((group, vec![section]));
    }

    /// Why its structure is not known, if it is not.
    pub fn not_understood(&self) -> Option<String> {
        match &self.body {
            Body::Known { .. } => None,
            Body::Json { .. } => Some(format!("`{}` is of no API that sayso knows", self.head.route())),
            Body::Raw { why, .. } => Some(format!("it is not JSON: {why}")),
        }
    }
}

/// Marks what was taken out, with all that is in it, and counts the rest as it is counted now.
fn mark_deleted(document: &Document, sections: &mut [Section]) {
    if document.relisted().next().is_none() {
        return;
    }
    let relisted: BTreeSet<Target> = document.relisted().collect();
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
            if let (Some(_), Some(crate::json::Step::Element(now))) = (section.content_index, last) {
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
            // They are where what they belong to is.
            let of = sections[..index].iter().rfind(|section| Some(section.id) == parent);
            sections[index].content_index = of.and_then(|section| section.content_index);
        }
    }
}

/// Whether no more than a section's label is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// No more.
    Yes,
    /// All of it.
    No,
}
