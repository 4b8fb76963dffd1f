//! Rules in force: from configuration files, and from verdicts in a session.

use std::collections::HashMap;

use sayso_review::{
    Defaults, Layer, LayerTrust, OutsidePath, Policy, PolicyDecision, PolicyError, PolicyQuery, Principal, Rule, WsPath,
};

use crate::call::RuleSet;

/// Compiled rules in force.
#[derive(Debug)]
pub struct Rules {
    layers: Vec<Layer>,
    protected: Vec<WsPath>,
    protected_outside: Vec<OutsidePath>,
    policy: Policy,
    /// Rules and policies of sessions that have their own rules.
    sessions: HashMap<String, (Vec<Rule>, Policy)>,
}

impl Rules {
    /// Compiles the layers of configuration. `protected` are sayso's own paths in the workspace.
    pub fn new(layers: Vec<Layer>, protected: Vec<WsPath>) -> Result<Self, PolicyError> {
        let policy = Policy::new(&layers, &protected)?;
        Ok(Self { layers, protected, protected_outside: Vec::new(), policy, sessions: HashMap::new() })
    }

    /// Protects sayso's own files outside the workspace.
    #[must_use]
    pub fn with_protected_outside(mut self, outside: Vec<OutsidePath>) -> Self {
        self.policy = self.policy.with_protected_outside(&outside);
        self.protected_outside = outside;
        self
    }

    /// Returns the policy without the rules of sessions.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the rules as data, with the session's own rules.
    pub(crate) fn snapshot(&self, session: Option<&str>, added: &[Rule]) -> RuleSet {
        let mut layers = self.layers.clone();
        layers.extend(session.filter(|_| !added.is_empty()).map(|session| session_layer(session, added)));
        let (protected, protected_outside) = (self.protected.clone(), self.protected_outside.clone());
        RuleSet { layers, protected, protected_outside }
    }

    /// Evaluates a query with the rules of its session.
    pub(crate) fn evaluate(
        &mut self,
        act: &PolicyQuery<'_>,
        who: &Principal<'_>,
        added: &[Rule],
    ) -> Result<PolicyDecision, PolicyError> {
        Ok(self.for_session(who.session, added)?.evaluate(act, who))
    }

    /// Returns the policy with further rules, without storing them.
    pub(crate) fn with_extra_rules(&self, added: &[Rule]) -> Result<Policy, PolicyError> {
        let mut layers = self.layers.clone();
        let (file, rules) = ("the rule".to_owned(), added.to_vec());
        layers.push(Layer { file, trust: LayerTrust::Trusted, defaults: Defaults::default(), rules });
        Ok(Policy::new(&layers, &self.protected)?.with_protected_outside(&self.protected_outside))
    }

    /// Returns the policy with the rules of a session. Compiles it only if these changed.
    pub(crate) fn for_session(&mut self, session: Option<&str>, added: &[Rule]) -> Result<&Policy, PolicyError> {
        let Some(session) = session.filter(|_| !added.is_empty()) else { return Ok(&self.policy) };
        let compiled = self.sessions.get(session).is_some_and(|(rules, _)| rules == added);
        if !compiled {
            let mut layers = self.layers.clone();
            layers.push(session_layer(session, added));
            let policy = Policy::new(&layers, &self.protected)?.with_protected_outside(&self.protected_outside);
            self.sessions.insert(session.to_owned(), (added.to_vec(), policy));
        }
        Ok(self.sessions.get(session).map_or(&self.policy, |(_, policy)| policy))
    }
}

fn session_layer(session: &str, added: &[Rule]) -> Layer {
    let (file, rules) = (format!("session {session}"), added.to_vec());
    Layer { file, trust: LayerTrust::Trusted, defaults: Defaults::default(), rules }
}
