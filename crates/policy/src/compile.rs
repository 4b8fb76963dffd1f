//! Compiles the rules of all layers into a [`Policy`].

use sayso_base::{ErrorKind, OutsidePath, WsPath};
use thiserror::Error;

use crate::builtin_rules::BuiltinRules;
use crate::command_pattern::CommandPattern;
use crate::decision::{Access, RuleId, Ruling};
use crate::index::{CaseMatching, CommandIndex, RuleNumber, TextIndex, TextIndexBuilder};
use crate::rule::{Layer, LayerTrust, Rule, RuleOptions};

/// Compiled rules of all layers.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) builtin_rules: BuiltinRules,
    pub(super) rules: Vec<CompiledRule>,
    pub(super) read: TextIndex,
    pub(super) write: TextIndex,
    pub(super) outside_read: TextIndex,
    pub(super) outside_write: TextIndex,
    pub(super) run: CommandIndex,
    pub(super) tool: TextIndex,
    pub(super) delegate: TextIndex,
    pub(super) send: TextIndex,
    evaluates_requests: bool,
    defaults: [(Ruling, RuleId); 6],
    ignored: Vec<IgnoredRule>,
}

/// A rule without its patterns, which the indexes hold.
#[derive(Clone, Debug)]
pub(super) struct CompiledRule {
    pub(super) id: RuleId,
    pub(super) then: Ruling,
    pub(super) reason: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) trust: LayerTrust,
    pub(super) options: Option<RuleOptions>,
}

/// A rule or default of the workspace's file that has no effect until the file is trusted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct IgnoredRule {
    pub rule: RuleId,
    pub then: Ruling,
}

/// Reason why rules cannot be compiled. An invalid rule fails the whole policy, because it may be a deny rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A pattern is invalid.
    #[error("{rule}: cannot use the `{access}` pattern `{pattern}`: {reason}")]
    Pattern { rule: RuleId, access: Access, pattern: String, reason: String },
    /// A rule has no pattern.
    #[error("{rule}: the rule has no pattern")]
    Empty { rule: RuleId },
    /// The patterns exceed the limits of the pattern compiler.
    #[error("cannot compile the rules: {reason}")]
    TooLarge { reason: String },
}

impl PolicyError {
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::Pattern { access: Access::Run, .. } => {
                "write the first words of the command; `*` is one word, a final `$` excludes further words"
            }
            Self::Pattern { access: Access::Read | Access::Write, .. } => {
                "write a path from the root of the workspace or, in your own configuration, an absolute path; `*` stays within a \
                 name, `**` crosses directories"
            }
            Self::Pattern { .. } => "write a name; `*` matches any text",
            Self::Empty { .. } => "add at least one of `read`, `write`, `run`, `tool`, `delegate`, `send`",
            Self::TooLarge { .. } => "join patterns, for example with `**` or `{a,b}`",
        }
    }
}

#[derive(Default)]
struct Builder {
    read: TextIndexBuilder,
    write: TextIndexBuilder,
    outside_read: TextIndexBuilder,
    outside_write: TextIndexBuilder,
    run: CommandIndex,
    tool: TextIndexBuilder,
    delegate: TextIndexBuilder,
    send: TextIndexBuilder,
}

impl Builder {
    fn add(&mut self, access: Access, pattern: &str, rule: RuleNumber, then: Ruling) -> Result<(), String> {
        let case = if then == Ruling::Deny { CaseMatching::Folded } else { CaseMatching::Exact };
        match access {
            Access::Read if pattern.starts_with('/') => self.outside_read.outside(pattern, rule, case),
            Access::Write if pattern.starts_with('/') => self.outside_write.outside(pattern, rule, case),
            Access::Read => self.read.path(pattern, rule, case),
            Access::Write => self.write.path(pattern, rule, case),
            Access::Tool => self.tool.name(pattern, rule, case),
            Access::Delegate => self.delegate.name(pattern, rule, case),
            Access::Send => self.send.name(pattern, rule, case),
            Access::Run => {
                let words = CommandPattern::parse(pattern)?;
                if then < Ruling::Ask {
                    self.run.add_allowing(words, rule);
                } else {
                    self.run.add_restricting(words, rule);
                }
                Ok(())
            }
        }
    }
}

impl Policy {
    /// Compiles the rules of all layers: the user's first, then the workspace's, then the sessions'. `protected` lists sayso's
    /// own paths in the workspace.
    pub fn new(layers: &[Layer], protected: &[WsPath]) -> Result<Self, PolicyError> {
        let too_large = |reason: String| PolicyError::TooLarge { reason };
        let mut builder = Builder::default();
        let mut rules = Vec::new();
        let mut ignored = Vec::new();
        let mut defaults =
            Access::ALL.map(|access| (access.built_in_default(), RuleId::Default { access, file: None }));
        for layer in layers {
            for (access, default) in Access::ALL.into_iter().zip(&mut defaults) {
                let Some(then) = layer.defaults.ruling_for(access) else { continue };
                let id = RuleId::Default { access, file: Some(layer.file.clone()) };
                if layer.trust == LayerTrust::Trusted || then > default.0 {
                    *default = (then, id);
                } else if then < default.0 {
                    ignored.push(IgnoredRule { rule: id, then });
                }
            }
            for (at, rule) in layer.rules.iter().enumerate() {
                let id = RuleId::Rule { file: layer.file.clone(), number: at + 1, name: rule.name.clone() };
                if layer.trust == LayerTrust::TightenOnly {
                    reject_outside(rule, &id)?;
                }
                let number = RuleNumber::try_from(rules.len()).map_err(|error| too_large(error.to_string()))?;
                add(&mut builder, rule, &id, number)?;
                if layer.trust == LayerTrust::TightenOnly && rule.loosens() {
                    ignored.push(IgnoredRule { rule: id.clone(), then: rule.then });
                }
                rules.push(CompiledRule {
                    id,
                    then: rule.then,
                    reason: rule.reason.clone(),
                    agent: rule.agent.clone(),
                    session: rule.session.clone(),
                    trust: layer.trust,
                    options: rule.options,
                });
            }
        }
        let matches_requests = |layer: &Layer| layer.rules.iter().any(|rule| !rule.patterns(Access::Send).is_empty());
        let evaluates_requests =
            layers.iter().any(matches_requests) || defaults[Access::Send as usize].0 != Ruling::Allow;
        Ok(Self {
            evaluates_requests,
            builtin_rules: BuiltinRules::new(protected),
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

    /// Protects sayso's own files outside the workspace too.
    #[must_use]
    pub fn with_protected_outside(mut self, outside: &[OutsidePath]) -> Self {
        self.builtin_rules.protect_outside(outside);
        self
    }

    /// Lists the rules that have no effect because the workspace's file is not trusted.
    pub fn ignored_rules(&self) -> &[IgnoredRule] {
        &self.ignored
    }

    /// `true` if a rule or default concerns requests to models, so that each request needs an evaluation.
    pub fn evaluates_requests(&self) -> bool {
        self.evaluates_requests
    }

    /// Returns the default for a kind of action, and its source.
    pub fn default_for(&self, access: Access) -> (Ruling, &RuleId) {
        let (ruling, id) = &self.defaults[access as usize];
        (*ruling, id)
    }
}

/// Rejects paths outside the workspace in rules of the workspace's file.
fn reject_outside(rule: &Rule, id: &RuleId) -> Result<(), PolicyError> {
    for access in [Access::Read, Access::Write] {
        if let Some(pattern) = rule.patterns(access).iter().find(|pattern| pattern.starts_with('/')) {
            let reason = "the workspace's file cannot name a path outside the workspace".to_owned();
            return Err(PolicyError::Pattern { rule: id.clone(), access, pattern: pattern.clone(), reason });
        }
    }
    Ok(())
}

fn add(builder: &mut Builder, rule: &Rule, id: &RuleId, number: RuleNumber) -> Result<(), PolicyError> {
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
