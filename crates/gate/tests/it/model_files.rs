//! Files of the reference model: three slots far apart, so that each slot is one hunk and merges work per slot.

use sayso_review::Ruling;

/// Number of slots in a file.
pub(crate) const SLOTS: usize = 3;
/// Lines between two slots, more than the context of two hunks.
const FILLERS: usize = 8;

/// Files with their policy rulings.
pub(crate) const FILES: [(&str, Ruling); 6] = [
    ("ask-1", Ruling::Ask),
    ("ask-2", Ruling::Ask),
    ("later-1", Ruling::Later),
    ("later-2", Ruling::Later),
    ("allow-1", Ruling::Allow),
    ("deny-1", Ruling::Deny),
];

/// Index of a file in [`FILES`].
pub(crate) type FileId = usize;
/// Slots of a file; `None` if it does not exist.
pub(crate) type File = Option<[char; SLOTS]>;

pub(crate) fn line(slot: usize, value: char) -> String {
    format!("slot {slot} is {value}\n")
}

pub(crate) fn text(slots: &[char; SLOTS]) -> String {
    let mut text = String::new();
    for (slot, &value) in slots.iter().enumerate() {
        text.push_str(&line(slot, value));
        for filler in 0..FILLERS {
            text.push_str(&format!("filler {filler} after slot {slot}\n"));
        }
    }
    text
}

/// Intended change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Write([char; SLOTS]),
    Edit { slot: usize, old: char, new: char },
    Delete,
}

impl Wish {
    /// Returns the result, if the change is possible.
    pub(crate) fn preview(self, now: File) -> Option<File> {
        match (self, now) {
            (Self::Write(slots), _) => Some(Some(slots)),
            (Self::Edit { slot, old, new }, Some(mut slots)) if slots[slot] == old => {
                slots[slot] = new;
                Some(Some(slots))
            }
            (Self::Delete, Some(_)) => Some(None),
            _ => None,
        }
    }
}

/// Merges two changes of one file, if they do not conflict.
pub(crate) fn merge(base: File, current: File, proposed: File) -> Option<File> {
    if current == base || current == proposed {
        return Some(proposed);
    }
    if proposed == base {
        return Some(current);
    }
    let (base, current, proposed) = (base?, current?, proposed?);
    let mut merged = base;
    for slot in 0..SLOTS {
        merged[slot] = match (base[slot], current[slot], proposed[slot]) {
            (base, current, proposed) if current == base || current == proposed => proposed,
            (base, current, proposed) if proposed == base => current,
            _ => return None,
        };
    }
    Some(Some(merged))
}
