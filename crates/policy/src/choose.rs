//! Which of the rules about one part decides.

use crate::act::Who;
use crate::always::BuiltIn;
use crate::compile::{Compiled, Policy};
use crate::index::Number;
use crate::rule::Standing;
use crate::ruling::{Access, Lost, Part, RuleId, Ruling, Why};
use crate::words::Fit;

/// How much to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// What decides.
    Decision,
    /// The other rules too, and why they did not.
    Everything,
}

/// A rule that is about a part, and how surely.
pub(super) type Found = (Number, Fit);

impl Compiled {
    fn is_for(&self, who: &Who<'_>) -> bool {
        let fits =
            |wanted: &Option<String>, given: Option<&str>| wanted.as_deref().is_none_or(|wanted| given == Some(wanted));
        fits(&self.agent, who.agent) && fits(&self.session, who.session)
    }

    /// How few it is for.
    fn scope(&self) -> u8 {
        if self.session.is_some() { 2 } else { u8::from(self.agent.is_some()) }
    }
}

/// What decided a part.
struct Chosen {
    ruling: Ruling,
    by: RuleId,
    reason: Option<String>,
    /// The rule, if one of those that were found decided.
    rule: Option<Number>,
    /// Why all others lost, where that is the same for all.
    lost: Option<Why>,
}

impl Policy {
    /// Decides about one part: `found` are the rules that are about it, `built_in` is what no rule changes.
    pub(super) fn choose(
        &self,
        (access, what): (Access, String),
        mut found: Vec<Found>,
        built_in: Option<BuiltIn>,
        who: &Who<'_>,
        detail: Detail,
    ) -> Part {
        found.retain(|(number, fit)| *fit != Fit::No && self.rule(*number).is_for(who));
        let chosen = self.chosen(access, &found, built_in);
        let others = match detail {
            Detail::Decision => Vec::new(),
            Detail::Everything => self.others(&found, &chosen),
        };
        Part { access, what, ruling: chosen.ruling, by: chosen.by, reason: chosen.reason, others }
    }

    fn rule(&self, number: Number) -> &Compiled {
        &self.rules[number as usize]
    }

    fn chosen(&self, access: Access, found: &[Found], built_in: Option<BuiltIn>) -> Chosen {
        let name = |name: &str| RuleId::BuiltIn { name: name.to_owned() };
        match built_in {
            Some(BuiltIn::Never(by, reason)) => {
                let reason = Some(reason.to_owned());
                return Chosen { ruling: Ruling::Deny, by: name(by), reason, rule: None, lost: Some(Why::BuiltIn) };
            }
            Some(BuiltIn::Harmless(by)) => {
                return Chosen {
                    ruling: Ruling::Allow,
                    by: name(by),
                    reason: None,
                    rule: None,
                    lost: Some(Why::BuiltIn),
                };
            }
            Some(BuiltIn::Asks(_) | BuiltIn::AsksByDefault(_) | BuiltIn::AllowsByDefault(_)) | None => {}
        }
        let of_rule = |number: Number, ruling: Ruling, lost: Option<Why>| {
            let rule = self.rule(number);
            Chosen { ruling, by: rule.id.clone(), reason: rule.reason.clone(), rule: Some(number), lost }
        };
        let last_of_narrowest = |fits: &dyn Fn(&Compiled, Fit) -> bool| {
            let fitting = found.iter().filter(|(number, fit)| fits(self.rule(*number), *fit));
            fitting.map(|(number, _)| *number).max_by_key(|number| (self.rule(*number).scope(), *number))
        };
        if let Some(number) = last_of_narrowest(&|rule, fit| rule.then == Ruling::Deny && fit == Fit::Yes) {
            return of_rule(number, Ruling::Deny, Some(Why::DenyWins));
        }
        let winner = last_of_narrowest(&|rule, fit| {
            rule.then != Ruling::Deny && rule.standing == Standing::Full && fit == Fit::Yes
        });
        let chosen = if let Some(number) = winner {
            of_rule(number, self.rule(number).then, None)
        } else {
            let (ruling, id) = self.default_for(access);
            match built_in {
                // A default is about the workspace; elsewhere it can only be stricter.
                Some(BuiltIn::AsksByDefault(by)) if ruling <= Ruling::Ask => {
                    Chosen { ruling: Ruling::Ask, by: name(by), reason: None, rule: None, lost: None }
                }
                Some(BuiltIn::AllowsByDefault(by)) => {
                    Chosen { ruling: Ruling::Allow, by: name(by), reason: None, rule: None, lost: None }
                }
                _ => Chosen { ruling, by: id.clone(), reason: None, rule: None, lost: None },
            }
        };
        if let Some(BuiltIn::Asks(by)) = built_in
            && chosen.ruling <= Ruling::Ask
        {
            return Chosen { ruling: Ruling::Ask, by: name(by), reason: None, rule: None, lost: Some(Why::AlwaysAsks) };
        }
        // What may be denied, and what an untrusted file asks about, is asked about at least.
        let floor = last_of_narrowest(&|rule, fit| {
            fit == Fit::Maybe || (rule.then == Ruling::Ask && rule.standing == Standing::Tightens && fit == Fit::Yes)
        });
        match floor {
            Some(number) if chosen.ruling < Ruling::Ask => {
                Chosen { reason: None, ..of_rule(number, Ruling::Ask, Some(Why::Stricter)) }
            }
            _ => chosen,
        }
    }

    fn others(&self, found: &[Found], chosen: &Chosen) -> Vec<Lost> {
        let deciding_scope = chosen.rule.map(|number| self.rule(number).scope());
        let lost = |(number, fit): &Found| {
            let rule = self.rule(*number);
            let untrusted = rule.standing == Standing::Tightens && rule.then < Ruling::Ask;
            let why = match (fit, chosen.lost) {
                (Fit::But(why), _) => *why,
                _ if untrusted => Why::Untrusted,
                (_, Some(why)) => why,
                _ if deciding_scope > Some(rule.scope()) => Why::Narrower,
                _ => Why::Later,
            };
            Lost { rule: rule.id.clone(), then: rule.then, why }
        };
        let mut others: Vec<Lost> = found.iter().filter(|(number, _)| chosen.rule != Some(*number)).map(lost).collect();
        others.dedup();
        others
    }
}
