//! Rules made ready to be asked.

use sayso_base::{ErrorKind, OutsidePath, WsPath};
use thiserror::Error;

use crate::always::Always;
use crate::index::{Commands, Number, Spelling, Texts, TextsBuilder};
use crate::rule::{Layer, Rule, RuleOptions, Standing};
use crate::ruling::{Access, RuleId, Ruling};
use crate::words::Words;

/// All rules, ready to judge.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) always: Always,
    pub(super) rules: Vec<Compiled>,
    pub(super) read: Texts,
    pub(super) write: Texts,
    pub(super) outside_read: Texts,
    pub(super) outside_write: Texts,
    pub(super) run: Commands,
    pub(super) tool: Texts,
    pub(super) delegate: Texts,
    pub(super) send: Texts,
    judges_requests: bool,
    defaults: [(Ruling, RuleId); 6],
    ignored: Vec<Ignored>,
}

/// A rule and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) id: RuleId,
    pub(super) then: Ruling,
    pub(super) reason: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) standing: Standing,
    pub(super) options: Option<RuleOptions>,
}

/// Something in a workspace's file that does not count until the file is trusted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Ignored {
    /// The rule, or the default.
    pub rule: RuleId,
    /// What it says.
    pub then: Ruling,
}

/// Why rules cannot be used. A rule that is not understood is never left out: it may be one that denies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A pattern is not understood.
    #[error("{rule}: the pattern `{pattern}` of `{access}` is not understood: {reason}")]
    Pattern {
        /// The rule.
        rule: RuleId,
        /// What it is about.
        access: Access,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A rule is about nothing.
    #[error("{rule}: it does not say what it is about")]
    Empty {
        /// The rule.
        rule: RuleId,
    },
    /// The patterns are too many or too large together.
    #[error("the rules are too large together: {reason}")]
    TooLarge {
        /// What is too large.
        reason: String,
    },
}

impl PolicyError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Pattern { access: Access::Run, .. } => {
                "write the first words of the command; `*` is one word, `$` at the end means that nothing follows"
            }
            Self::Pattern { access: Access::Read | Access::Write, .. } => {
                "write a path from the root of the workspace or, in your own configuration, an absolute path; `*` stays within a \
                 name, `**` crosses directories"
            }
            Self::Pattern { .. } => "write a name, in which `*` is any text",
            Self::Empty { .. } => "give it at least one of `read`, `write`, `run`, `tool`, `delegate`, `send`",
            Self::TooLarge { .. } => "join patterns, for instance with `**` or `{a,b}`",
        }
    }
}

#[derive(Default)]
struct Builder {
    read: TextsBuilder,
    write: TextsBuilder,
    outside_read: TextsBuilder,
    outside_write: TextsBuilder,
    run: Commands,
    tool: TextsBuilder,
    delegate: TextsBuilder,
    send: TextsBuilder,
}

impl Builder {
    fn add(&mut self, access: Access, pattern: &str, rule: Number, then: Ruling) -> Result<(), String> {
        let spelling = if then == Ruling::Deny { Spelling::Any } else { Spelling::Exact };
        match access {
            Access::Read if pattern.starts_with('/') => self.outside_read.outside(pattern, rule, spelling),
            Access::Write if pattern.starts_with('/') => self.outside_write.outside(pattern, rule, spelling),
            Access::Read => self.read.path(pattern, rule, spelling),
            Access::Write => self.write.path(pattern, rule, spelling),
            Access::Tool => self.tool.name(pattern, rule, spelling),
            Access::Delegate => self.delegate.name(pattern, rule, spelling),
            Access::Send => self.send.name(pattern, rule, spelling),
            Access::Run => {
                let words = Words::parse(pattern)?;
                if then < Ruling::Ask {
                    self.run.milder(words, rule);
                } else {
                    self.run.stricter(words, rule);
                }
                Ok(())
            }
        }
    }
}

impl Policy {
    /// Makes the rules of all layers ready: the user's first, then the workspace's, then those of sessions. `protected` is where
    /// sayso's own files lie in the workspace.
    pub fn new(layers: &[Layer], protected: &[WsPath]) -> Result<Self, PolicyError> {
        let too_large = |reason: String| PolicyError::TooLarge { reason };
        let mut builder = Builder::default();
        let mut rules = Vec::new();
        let mut ignored = Vec::new();
        let mut defaults =
            Access::ALL.map(|access| (access.built_in_default(), RuleId::Default { access, file: None }));
        for layer in layers {
            for (access, default) in Access::ALL.into_iter().zip(&mut defaults) {
                let Some(then) = layer.defaults.of(access) else { continue };
                let id = RuleId::Default { access, file: Some(layer.file.clone()) };
                if layer.standing == Standing::Full || then > default.0 {
                    *default = (then, id);
                } else if then < default.0 {
                    ignored.push(Ignored { rule: id, then });
                }
            }
            for (at, rule) in layer.rules.iter().enumerate() {
                let id = RuleId::Rule { file: layer.file.clone(), number: at + 1, name: rule.name.clone() };
                if layer.standing == Standing::Tightens {
                    refuse_outside(rule, &id)?;
                }
                let number = Number::try_from(rules.len()).map_err(|error| too_large(error.to_string()))?;
                add(&mut builder, rule, &id, number)?;
                if layer.standing == Standing::Tightens && rule.loosens() {
                    ignored.push(Ignored { rule: id.clone(), then: rule.then });
                }
                rules.push(Compiled {
                    id,
                    then: rule.then,
                    reason: rule.reason.clone(),
                    agent: rule.agent.clone(),
                    session: rule.session.clone(),
                    standing: layer.standing,
                    options: rule.options,
                });
            }
        }
        let about_sending = |layer: &Layer| layer.rules.iter().any(|rule| !rule.patterns(Access::Send).is_empty());
        let judges_requests = layers.iter().any(about_sending) || defaults[Access::Send as usize].0 != Ruling::Allow;
        Ok(Self {
            judges_requests,
            always: Always::new(protected).map_err(|error| too_large(error.to_string()))?,
            rules,
            read: builder.read.build().map_err(too_large)?,
            write: builder.write.build().map_err(too_large)?,
            outside_read: builder.outside_read.build().map_err(too_large)?,
            outside_write: builder.outside_write.build().map_err(too_large)?,
            run: builder.run,
            tool: builder.tool.build().map_err(too_large)?,
            delegate: builder.delegate.build().map_err(too_large)?,
            send: builder.send.build().map_err(too_large)?,
            defaults,
            ignored,
        })
    }

    /// Protects sayso's own files outside the workspace as well.
    #[must_use]
    pub fn protecting(mut self, outside: &[OutsidePath]) -> Self {
        self.always.protect_outside(outside);
        self
    }

    /// What does not count because the workspace's file is not trusted.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// Whether anything is said about sending requests to models, so that each has to be judged.
    pub fn judges_requests(&self) -> bool {
        self.judges_requests
    }

    /// What is done where no rule is about it, and who says so.
    pub fn default_for(&self, access: Access) -> (Ruling, &RuleId) {
        let (ruling, id) = &self.defaults[access as usize];
        (*ruling, id)
    }
}

/// Refuses paths outside the workspace in rules that came with the workspace.
fn refuse_outside(rule: &Rule, id: &RuleId) -> Result<(), PolicyError> {
    for access in [Access::Read, Access::Write] {
        if let Some(pattern) = rule.patterns(access).iter().find(|pattern| pattern.starts_with('/')) {
            let reason = "a workspace's file cannot name a path outside the workspace".to_owned();
            return Err(PolicyError::Pattern { rule: id.clone(), access, pattern: pattern.clone(), reason });
        }
    }
    Ok(())
}

fn add(builder: &mut Builder, rule: &Rule, id: &RuleId, number: Number) -> Result<(), PolicyError> {
    if Access::ALL.iter().all(|access| rule.patterns(*access).is_empty()) {
        return Err(PolicyError::Empty { rule: id.clone() });
    }
    for access in Access::ALL {
        for pattern in rule.patterns(access) {
            builder.add(access, pattern, number, rule.then).map_err(|reason| PolicyError::Pattern {
                rule: id.clone(),
                access,
                pattern: pattern.clone(),
                reason,
            })?;
        }
    }
    Ok(())
}
