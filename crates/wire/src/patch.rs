//! Edits as a JSON Patch (RFC 6902), to be kept elsewhere and applied to the same request again.

use std::collections::BTreeSet;

use crate::edit::{EditError, EditOp, EditTargetKind, Step};
use crate::json::{Change, Document, Kind, Presence, Step as PathStep, Target, text};
use crate::request::ModelRequest;

impl ModelRequest {
    /// Everything that was edited, as a JSON Patch of the body that came. Values are as they are written in the request.
    pub fn to_patch(&self) -> Result<Vec<u8>, EditError> {
        let document = self.document().ok_or(EditError::NotUnderstood)?;
        let mut operations = Vec::new();
        for target in document.replaced() {
            if outermost(document, target) {
                // A pointer cannot tell members of one name apart, so that what they are in is replaced.
                let came = document.as_came();
                let mut told = target;
                while came.steps(told).iter().any(|step| matches!(step, PathStep::Hidden(..))) {
                    told = document.parent(told).unwrap_or(Target::WHOLE);
                }
                operations
                    .push((usize::MAX, replacing(&original_pointer(document, told), &document.value_bytes(told))));
            }
        }
        for container in document.relisted() {
            if outermost(document, container) {
                // Inner lists first, while those around them are as they came.
                let pointer = original_pointer(document, container);
                let depth = pointer.matches('/').count();
                for operation in relisting(document, container, &pointer) {
                    operations.push((depth, operation));
                }
            }
        }
        operations.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        let operations: Vec<Vec<u8>> = operations.into_iter().map(|(_, operation)| operation).collect();
        Ok([&b"["[..], &operations.join(&b","[..]), b"]"].concat())
    }

    /// Applies a JSON Patch, all of it or none.
    pub fn apply_patch(&mut self, patch: &[u8]) -> Result<&EditOp, EditError> {
        let mut document = self.document().ok_or(EditError::NotUnderstood)?.clone();
        let wrong = |operation, why: &str| EditError::Patch { operation, why: why.to_owned() };
        let patch = Document::parse(patch).map_err(|error| wrong(0, &error.to_string()))?;
        if patch.kind(patch.root()) != Kind::Array {
            return Err(wrong(0, "a patch is a list of operations"));
        }
        let mut steps = Vec::new();
        for (number, operation) in patch.children(patch.root()).enumerate() {
            for change in changes(&mut document, &patch, operation).map_err(|why| wrong(number, &why))? {
                if let Some(why) = self.forbidden(&change) {
                    return Err(wrong(number, why));
                }
                steps.push(Step::Body(change));
            }
        }
        if let Some(own) = self.document_mut() {
            own.learn(&document);
        }
        Ok(self.make(EditTargetKind::Patch, String::new(), steps))
    }
}

impl ModelRequest {
    /// Why a change must not be made, if it must not: it is of something that has to stay as it is.
    fn forbidden(&self, change: &Change) -> Option<&'static str> {
        let known = |target: Target| self.document().is_some_and(|document| document.knows(target));
        match change {
            Change::Value { target, .. } => known(*target).then(|| self.fixed(*target)).flatten(),
            Change::Children { new, .. } => {
                let gone = new.iter().flat_map(|list| list.iter()).filter(|child| child.presence == Presence::Deleted);
                let stays = |target: Target| self.section(target.into()).is_some_and(|section| !section.deletable);
                let mut gone = gone.filter(|child| known(child.value) && stays(child.value));
                gone.next().map(|_| "what it removes has to stay")
            }
        }
    }
}

/// Whether nothing around a value of the first text is replaced as a whole, which would show it already.
fn outermost(document: &Document, target: Target) -> bool {
    let replaced: BTreeSet<Target> = document.replaced().collect();
    let mut next = document.came_first(target).then(|| document.parent(target)).flatten();
    while let Some(parent) = next {
        if replaced.contains(&parent) {
            return false;
        }
        next = document.parent(parent);
    }
    document.came_first(target) && (document.is_here(target) || document.parent(target).is_none())
}

/// Where a value was when it came.
fn original_pointer(document: &Document, target: Target) -> String {
    document.as_came().pointer(target)
}

fn replacing(pointer: &str, value: &[u8]) -> Vec<u8> {
    [&br#"{"op":"replace","path":"#[..], &text::encode(pointer), br#","value":"#, value, b"}"].concat()
}

fn adding(pointer: &str, value: &[u8]) -> Vec<u8> {
    [&br#"{"op":"add","path":"#[..], &text::encode(pointer), br#","value":"#, value, b"}"].concat()
}

fn removing(pointer: &str) -> Vec<u8> {
    [&br#"{"op":"remove","path":"#[..], &text::encode(pointer), b"}"].concat()
}

/// What makes the list of a container what it is now.
fn relisting(document: &Document, container: Target, pointer: &str) -> Vec<Vec<u8>> {
    let came: Vec<Target> = document.came_with(container).collect();
    let now: Vec<Target> = document.children(container).collect();
    let kept: Vec<Target> = now.iter().copied().filter(|value| came.contains(value)).collect();
    let in_order = kept.is_sorted();
    let names: Vec<_> = came.iter().chain(&now).filter_map(|value| document.key(*value)).collect();
    let unique = names.iter().collect::<BTreeSet<_>>().len();
    let object = document.kind(container) == Kind::Object;
    let twins =
        object && came.iter().filter_map(|value| document.key(*value)).collect::<BTreeSet<_>>().len() < came.len();
    if !in_order || twins || (object && unique < names.len() - kept.len()) {
        return vec![replacing(pointer, &document.value_bytes(container))];
    }
    let escaped = |value: Target| {
        let name = document.key(value).unwrap_or_default().replace('~', "~0").replace('/', "~1");
        format!("{pointer}/{name}")
    };
    let mut operations = Vec::new();
    for (index, value) in came.iter().enumerate().rev() {
        if !now.contains(value) {
            operations.push(removing(&if object { escaped(*value) } else { format!("{pointer}/{index}") }));
        }
    }
    for (index, value) in now.iter().enumerate() {
        if !came.contains(value) {
            let place = if object { escaped(*value) } else { format!("{pointer}/{index}") };
            operations.push(adding(&place, &document.value_bytes(*value)));
        }
    }
    operations
}

/// What an operation changes; it is applied on the way.
fn changes(document: &mut Document, patch: &Document, operation: Target) -> Result<Vec<Change>, String> {
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
            // What cannot be compared by what it means is compared as it is written.
            let same = if wanted.is_some() { wanted == found } else { value()? == document.value_bytes(target) };
            if same { Ok(Vec::new()) } else { Err(format!("`{path}` is something else")) }
        }
        other => Err(format!("`{other}` is no operation")),
    }
}

fn find(document: &Document, pointer: &str) -> Result<Target, String> {
    let steps = document.pointer_steps(pointer).ok_or_else(|| format!("`{pointer}` is no JSON Pointer"))?;
    document.follow(pointer, &steps).map_err(|error| error.to_string())
}

fn replace(document: &mut Document, target: Target, value: &[u8]) -> Result<Vec<Change>, String> {
    let change = document.replace(target, value).map_err(|error| error.to_string())?;
    document.apply(&change);
    Ok(vec![change])
}

fn remove(document: &mut Document, pointer: &str) -> Result<Vec<Change>, String> {
    let target = find(document, pointer)?;
    let change = document.delete(target).ok_or("the whole cannot be removed")?;
    document.apply(&change);
    Ok(vec![change])
}

fn add(document: &mut Document, pointer: &str, value: &[u8]) -> Result<Vec<Change>, String> {
    let steps = document.pointer_steps(pointer).ok_or_else(|| format!("`{pointer}` is no JSON Pointer"))?;
    let Some((last, before)) = steps.split_last() else { return replace(document, Target::WHOLE, value) };
    let container = document.follow(pointer, before).map_err(|error| error.to_string())?;
    let added = match (document.kind(container), last) {
        (Kind::Object, PathStep::Member(name)) => {
            if let Some(existing) = document.member(container, name) {
                return replace(document, existing, value);
            }
            document.add_member(container, name, value)
        }
        (Kind::Array, PathStep::Element(index)) => {
            let here = document.children(container).count();
            if *index > here {
                return Err(format!("`{pointer}` is beyond the end"));
            }
            let before = document.children(container).nth(*index);
            document.add_element(container, before, value)
        }
        _ => return Err(format!("nothing can be added at `{pointer}`")),
    };
    let (_, change) = added.map_err(|error| error.to_string())?.ok_or("nothing can be added there")?;
    document.apply(&change);
    Ok(vec![change])
}

impl ModelRequest {
    /// Whether something is there that did not come with the request.
    pub fn is_added(&self, target: Target) -> bool {
        self.document().is_some_and(|document| !document.came_first(target))
    }

    /// Whether a value is not what came: it was edited, taken out or added, or something in it was.
    pub fn is_edited(&self, target: Target) -> bool {
        let Some(document) = self.document() else { return self.is_dirty() };
        if !document.knows(target) {
            return false;
        }
        if self.is_added(target) || !document.is_here(target) {
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
        document.replaced().chain(document.relisted()).any(inside)
    }
}
