//! Request modes and kinds of edits.

use sayso_review::{EditKind, RequestMode};

use crate::convert::BadMessage;
use crate::convert::field::unspecified;
use crate::proto;

impl From<EditKind> for proto::RequestEditKind {
    fn from(kind: EditKind) -> Self {
        match kind {
            EditKind::Set => Self::Set,
            EditKind::Delete => Self::Delete,
            EditKind::Restore => Self::Restore,
            EditKind::Append => Self::Append,
            EditKind::Shrink => Self::Shrink,
            EditKind::Repair => Self::Repair,
            EditKind::Patch => Self::Patch,
            EditKind::Pin => Self::Pin,
            EditKind::Undo => Self::Undo,
            EditKind::Redo => Self::Redo,
            EditKind::Reset => Self::Reset,
        }
    }
}

impl TryFrom<proto::RequestEditKind> for EditKind {
    type Error = BadMessage;

    fn try_from(kind: proto::RequestEditKind) -> Result<Self, BadMessage> {
        use proto::RequestEditKind as Kind;
        Ok(match kind {
            Kind::Unspecified => return Err(unspecified()),
            Kind::Set => Self::Set,
            Kind::Delete => Self::Delete,
            Kind::Restore => Self::Restore,
            Kind::Append => Self::Append,
            Kind::Shrink => Self::Shrink,
            Kind::Repair => Self::Repair,
            Kind::Patch => Self::Patch,
            Kind::Pin => Self::Pin,
            Kind::Undo => Self::Undo,
            Kind::Redo => Self::Redo,
            Kind::Reset => Self::Reset,
        })
    }
}

impl From<RequestMode> for proto::RequestMode {
    fn from(mode: RequestMode) -> Self {
        match mode {
            RequestMode::Off => Self::Off,
            RequestMode::InterceptAlways => Self::InterceptAlways,
            RequestMode::AutoOverride => Self::AutoOverride,
        }
    }
}

impl From<proto::RequestMode> for Option<RequestMode> {
    fn from(mode: proto::RequestMode) -> Self {
        match mode {
            proto::RequestMode::Unspecified => None,
            proto::RequestMode::Off => Some(RequestMode::Off),
            proto::RequestMode::InterceptAlways => Some(RequestMode::InterceptAlways),
            proto::RequestMode::AutoOverride => Some(RequestMode::AutoOverride),
        }
    }
}
