//! Splits a query into parts and decides each part.

use std::borrow::Cow;

use sayso_base::OutsidePath;
use sayso_shell::{Script, Word, escape_unprintable};

use crate::builtin_rules::BuiltinRule;
use crate::command_pattern::{CommandPattern, CommandWords, MatchCertainty, WrapperVisibility, base_name};
use crate::compile::Policy;
use crate::coverage::{find_blocker, is_harmless_assignment};
use crate::decision::{Access, OverrideReason, PartDecision, PolicyDecision, RuleId, Ruling};
use crate::effects::PathTarget;
use crate::environment::{assigned_name, is_dangerous};
use crate::grammar::FindingKind;
use crate::grammar::vocabulary::Trait;
use crate::index::{CommandIndex, TextIndex};
use crate::nested_commands::{EffectiveCommand, not_understood};
use crate::precedence::{Detail, MatchedRule};
use crate::query::{PolicyQuery, Principal};
use crate::shell_builtins;

/// Parameters that all parts of one evaluation share.
#[derive(Clone, Copy)]
struct EvaluationContext<'a> {
    principal: &'a Principal<'a>,
    detail: Detail,
}

impl Policy {
    /// Decides a query, and names the deciding rule.
    pub fn evaluate(&self, query: &PolicyQuery<'_>, principal: &Principal<'_>) -> PolicyDecision {
        self.evaluate_with(query, EvaluationContext { principal, detail: Detail::Decision })
    }

    /// Decides a query like [`Self::evaluate`], and lists the other matching rules with the reason why each did not decide.
    pub fn explain(&self, query: &PolicyQuery<'_>, principal: &Principal<'_>) -> PolicyDecision {
        self.evaluate_with(query, EvaluationContext { principal, detail: Detail::Explanation })
    }

    fn evaluate_with(&self, query: &PolicyQuery<'_>, context: EvaluationContext<'_>) -> PolicyDecision {
        let mut parts = Vec::new();
        let access = match query {
            PolicyQuery::Read { targets } => {
                parts.extend(targets.iter().map(|target| self.decide_read(target, context)));
                Access::Read
            }
            PolicyQuery::Write { targets } => {
                parts.extend(targets.iter().map(|target| self.decide_write(target, context)));
                Access::Write
            }
            PolicyQuery::Run { script, reads, writes } => {
                self.decide_script(script, reads, writes, context, &mut parts);
                Access::Run
            }
            PolicyQuery::Tool { name, reads, writes } => {
                parts.push(self.decide_name(Access::Tool, name, context));
                parts.extend(reads.iter().map(|target| self.decide_read(target, context)));
                parts.extend(writes.iter().map(|target| self.decide_write(target, context)));
                Access::Tool
            }
            PolicyQuery::Delegate { agent, tools } => {
                parts.push(self.decide_name(Access::Delegate, agent, context));
                parts.extend(tools.iter().filter_map(|tool| self.decide_delegated_tool(tool, context)));
                Access::Delegate
            }
            PolicyQuery::Send { upstream } => {
                parts.push(self.decide_name(Access::Send, upstream, context));
                Access::Send
            }
        };
        let Some(strictest) = strictest(&parts) else {
            // Without parts, no rule can match and the default decides.
            let (ruling, rule) = self.default_for(access);
            return PolicyDecision { ruling, rule: rule.clone(), reason: None, parts };
        };
        let (ruling, rule, reason) = (strictest.ruling, strictest.rule.clone(), strictest.reason.clone());
        PolicyDecision { ruling, rule, reason, parts }
    }

    fn texts(&self, access: Access) -> &TextIndex {
        match access {
            Access::Read => &self.read,
            Access::Tool => &self.tool,
            Access::Delegate => &self.delegate,
            Access::Send => &self.send,
            Access::Write | Access::Run => &self.write,
        }
    }

    fn outside_texts(&self, access: Access) -> &TextIndex {
        if access == Access::Read { &self.outside_read } else { &self.outside_write }
    }

    fn decide_name(&self, access: Access, name: &str, context: EvaluationContext<'_>) -> PartDecision {
        let found = self.texts(access).find(name).into_iter().map(|rule| (rule, MatchCertainty::Certain)).collect();
        self.decide_part((access, name.to_owned()), found, None, context.principal, context.detail)
    }

    /// Asks about a denied tool that another agent would get. Other tools need no decision here, because policy decides each call
    /// of the other agent.
    fn decide_delegated_tool(&self, tool: &str, context: EvaluationContext<'_>) -> Option<PartDecision> {
        let part = self.decide_name(Access::Tool, tool, context);
        (part.ruling == Ruling::Deny).then_some(PartDecision { ruling: Ruling::Ask, ..part })
    }

    fn decide_read(&self, target: &PathTarget, context: EvaluationContext<'_>) -> PartDecision {
        self.decide_path(Access::Read, target, self.builtin_rules.rule_for(Access::Read, target), context)
    }

    fn decide_write(&self, target: &PathTarget, context: EvaluationContext<'_>) -> PartDecision {
        self.decide_path(Access::Write, target, self.builtin_rules.rule_for(Access::Write, target), context)
    }

    fn decide_path(
        &self,
        access: Access,
        target: &PathTarget,
        built_in: Option<BuiltinRule>,
        context: EvaluationContext<'_>,
    ) -> PartDecision {
        let named = match target {
            PathTarget::Inside(path) => Some((self.texts(access), path.as_str().to_owned())),
            PathTarget::Outside(text) => {
                let path = OutsidePath::parse(text).ok();
                path.map(|path| (self.outside_texts(access), path.below_root().to_owned()))
            }
            PathTarget::Unknown(_) => None,
        };
        let mut found: Vec<MatchedRule> = Vec::new();
        if let Some((texts, path)) = named {
            found.extend(texts.find(&path).into_iter().map(|rule| (rule, MatchCertainty::Certain)));
            let below = texts.below(&path).filter(|rule| !found.contains(&(*rule, MatchCertainty::Certain)));
            let below: Vec<MatchedRule> = below.map(|rule| (rule, MatchCertainty::Possible)).collect();
            found.extend(below);
        }
        self.decide_part((access, target.text()), found, built_in, context.principal, context.detail)
    }

    fn decide_script(
        &self,
        script: &Script,
        reads: &[PathTarget],
        writes: &[PathTarget],
        context: EvaluationContext<'_>,
        parts: &mut Vec<PartDecision>,
    ) {
        if let Some(reason) = not_understood(script) {
            parts.push(self.not_understood_part(reason));
        }
        let commands = EffectiveCommand::all(script);
        let has_others = EffectiveCommand::has_others(&commands);
        for run in &commands {
            parts.extend(run.problem.iter().map(|problem| self.not_understood_part(problem.clone())));
            // A redirect without a command has no part of its own. Its file is among `writes`.
            if !run.command.words.is_empty() || !run.command.assignments.is_empty() {
                let built_in = if run.changes_directory_to(reads.iter().chain(writes)) {
                    Some(BuiltinRule::AlwaysAsk("a directory outside the workspace"))
                } else {
                    (has_others && run.is_builtin()).then_some(BuiltinRule::AllowByDefault("a builtin without effect"))
                };
                parts.push(self.decide_command(run, built_in, &commands, context));
            }
        }
        for target in reads {
            // A program can read any file, so an absolute denial would give false comfort. Ask instead.
            let built_in = match self.builtin_rules.rule_for(Access::Read, target) {
                Some(BuiltinRule::Deny(name, _)) if matches!(target, PathTarget::Outside(_)) => {
                    Some(BuiltinRule::AlwaysAsk(name))
                }
                built_in => built_in,
            };
            let part = self.decide_path(Access::Read, target, built_in, context);
            parts.push(with_source(part, &commands));
        }
        parts.extend(writes.iter().map(|target| with_source(self.decide_write(target, context), &commands)));
        if writes.is_empty() {
            // The caller did not resolve the paths, so take them from the words and redirects.
            let unresolved = commands.iter().flat_map(EffectiveCommand::written);
            parts.extend(unresolved.map(|target| with_source(self.decide_write(&target, context), &commands)));
        }
    }

    /// Returns the part for text that the parser does not understand, which no rule can cover.
    fn not_understood_part(&self, reason: String) -> PartDecision {
        let rule = RuleId::BuiltIn { name: "a script that sayso does not fully understand".to_owned() };
        let (target, overridden) = ("the whole script".to_owned(), Vec::new());
        let (default, _) = self.default_for(Access::Run);
        // If the default denies commands, deny the unknown rest too.
        let ruling = if default == Ruling::Deny { Ruling::Deny } else { Ruling::Ask };
        PartDecision { access: Access::Run, target, ruling, rule, reason: Some(reason), overridden }
    }

    fn decide_command(
        &self,
        run: &EffectiveCommand<'_>,
        default: Option<BuiltinRule>,
        all: &[EffectiveCommand<'_>],
        context: EvaluationContext<'_>,
    ) -> PartDecision {
        let command = &run.command;
        let command_words = CommandWords::new(command, &run.words, run.parsed.as_ref());
        let (found, clause) = self.matching_rules(&command_words, all, context.detail);
        let dangerous = command.assignments.iter().find(|word| {
            // Without a plain name it sets an array element, and a shell evaluates code in the subscript.
            assigned_name(&word.text).is_none_or(is_dangerous)
        });
        let built_in = match run.words.first().map(Word::as_literal) {
            _ if dangerous.is_some() => Some(BuiltinRule::AlwaysAsk("a variable that changes how programs run")),
            Some(None) => Some(BuiltinRule::AlwaysAsk("a program that is not known before it runs")),
            // An agent must not approve its own changes with a rule or with trust.
            Some(Some(name)) if base_name(name).eq_ignore_ascii_case("sayso") => {
                Some(BuiltinRule::AlwaysAsk("sayso itself"))
            }
            _ => default,
        };
        let words: Vec<&str> =
            command.assignments.iter().chain(&command.words).map(|word| word.text.as_str()).collect();
        let mut part =
            self.decide_part((Access::Run, words.join(" ")), found, built_in, context.principal, context.detail);
        if part.ruling == Ruling::Ask && part.reason.is_none() {
            let variable =
                dangerous.map(|word| format!("`{}` changes how programs run", escape_unprintable(&word.text)));
            part.reason = variable.or(clause).or_else(|| run.origin.clone());
        } else if part.ruling < Ruling::Ask {
            part.reason = part.reason.or_else(|| self.wide_option_clause(&part.rule, &command_words));
        }
        part
    }

    /// Names the word that only `options = "any"` permits, in one clause.
    fn wide_option_clause(&self, id: &RuleId, command_words: &CommandWords<'_>) -> Option<String> {
        let rule = self.rules.iter().find(|rule| rule.id == *id && rule.options.is_some())?;
        rule.options?;
        let blocker = find_blocker(command_words, &[0])?;
        Some(format!("`options = \"any\"` permits this: {}", blocker.clause(command_words)))
    }

    /// Returns the rules that match a command, and a clause that explains a near miss of an allow rule.
    fn matching_rules(
        &self,
        command_words: &CommandWords<'_>,
        all: &[EffectiveCommand<'_>],
        detail: Detail,
    ) -> (Vec<MatchedRule>, Option<String>) {
        let command = command_words.command;
        let first = command_words.own_words().first().map(|word| word.text.as_str());
        let programs = || command.wrappers.iter().filter_map(|name| name.split(' ').next()).chain(first);
        let mut found: Vec<MatchedRule> = Vec::new();
        for (pattern, rule) in self.run.restricting_for(programs()) {
            let alias = command_words.parsed.is_some_and(|parsed| parsed.has_unknown_verb) && pattern.names_arguments();
            let certainty = match pattern.restricts(command_words) {
                MatchCertainty::NoMatch if alias => MatchCertainty::Possible,
                certainty => certainty,
            };
            found.push((*rule, certainty));
        }
        found.extend(rules_for_mentions(&self.run, command_words));
        let wrappers = if command.wrappers.iter().all(|name| is_listed(name, all)) {
            WrapperVisibility::Listed
        } else {
            WrapperVisibility::Hidden
        };
        let mut clause = None;
        let mut add = |(pattern, rule): &(CommandPattern, u32)| {
            let certainty = pattern.allows(command_words, wrappers, self.rules[*rule as usize].options);
            if let MatchCertainty::NearMiss(reason) = certainty {
                clause = near_miss_clause(reason, command_words, pattern).or(clause.take());
            }
            found.push((*rule, certainty));
        };
        if detail == Detail::Explanation {
            self.run.all_allowing().for_each(&mut add);
        } else {
            let programs = command.wrappers.iter().map(String::as_str).chain(first);
            self.run.allowing_for(programs).for_each(&mut add);
        }
        found.retain(|(_, certainty)| *certainty != MatchCertainty::NoMatch);
        found.sort_unstable_by_key(|(rule, certainty)| (*rule, *certainty != MatchCertainty::Certain));
        // A rule with several patterns counts once. The sort has put its best match first.
        found.dedup_by_key(|(rule, _)| *rule);
        (found, clause)
    }
}

/// Names the word that prevents a rule from covering a command, in one clause.
fn near_miss_clause(
    reason: OverrideReason,
    command_words: &CommandWords<'_>,
    pattern: &CommandPattern,
) -> Option<String> {
    match reason {
        OverrideReason::FurtherEffect | OverrideReason::FurtherWords | OverrideReason::Unclear => {
            let spelled: Vec<usize> = (0..pattern.word_count()).collect();
            find_blocker(command_words, &spelled).map(|blocker| blocker.clause(command_words))
        }
        OverrideReason::Assignment => {
            let word = command_words.command.assignments.iter().find(|word| !is_harmless_assignment(word))?;
            Some(format!("`{}` may change what the command does", escape_unprintable(&word.text)))
        }
        _ => None,
    }
}

/// Returns ask and deny rules for programs that appear in an argument: of an unknown wrapper, or within code.
fn rules_for_mentions(rules: &CommandIndex, command_words: &CommandWords<'_>) -> Vec<MatchedRule> {
    let is_opaque = match command_words.parsed {
        None => shell_builtins::is_effect_free(command_words.own_words()).is_none(),
        Some(parsed) => parsed.findings.iter().any(|finding| {
            matches!(finding.what, FindingKind::Unclear(_) | FindingKind::Effect(Trait::Code | Trait::Unknown))
        }),
    };
    if !is_opaque || rules.has_no_restricting() {
        return Vec::new();
    }
    let arguments = command_words.own_words().get(1..).unwrap_or_default();
    let is_separator = |character: char| !(character.is_alphanumeric() || "_-./+".contains(character));
    let tokens: Vec<Cow<'_, Word>> = arguments
        .iter()
        .flat_map(|word| word.text.split(is_separator))
        .filter(|token| !token.is_empty())
        .map(|token| Cow::Owned(Word::literal(token)))
        .collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        for (pattern, rule) in rules.restricting_named(&token.text) {
            if pattern.restricts_words(&tokens[at..]) != MatchCertainty::NoMatch {
                found.push((*rule, MatchCertainty::Possible));
            }
        }
    }
    found
}

/// Sets the reason of a path's part to the word or redirect that names the path.
fn with_source(mut part: PartDecision, commands: &[EffectiveCommand<'_>]) -> PartDecision {
    if part.ruling == Ruling::Ask && part.reason.is_none() {
        part.reason = commands.iter().find_map(|run| run.source_of(part.access, &part.target));
    }
    part
}

/// `true` if the script lists the wrapper as a command of its own.
fn is_listed(wrapper: &str, all: &[EffectiveCommand<'_>]) -> bool {
    let program = wrapper.split(' ').next();
    all.iter().any(|run| run.words.first().is_some_and(|word| Some(word.text.as_str()) == program))
}

/// Returns the first of the strictest parts.
fn strictest(parts: &[PartDecision]) -> Option<&PartDecision> {
    parts.iter().rev().max_by_key(|part| part.ruling)
}
