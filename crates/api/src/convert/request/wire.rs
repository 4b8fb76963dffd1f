//! Values of the wire formats: token counts, scopes, section kinds, targets and repairs.

use sayso_wire::json::Target;
use sayso_wire::tokens::{Exactness, Tokens};
use sayso_wire::{
    CacheMissCause, ContentKind, Edit, EditTarget, NodeType, Repair, Scope, SectionChange, SectionId, SectionKind,
    ShrinkLimits,
};

use crate::convert::BadMessage;
use crate::convert::field::{count, missing, oneof, unspecified};
use crate::proto;
use crate::proto::edit_request_request::{Pin, Redo, Reset, Set, Shrink, Undo};
use crate::proto::oneof::edit_request_request::Edit as EditChoice;
use crate::proto::oneof::edit_target::Target as TargetChoice;
use crate::proto::oneof::repair::Repair as RepairChoice;
use crate::proto::{diff_request_response::section_diff, section};

/// Maps an enumeration of `wire` to one of the protocol and back. `UNSPECIFIED` is an error.
macro_rules! enumerations {
    ($($ours:ty => $theirs:ty { $($variant:ident),* $(,)? })*) => {$(
        impl From<$ours> for $theirs {
            fn from(value: $ours) -> Self {
                match value {
                    $(<$ours>::$variant => Self::$variant,)*
                }
            }
        }

        impl TryFrom<$theirs> for $ours {
            type Error = BadMessage;

            fn try_from(value: $theirs) -> Result<Self, BadMessage> {
                match value {
                    <$theirs>::Unspecified => Err(unspecified()),
                    $(<$theirs>::$variant => Ok(Self::$variant),)*
                }
            }
        }
    )*};
}

enumerations! {
    Scope => proto::OverrideScope { Global, Workspace, Session }
    CacheMissCause => proto::cache_miss::Cause {
        ModelChanged, ToolsChanged, Compaction, Edited, UnstablePrefix, Expired, Unexplained,
    }
    NodeType => section::NodeType {
        Message, ContentPart, ToolCall, Metadata, Tag, ToolSchema, RequestOption, Remote, Raw,
    }
    SectionKind => section::Kind { System, User, Assistant, Context, Tool, History, Prediction, Other }
    ContentKind => section::ContentKind { Text, Image, Opaque, CacheBreakpoint, Other }
    SectionChange => section_diff::SectionChange { Edited, Deleted, Added }
}

impl From<Tokens> for proto::Tokens {
    fn from(tokens: Tokens) -> Self {
        Self { count: tokens.count, exact: tokens.exactness == Exactness::Exact, ..Default::default() }
    }
}

impl From<proto::Tokens> for Tokens {
    fn from(tokens: proto::Tokens) -> Self {
        if tokens.exact { Self::exact(tokens.count) } else { Self::estimate(tokens.count) }
    }
}

/// Reads a section id.
pub(super) fn section_id(id: &str, field: &str) -> Result<SectionId, BadMessage> {
    id.parse().map_err(|_| BadMessage::new(field, format!("`{id}` is not a section id, such as 0:12")))
}

impl From<&EditTarget> for proto::EditTarget {
    fn from(target: &EditTarget) -> Self {
        let target = match target {
            EditTarget::Path(path) => TargetChoice::Path(path.clone()),
            EditTarget::Section(id) => TargetChoice::Section(id.to_string()),
        };
        Self { target: Some(target), ..Default::default() }
    }
}

fn target(target: Option<proto::EditTarget>, field: &str) -> Result<EditTarget, BadMessage> {
    let target = target.ok_or_else(|| missing(field))?;
    match oneof(target.target, field)? {
        TargetChoice::Path(path) => Ok(EditTarget::Path(path)),
        TargetChoice::Section(id) => Ok(EditTarget::Section(section_id(&id, &format!("{field}.section"))?)),
    }
}

impl From<Repair> for proto::Repair {
    /// Leaves out the display name and the path.
    fn from(repair: Repair) -> Self {
        let choice = match repair {
            Repair::Delete(target) => RepairChoice::Delete(target.to_string()),
            Repair::Restore(target) => RepairChoice::Restore(target.to_string()),
            Repair::MoveBefore(target, before) => {
                proto::repair::Move { section: target.to_string(), before: before.to_string(), ..Default::default() }
                    .into()
            }
        };
        Self { repair: Some(choice), ..Default::default() }
    }
}

impl TryFrom<RepairChoice> for Repair {
    type Error = BadMessage;

    fn try_from(repair: RepairChoice) -> Result<Self, BadMessage> {
        let target = |id: &str, field: &str| -> Result<Target, BadMessage> { Ok(section_id(id, field)?.target) };
        Ok(match repair {
            RepairChoice::Delete(id) => Self::Delete(target(&id, "delete")?),
            RepairChoice::Restore(id) => Self::Restore(target(&id, "restore")?),
            RepairChoice::Move(moved) => {
                Self::MoveBefore(target(&moved.section, "move.section")?, target(&moved.before, "move.before")?)
            }
        })
    }
}

impl From<&Edit> for EditChoice {
    fn from(edit: &Edit) -> Self {
        let set = |at: &EditTarget, value: &str| {
            Box::new(Set { target: Some(at.into()).into(), value: value.to_owned(), ..Default::default() })
        };
        match edit {
            Edit::Set { at, value } => Self::Set(set(at, value)),
            Edit::SetJson { at, value } => Self::SetJson(set(at, value)),
            Edit::Delete { at } => Self::Delete(Box::new(at.into())),
            Edit::Restore { at } => Self::Restore(Box::new(at.into())),
            Edit::Append { text } => Self::Append(text.clone()),
            Edit::Shrink { at, keep } => Shrink {
                target: Some(at.into()).into(),
                keep_head: Some(keep.head as u64),
                keep_tail: Some(keep.tail as u64),
                ..Default::default()
            }
            .into(),
            Edit::Repair(repair) => proto::Repair::from(*repair).into(),
            Edit::Patch(patch) => Self::Patch(patch.clone()),
            Edit::Pin { at, before } => {
                let before = before.map(|before| before.to_string());
                Pin { target: Some(at.into()).into(), before, ..Default::default() }.into()
            }
            Edit::Unpin { at } => Self::Unpin(Box::new(at.into())),
            Edit::Undo => Undo::default().into(),
            Edit::Redo => Redo::default().into(),
            Edit::Reset => Reset::default().into(),
        }
    }
}

impl TryFrom<EditChoice> for Edit {
    type Error = BadMessage;

    fn try_from(choice: EditChoice) -> Result<Self, BadMessage> {
        Ok(match choice {
            EditChoice::Set(set) => Self::Set { at: target(set.target.into_option(), "set.target")?, value: set.value },
            EditChoice::SetJson(set) => {
                Self::SetJson { at: target(set.target.into_option(), "set_json.target")?, value: set.value }
            }
            EditChoice::Delete(at) => Self::Delete { at: target(Some(*at), "delete")? },
            EditChoice::Restore(at) => Self::Restore { at: target(Some(*at), "restore")? },
            EditChoice::Append(text) => Self::Append { text },
            EditChoice::Shrink(shrink) => {
                let default = ShrinkLimits::default();
                let keep = ShrinkLimits {
                    head: shrink.keep_head.map_or(Ok(default.head), |number| count(number, "shrink.keep_head"))?,
                    tail: shrink.keep_tail.map_or(Ok(default.tail), |number| count(number, "shrink.keep_tail"))?,
                };
                Self::Shrink { at: target(shrink.target.into_option(), "shrink.target")?, keep }
            }
            EditChoice::Repair(repair) => {
                let repair = Repair::try_from(oneof(repair.repair, "repair")?);
                Self::Repair(repair.map_err(|error| error.within("repair"))?)
            }
            EditChoice::Patch(patch) => Self::Patch(patch),
            EditChoice::Pin(pin) => {
                let before = pin.before.map(|id| section_id(&id, "pin.before")).transpose()?;
                Self::Pin { at: target(pin.target.into_option(), "pin.target")?, before }
            }
            EditChoice::Unpin(at) => Self::Unpin { at: target(Some(*at), "unpin")? },
            EditChoice::Undo(_) => Self::Undo,
            EditChoice::Redo(_) => Self::Redo,
            EditChoice::Reset(_) => Self::Reset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected_field(choice: EditChoice) -> String {
        Edit::try_from(choice).err().map(|error| error.field).unwrap_or_default()
    }

    #[test]
    fn invalid_edit_field_is_named() {
        let target =
            |id: &str| proto::EditTarget { target: Some(TargetChoice::Section(id.to_owned())), ..Default::default() };
        assert_eq!(rejected_field(EditChoice::Delete(Box::new(target("x")))), "delete.section");
        assert_eq!(rejected_field(EditChoice::Delete(Box::default())), "delete");
        assert_eq!(rejected_field(EditChoice::Set(Box::default())), "set.target");
        assert_eq!(rejected_field(EditChoice::Repair(Box::default())), "repair");
        let repair = proto::Repair { repair: Some(RepairChoice::Delete("x".to_owned())), ..Default::default() };
        assert_eq!(rejected_field(EditChoice::Repair(Box::new(repair))), "repair.delete");
        let pin = Pin { target: Some(target("0:1")).into(), before: Some("0:".to_owned()), ..Default::default() };
        assert_eq!(rejected_field(EditChoice::Pin(Box::new(pin))), "pin.before");
        assert_eq!(
            Edit::try_from(EditChoice::Restore(Box::new(target("0:7#2")))).ok(),
            "0:7#2".parse().ok().map(|id| Edit::Restore { at: EditTarget::Section(id) })
        );
    }
}
