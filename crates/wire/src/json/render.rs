//! The bytes of a document with what was laid over it: everything else is copied as it came.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Child, Document, Place, Presence, Target};
use super::tape::Kind;

impl Document {
    /// The whole as it is now. Without an edit, the same bytes as came.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (whole, node) = (self.original(), self.node(self.root()));
        let mut out = Vec::with_capacity(whole.len() + 256);
        // White space around the whole is part of it.
        out.extend_from_slice(&whole[..node.start as usize]);
        self.write(self.root(), &self.touched(), &mut out);
        out.extend_from_slice(&whole[node.end as usize..]);
        out
    }

    /// A value as it is now.
    pub fn value_bytes(&self, target: Target) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(target, &self.touched(), &mut out);
        out
    }

    /// Everything that is not as it came, or that has such a thing in it.
    pub(crate) fn touched(&self) -> BTreeSet<Target> {
        let mut touched = BTreeSet::new();
        for target in self.values.keys().chain(self.children.keys()) {
            let mut next = Some(*target);
            while let Some(target) = next {
                if !touched.insert(target) {
                    break;
                }
                // What stands for a value is as changed as the value.
                if let Place::Of(standing) = self.part(target).place
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
        let (part, node) = (self.part(current), self.node(current));
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

    /// A container whose list is not the one that came. What was between two values that are still neighbours stays between them.
    fn write_list(&self, container: Target, list: &[Child], touched: &BTreeSet<Target>, out: &mut Vec<u8>) {
        let (part, node) = (self.part(container), self.node(container));
        let bytes = &part.bytes;
        let (open, close) = (node.start as usize, node.end as usize);
        let came: Vec<(Target, usize, usize)> = {
            let mut next = container.node + 1;
            std::iter::from_fn(|| {
                let target = (next < node.next).then_some(Target { part: container.part, node: next })?;
                let node = self.node(target);
                next = node.next;
                let start = if node.key_end > node.key_start { node.key_start } else { node.start };
                Some((target, start as usize, node.end as usize))
            })
            .collect()
        };
        let head = came.first().map_or(open + 1, |(_, start, _)| *start);
        let tail = came.last().map_or(head, |(_, _, end)| *end);
        // What separates two of them, where nothing better is known.
        let usual = came.windows(2).next().map_or(&b","[..], |pair| &bytes[pair[0].2..pair[1].1]);
        out.extend_from_slice(&bytes[open..head]);
        let mut first = true;
        let places: BTreeMap<Target, usize> =
            came.iter().enumerate().map(|(place, (target, ..))| (*target, place)).collect();
        for child in list.iter().filter(|child| child.presence == Presence::Here) {
            let position = places.get(&child.value).copied();
            if !std::mem::replace(&mut first, false) {
                let before = position.and_then(|position| Some((came.get(position.checked_sub(1)?)?, came[position])));
                out.extend_from_slice(before.map_or(usual, |(before, own)| &bytes[before.2..own.1]));
            }
            if node.kind == Kind::Object {
                let own = self.node(child.value);
                let source = &self.part(child.value).bytes;
                out.extend_from_slice(&source[own.key_start as usize..own.start as usize]);
            }
            self.write(child.value, touched, out);
        }
        out.extend_from_slice(&bytes[tail..close]);
    }
}
