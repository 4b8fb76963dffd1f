//! Policy decisions and remembered verdicts.

use sayso_review::{OutsidePath, RememberAs, RuleScope, Ruling, RulingRecord};

use super::BadMessage;
use super::field::{enumeration, unspecified};
use crate::proto;
use crate::proto::remember_as::Scope;

impl From<Ruling> for proto::Ruling {
    fn from(ruling: Ruling) -> Self {
        match ruling {
            Ruling::Allow => Self::Allow,
            Ruling::Later => Self::Later,
            Ruling::Ask => Self::Ask,
            Ruling::Deny => Self::Deny,
        }
    }
}

impl TryFrom<proto::Ruling> for Ruling {
    type Error = BadMessage;

    fn try_from(ruling: proto::Ruling) -> Result<Self, BadMessage> {
        match ruling {
            proto::Ruling::Unspecified => Err(unspecified()),
            proto::Ruling::Allow => Ok(Self::Allow),
            proto::Ruling::Later => Ok(Self::Later),
            proto::Ruling::Ask => Ok(Self::Ask),
            proto::Ruling::Deny => Ok(Self::Deny),
        }
    }
}

impl From<&RulingRecord> for proto::RulingRecord {
    fn from(ruling: &RulingRecord) -> Self {
        Self {
            ruling: proto::Ruling::from(ruling.ruling).into(),
            rule: ruling.rule.clone(),
            reason: ruling.reason.clone(),
            outside: ruling.outside.iter().map(ToString::to_string).collect(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RulingRecord> for RulingRecord {
    type Error = BadMessage;

    fn try_from(ruling: proto::RulingRecord) -> Result<Self, BadMessage> {
        let outside =
            |path: String| OutsidePath::parse(&path).map_err(|error| BadMessage::new("outside", error.to_string()));
        Ok(Self {
            ruling: enumeration(ruling.ruling, "ruling")?,
            rule: ruling.rule,
            reason: ruling.reason,
            outside: ruling.outside.into_iter().map(outside).collect::<Result<_, _>>()?,
        })
    }
}

impl From<RuleScope> for Scope {
    fn from(scope: RuleScope) -> Self {
        match scope {
            RuleScope::Session => Self::Session,
            RuleScope::Always => Self::Always,
        }
    }
}

impl TryFrom<Scope> for RuleScope {
    type Error = BadMessage;

    fn try_from(scope: Scope) -> Result<Self, BadMessage> {
        match scope {
            Scope::Unspecified => Err(unspecified()),
            Scope::Session => Ok(Self::Session),
            Scope::Always => Ok(Self::Always),
        }
    }
}

impl From<&RememberAs> for proto::RememberAs {
    fn from(remember: &RememberAs) -> Self {
        Self {
            scope: Scope::from(remember.scope).into(),
            ruling: proto::Ruling::from(remember.ruling).into(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RememberAs> for RememberAs {
    type Error = BadMessage;

    fn try_from(remember: proto::RememberAs) -> Result<Self, BadMessage> {
        Ok(Self { scope: enumeration(remember.scope, "scope")?, ruling: enumeration(remember.ruling, "ruling")? })
    }
}
