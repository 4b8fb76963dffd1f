//! Serialization of a document: overlays are inserted, all other bytes are copied.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Attachment, Child, Document, Presence, Target};
use super::tape::JsonKind;

impl Document {
    /// Returns the current text. Without an edit, these are the received bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (whole, node) = (self.original(), self.node(self.root()));
        let mut out = Vec::with_capacity(whole.len() + 256);
        // Keep the white space around the root value.
        out.extend_from_slice(&whole[..node.start as usize]);
        self.write(self.root(), &self.modified_values(), &mut out);
        out.extend_from_slice(&whole[node.end as usize..]);
        out
    }

    /// Returns the current text of a value.
    pub fn value_bytes(&self, target: Target) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(target, &self.modified_values(), &mut out);
        out
    }

    /// Returns all values with an overlay, and all containers around them.
    pub(crate) fn modified_values(&self) -> BTreeSet<Target> {
        let mut touched = BTreeSet::new();
        for target in self.values.keys().chain(self.children.keys()) {
            let mut next = Some(*target);
            while let Some(target) = next {
                if !touched.insert(target) {
                    break;
                }
                // A modified replacement makes the replaced value modified.
                if let Attachment::Replacement(standing) = self.source(target).attachment
                    && target.node == 0
                {
                    next = Some(standing);
                } else {
                    next = self.parent(target);
                }
            }
        }
        touched
    }

    fn write(&self, target: Target, touched: &BTreeSet<Target>, out: &mut Vec<u8>) {
        let current = self.current(target);
        let (part, node) = (self.source(current), self.node(current));
        let (start, end) = (node.start as usize, node.end as usize);
        if !touched.contains(&current) && !touched.contains(&target) || node.kind.is_leaf() {
            return out.extend_from_slice(&part.bytes[start..end]);
        }
        if let Some(list) = self.children.get(&current) {
            return self.write_list(current, list, touched, out);
        }
        let mut written = start;
        for child in self.children(current) {
            if touched.contains(&child) {
                let node = self.node(child);
                out.extend_from_slice(&part.bytes[written..node.start as usize]);
                self.write(child, touched, out);
                written = node.end as usize;
            }
        }
        out.extend_from_slice(&part.bytes[written..end]);
    }

    /// Writes a container with a changed list of children. The separator between two children that are still neighbours
    /// is kept.
    fn write_list(&self, container: Target, list: &[Child], touched: &BTreeSet<Target>, out: &mut Vec<u8>) {
        let (part, node) = (self.source(container), self.node(container));
        let bytes = &part.bytes;
        let (open, close) = (node.start as usize, node.end as usize);
        let received: Vec<(Target, usize, usize)> = {
            let mut next = container.node + 1;
            std::iter::from_fn(|| {
                let target = (next < node.next).then_some(Target { source: container.source, node: next })?;
                let node = self.node(target);
                next = node.next;
                let start = if node.key_end > node.key_start { node.key_start } else { node.start };
                Some((target, start as usize, node.end as usize))
            })
            .collect()
        };
        let head = received.first().map_or(open + 1, |(_, start, _)| *start);
        let tail = received.last().map_or(head, |(_, _, end)| *end);
        // The default separator is the first one of the received list.
        let usual = received.windows(2).next().map_or(&b","[..], |pair| &bytes[pair[0].2..pair[1].1]);
        out.extend_from_slice(&bytes[open..head]);
        let mut first = true;
        let places: BTreeMap<Target, usize> =
            received.iter().enumerate().map(|(position, (target, ..))| (*target, position)).collect();
        for child in list.iter().filter(|child| child.presence == Presence::Present) {
            let position = places.get(&child.value).copied();
            if !std::mem::replace(&mut first, false) {
                let before =
                    position.and_then(|position| Some((received.get(position.checked_sub(1)?)?, received[position])));
                out.extend_from_slice(before.map_or(usual, |(before, own)| &bytes[before.2..own.1]));
            }
            if node.kind == JsonKind::Object {
                let own = self.node(child.value);
                let source = &self.source(child.value).bytes;
                out.extend_from_slice(&source[own.key_start as usize..own.start as usize]);
            }
            self.write(child.value, touched, out);
        }
        out.extend_from_slice(&bytes[tail..close]);
    }
}
