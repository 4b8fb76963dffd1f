//! The rules in force: those of files, and those that verdicts added to a session.

use std::collections::HashMap;

use sayso_review::{Act, Defaults, Layer, OutsidePath, Policy, PolicyError, Rule, Ruled, Standing, Who, WsPath};

use crate::call::RuleSet;

/// The rules in force, compiled.
#[derive(Debug)]
pub struct Rules {
    layers: Vec<Layer>,
    protected: Vec<WsPath>,
    protected_outside: Vec<OutsidePath>,
    policy: Policy,
    /// For sessions that have rules of their own, with those rules.
    sessions: HashMap<String, (Vec<Rule>, Policy)>,
}

impl Rules {
    /// Compiles the layers of configuration, and names the paths that are sayso's own.
    pub fn new(layers: Vec<Layer>, protected: Vec<WsPath>) -> Result<Self, PolicyError> {
        let policy = Policy::new(&layers, &protected)?;
        Ok(Self { layers, protected, protected_outside: Vec::new(), policy, sessions: HashMap::new() })
    }

    /// Protects sayso's own files outside the workspace as well.
    #[must_use]
    pub fn protecting(mut self, outside: Vec<OutsidePath>) -> Self {
        self.policy = self.policy.protecting(&outside);
        self.protected_outside = outside;
        self
    }

    /// The policy without the rules of sessions.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The rules as data, with those that were added to a session.
    pub(crate) fn snapshot(&self, session: Option<&str>, added: &[Rule]) -> RuleSet {
        let mut layers = self.layers.clone();
        layers.extend(session.filter(|_| !added.is_empty()).map(|session| session_layer(session, added)));
        let (protected, protected_outside) = (self.protected.clone(), self.protected_outside.clone());
        RuleSet { layers, protected, protected_outside }
    }

    /// What is to become of an act, given the rules that were added to its session.
    pub(crate) fn judge(&mut self, act: &Act<'_>, who: &Who<'_>, added: &[Rule]) -> Result<Ruled, PolicyError> {
        Ok(self.with(who.session, added)?.judge(act, who))
    }

    /// The policy with further rules, which are not kept.
    pub(crate) fn tried(&self, added: &[Rule]) -> Result<Policy, PolicyError> {
        let mut layers = self.layers.clone();
        let (file, rules) = ("the rule".to_owned(), added.to_vec());
        layers.push(Layer { file, standing: Standing::Full, defaults: Defaults::default(), rules });
        Ok(Policy::new(&layers, &self.protected)?.protecting(&self.protected_outside))
    }

    /// The policy with the rules that were added to a session.
    pub(crate) fn with(&mut self, session: Option<&str>, added: &[Rule]) -> Result<&Policy, PolicyError> {
        let Some(session) = session.filter(|_| !added.is_empty()) else { return Ok(&self.policy) };
        let compiled = self.sessions.get(session).is_some_and(|(rules, _)| rules == added);
        if !compiled {
            let mut layers = self.layers.clone();
            layers.push(session_layer(session, added));
            let policy = Policy::new(&layers, &self.protected)?.protecting(&self.protected_outside);
            self.sessions.insert(session.to_owned(), (added.to_vec(), policy));
        }
        Ok(self.sessions.get(session).map_or(&self.policy, |(_, policy)| policy))
    }
}

/// The rules that verdicts added to a session.
fn session_layer(session: &str, added: &[Rule]) -> Layer {
    let (file, rules) = (format!("session {session}"), added.to_vec());
    Layer { file, standing: Standing::Full, defaults: Defaults::default(), rules }
}
