//! Edits as a JSON Patch (RFC 6902).

use std::collections::BTreeSet;

use crate::edit::{EditError, EditOp, EditStep, EditTargetKind};
use crate::json::{Document, DocumentChange, JsonKind, PathStep, Presence, Target, text};
use crate::request::ModelRequest;

impl ModelRequest {
    /// Returns all edits as a JSON Patch of the received body. Values keep their notation.
    pub fn to_patch(&self) -> Result<Vec<u8>, EditError> {
        let document = self.document().ok_or(EditError::UnknownFormat)?;
        let mut operations = Vec::new();
        for target in document.replaced_values() {
            if is_outermost(document, target) {
                // A JSON Pointer cannot distinguish members of the same name, so replace their container.
                let received = document.as_received();
                let mut replaced = target;
                while received.steps(replaced).iter().any(|step| matches!(step, PathStep::Shadowed(..))) {
                    replaced = document.parent(replaced).unwrap_or(Target::WHOLE);
                }
                operations.push((
                    usize::MAX,
                    replace_operation(&original_pointer(document, replaced), &document.value_bytes(replaced)),
                ));
            }
        }
        for container in document.relisted_containers() {
            if is_outermost(document, container) {
                // Patch inner lists first, while the outer ones still have their received order.
                let pointer = original_pointer(document, container);
                let depth = pointer.matches('/').count();
                for operation in list_operations(document, container, &pointer) {
                    operations.push((depth, operation));
                }
            }
        }
        operations.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        let operations: Vec<Vec<u8>> = operations.into_iter().map(|(_, operation)| operation).collect();
        Ok([&b"["[..], &operations.join(&b","[..]), b"]"].concat())
    }

    /// Applies a JSON Patch, all operations or none.
    pub fn apply_patch(&mut self, patch: &[u8]) -> Result<&EditOp, EditError> {
        let mut document = self.document().ok_or(EditError::UnknownFormat)?.clone();
        let wrong = |operation, why: &str| EditError::Patch { operation, why: why.to_owned() };
        let patch = Document::parse(patch).map_err(|error| wrong(0, &error.to_string()))?;
        if patch.kind(patch.root()) != JsonKind::Array {
            return Err(wrong(0, "a patch is a list of operations"));
        }
        let mut steps = Vec::new();
        for (number, operation) in patch.children(patch.root()).enumerate() {
            for change in operation_changes(&mut document, &patch, operation).map_err(|why| wrong(number, &why))? {
                if let Some(why) = self.forbidden(&change) {
                    return Err(wrong(number, why));
                }
                steps.push(EditStep::Body(change));
            }
        }
        if let Some(own) = self.document_mut() {
            own.adopt_sources(&document);
        }
        Ok(self.commit_steps(EditTargetKind::Patch, String::new(), steps))
    }
}

impl ModelRequest {
    /// Returns the reason why a change is forbidden; `None` if it is allowed.
    fn forbidden(&self, change: &DocumentChange) -> Option<&'static str> {
        let known = |target: Target| self.document().is_some_and(|document| document.contains(target));
        match change {
            DocumentChange::Value { target, .. } => known(*target).then(|| self.read_only_reason(*target)).flatten(),
            DocumentChange::Children { new, .. } => {
                let gone = new.iter().flat_map(|list| list.iter()).filter(|child| child.presence == Presence::Deleted);
                let stays = |target: Target| self.section(target.into()).is_some_and(|section| !section.deletable);
                let mut gone = gone.filter(|child| known(child.value) && stays(child.value));
                gone.next().map(|_| "what it removes has to stay")
            }
        }
    }
}

/// `true` if no container around the value is replaced as a whole.
fn is_outermost(document: &Document, target: Target) -> bool {
    let replaced: BTreeSet<Target> = document.replaced_values().collect();
    let mut next = document.is_original_value(target).then(|| document.parent(target)).flatten();
    while let Some(parent) = next {
        if replaced.contains(&parent) {
            return false;
        }
        next = document.parent(parent);
    }
    document.is_original_value(target) && (document.is_present(target) || document.parent(target).is_none())
}

/// Returns the JSON Pointer of a value in the received body.
fn original_pointer(document: &Document, target: Target) -> String {
    document.as_received().pointer(target)
}

fn replace_operation(pointer: &str, value: &[u8]) -> Vec<u8> {
    [&br#"{"op":"replace","path":"#[..], &text::encode(pointer), br#","value":"#, value, b"}"].concat()
}

fn add_operation(pointer: &str, value: &[u8]) -> Vec<u8> {
    [&br#"{"op":"add","path":"#[..], &text::encode(pointer), br#","value":"#, value, b"}"].concat()
}

fn remove_operation(pointer: &str) -> Vec<u8> {
    [&br#"{"op":"remove","path":"#[..], &text::encode(pointer), b"}"].concat()
}

/// Returns the operations that turn the received list of a container into the current one.
fn list_operations(document: &Document, container: Target, pointer: &str) -> Vec<Vec<u8>> {
    let received: Vec<Target> = document.original_values(container).collect();
    let now: Vec<Target> = document.children(container).collect();
    let kept: Vec<Target> = now.iter().copied().filter(|value| received.contains(value)).collect();
    let in_order = kept.is_sorted();
    let names: Vec<_> = received.iter().chain(&now).filter_map(|value| document.key(*value)).collect();
    let unique = names.iter().collect::<BTreeSet<_>>().len();
    let object = document.kind(container) == JsonKind::Object;
    let twins = object
        && received.iter().filter_map(|value| document.key(*value)).collect::<BTreeSet<_>>().len() < received.len();
    if !in_order || twins || (object && unique < names.len() - kept.len()) {
        return vec![replace_operation(pointer, &document.value_bytes(container))];
    }
    let escaped = |value: Target| {
        let name = document.key(value).unwrap_or_default().replace('~', "~0").replace('/', "~1");
        format!("{pointer}/{name}")
    };
    let mut operations = Vec::new();
    for (index, value) in received.iter().enumerate().rev() {
        if !now.contains(value) {
            operations.push(remove_operation(&if object { escaped(*value) } else { format!("{pointer}/{index}") }));
        }
    }
    for (index, value) in now.iter().enumerate() {
        if !received.contains(value) {
            let place = if object { escaped(*value) } else { format!("{pointer}/{index}") };
            operations.push(add_operation(&place, &document.value_bytes(*value)));
        }
    }
    operations
}

/// Converts an operation to document changes and applies them.
fn operation_changes(
    document: &mut Document,
    patch: &Document,
    operation: Target,
) -> Result<Vec<DocumentChange>, String> {
    let word = |name: &str| patch.member_text(operation, name).ok_or_else(|| format!("it has no `{name}`"));
    let value = || {
        let value = patch.member(operation, "value").ok_or("it has no `value`")?;
        Ok::<_, String>(patch.raw(value).to_vec())
    };
    let path = word("path")?;
    match word("op")?.as_ref() {
        "replace" => {
            let target = find(document, &path)?;
            replace(document, target, &value()?)
        }
        "remove" => remove(document, &path),
        "add" => add(document, &path, &value()?),
        "copy" => {
            let from = find(document, &word("from")?)?;
            let value = document.value_bytes(from);
            add(document, &path, &value)
        }
        "move" => {
            let from = word("from")?;
            let target = find(document, &from)?;
            let value = document.value_bytes(target);
            let mut made = remove(document, &from)?;
            made.extend(add(document, &path, &value)?);
            Ok(made)
        }
        "test" => {
            let target = find(document, &path)?;
            let read = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
            let (wanted, found) = (read(&value()?), read(&document.value_bytes(target)));
            // Values that cannot be compared by meaning are compared by notation.
            let same = if wanted.is_some() { wanted == found } else { value()? == document.value_bytes(target) };
            if same { Ok(Vec::new()) } else { Err(format!("`{path}` is something else")) }
        }
        other => Err(format!("`{other}` is no operation")),
    }
}

fn find(document: &Document, pointer: &str) -> Result<Target, String> {
    let steps = document.pointer_steps(pointer).ok_or_else(|| format!("`{pointer}` is no JSON Pointer"))?;
    document.resolve_steps(pointer, &steps).map_err(|error| error.to_string())
}

fn replace(document: &mut Document, target: Target, value: &[u8]) -> Result<Vec<DocumentChange>, String> {
    let change = document.replace(target, value).map_err(|error| error.to_string())?;
    document.apply(&change);
    Ok(vec![change])
}

fn remove(document: &mut Document, pointer: &str) -> Result<Vec<DocumentChange>, String> {
    let target = find(document, pointer)?;
    let change = document.delete(target).ok_or("the whole body cannot be removed")?;
    document.apply(&change);
    Ok(vec![change])
}

fn add(document: &mut Document, pointer: &str, value: &[u8]) -> Result<Vec<DocumentChange>, String> {
    let steps = document.pointer_steps(pointer).ok_or_else(|| format!("`{pointer}` is no JSON Pointer"))?;
    let Some((last, before)) = steps.split_last() else { return replace(document, Target::WHOLE, value) };
    let container = document.resolve_steps(pointer, before).map_err(|error| error.to_string())?;
    let added = match (document.kind(container), last) {
        (JsonKind::Object, PathStep::Member(name)) => {
            if let Some(existing) = document.member(container, name) {
                return replace(document, existing, value);
            }
            document.add_member(container, name, value)
        }
        (JsonKind::Array, PathStep::Element(index)) => {
            let length = document.children(container).count();
            if *index > length {
                return Err(format!("`{pointer}` is beyond the end"));
            }
            let before = document.children(container).nth(*index);
            document.add_element(container, before, value)
        }
        _ => return Err(format!("nothing can be added at `{pointer}`")),
    };
    let (_, change) = added.map_err(|error| error.to_string())?.ok_or("no value can be added there")?;
    document.apply(&change);
    Ok(vec![change])
}

impl ModelRequest {
    /// `true` if the value was added after the request was received.
    pub fn is_added(&self, target: Target) -> bool {
        self.document().is_some_and(|document| !document.is_original_value(target))
    }

    /// `true` if the value or a value in it was edited, deleted or added.
    pub fn is_edited(&self, target: Target) -> bool {
        let Some(document) = self.document() else { return self.is_dirty() };
        if !document.contains(target) {
            return false;
        }
        if self.is_added(target) || !document.is_present(target) {
            return true;
        }
        let inside = |own: Target| {
            let mut next = Some(own);
            while let Some(own) = next {
                if own == target {
                    return true;
                }
                next = document.parent(own);
            }
            false
        };
        document.replaced_values().chain(document.relisted_containers()).any(inside)
    }
}
