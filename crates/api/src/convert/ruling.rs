//! What policy says, and what a verdict means for what comes.

use sayso_review::{FromNowOn, OutsidePath, RuleScope, Ruling, RulingRecord};

use super::BadMessage;
use super::field::{enumeration, not_said};
use crate::proto;
use crate::proto::from_now_on::Scope;

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
            proto::Ruling::Unspecified => Err(not_said()),
            proto::Ruling::Allow => Ok(Self::Allow),
            proto::Ruling::Later => Ok(Self::Later),
            proto::Ruling::Ask => Ok(Self::Ask),
            proto::Ruling::Deny => Ok(Self::Deny),
        }
    }
}

impl From<&RulingRecord> for proto::RulingRecord {
    fn from(ruled: &RulingRecord) -> Self {
        Self {
            ruling: proto::Ruling::from(ruled.ruling).into(),
            rule: ruled.rule.clone(),
            reason: ruled.reason.clone(),
            outside: ruled.outside.iter().map(ToString::to_string).collect(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RulingRecord> for RulingRecord {
    type Error = BadMessage;

    fn try_from(ruled: proto::RulingRecord) -> Result<Self, BadMessage> {
        let outside =
            |path: String| OutsidePath::parse(&path).map_err(|error| BadMessage::new("outside", error.to_string()));
        Ok(Self {
            ruling: enumeration(ruled.ruling, "ruling")?,
            rule: ruled.rule,
            reason: ruled.reason,
            outside: ruled.outside.into_iter().map(outside).collect::<Result<_, _>>()?,
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
            Scope::Unspecified => Err(not_said()),
            Scope::Session => Ok(Self::Session),
            Scope::Always => Ok(Self::Always),
        }
    }
}

impl From<&FromNowOn> for proto::FromNowOn {
    fn from(from_now_on: &FromNowOn) -> Self {
        Self {
            scope: Scope::from(from_now_on.scope).into(),
            ruling: proto::Ruling::from(from_now_on.ruling).into(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::FromNowOn> for FromNowOn {
    type Error = BadMessage;

    fn try_from(from_now_on: proto::FromNowOn) -> Result<Self, BadMessage> {
        Ok(Self { scope: enumeration(from_now_on.scope, "scope")?, ruling: enumeration(from_now_on.ruling, "ruling")? })
    }
}
