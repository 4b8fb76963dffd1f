//! Taking an act apart and judging each part.

use std::borrow::Cow;

use sayso_base::OutsidePath;
use sayso_shell::{Script, Word, visible};

use crate::act::{Act, Who};
use crate::always::BuiltIn;
use crate::builtins;
use crate::choose::{Detail, Found};
use crate::compile::Policy;
use crate::coverage::{hindrance, is_harmless_assignment};
use crate::effects::Place;
use crate::environment::{assigned_name, is_dangerous};
use crate::grammar::What;
use crate::grammar::vocabulary::Trait;
use crate::index::{Commands, Texts};
use crate::inner::{RunCommand, not_understood};
use crate::ruling::{Access, Part, RuleId, Ruled, Ruling, Why};
use crate::words::{Fit, Spoken, Words, Wrappers, base_name};

/// Who asks, and how much to tell.
#[derive(Clone, Copy)]
struct Question<'a> {
    who: &'a Who<'a>,
    detail: Detail,
}

impl Policy {
    /// Says what is to become of an act, and by which rule.
    pub fn judge(&self, act: &Act<'_>, who: &Who<'_>) -> Ruled {
        self.answer(act, Question { who, detail: Detail::Decision })
    }

    /// Judges, and lists for each part the other rules about it and why they did not decide.
    pub fn explain(&self, act: &Act<'_>, who: &Who<'_>) -> Ruled {
        self.answer(act, Question { who, detail: Detail::Everything })
    }

    fn answer(&self, act: &Act<'_>, question: Question<'_>) -> Ruled {
        let mut parts = Vec::new();
        let access = match act {
            Act::Read { places } => {
                parts.extend(places.iter().map(|place| self.read(place, question)));
                Access::Read
            }
            Act::Write { places } => {
                parts.extend(places.iter().map(|place| self.write(place, question)));
                Access::Write
            }
            Act::Run { script, reads, writes } => {
                self.run(script, reads, writes, question, &mut parts);
                Access::Run
            }
            Act::Tool { name, reads, writes } => {
                parts.push(self.name(Access::Tool, name, question));
                parts.extend(reads.iter().map(|place| self.read(place, question)));
                parts.extend(writes.iter().map(|place| self.write(place, question)));
                Access::Tool
            }
            Act::Delegate { agent, tools } => {
                parts.push(self.name(Access::Delegate, agent, question));
                parts.extend(tools.iter().filter_map(|tool| self.handed_out(tool, question)));
                Access::Delegate
            }
            Act::Send { upstream } => {
                parts.push(self.name(Access::Send, upstream, question));
                Access::Send
            }
        };
        let Some(strictest) = strictest(&parts) else {
            // Nothing is named, so that nothing but the default can be said.
            let (ruling, by) = self.default_for(access);
            return Ruled { ruling, by: by.clone(), reason: None, parts };
        };
        let (ruling, by, reason) = (strictest.ruling, strictest.by.clone(), strictest.reason.clone());
        Ruled { ruling, by, reason, parts }
    }

    fn texts(&self, access: Access) -> &Texts {
        match access {
            Access::Read => &self.read,
            Access::Tool => &self.tool,
            Access::Delegate => &self.delegate,
            Access::Send => &self.send,
            Access::Write | Access::Run => &self.write,
        }
    }

    fn outside_texts(&self, access: Access) -> &Texts {
        if access == Access::Read { &self.outside_read } else { &self.outside_write }
    }

    fn name(&self, access: Access, name: &str, question: Question<'_>) -> Part {
        let found = self.texts(access).find(name).into_iter().map(|rule| (rule, Fit::Yes)).collect();
        self.choose((access, name.to_owned()), found, None, question.who, question.detail)
    }

    /// A tool that another agent will have: what it does with it is judged when it does it, but a denied one is asked about.
    fn handed_out(&self, tool: &str, question: Question<'_>) -> Option<Part> {
        let part = self.name(Access::Tool, tool, question);
        (part.ruling == Ruling::Deny).then_some(Part { ruling: Ruling::Ask, ..part })
    }

    fn read(&self, place: &Place, question: Question<'_>) -> Part {
        self.touch(Access::Read, place, self.always.about(Access::Read, place), question)
    }

    fn write(&self, place: &Place, question: Question<'_>) -> Part {
        self.touch(Access::Write, place, self.always.about(Access::Write, place), question)
    }

    fn touch(&self, access: Access, place: &Place, built_in: Option<BuiltIn>, question: Question<'_>) -> Part {
        let named = match place {
            Place::Inside(path) => Some((self.texts(access), path.as_str().to_owned())),
            Place::Outside(text) => {
                let path = OutsidePath::parse(text).ok();
                path.map(|path| (self.outside_texts(access), path.below_root().to_owned()))
            }
            Place::Unknown(_) => None,
        };
        let mut found: Vec<Found> = Vec::new();
        if let Some((texts, path)) = named {
            found.extend(texts.find(&path).into_iter().map(|rule| (rule, Fit::Yes)));
            let below = texts.below(&path).filter(|rule| !found.contains(&(*rule, Fit::Yes)));
            let below: Vec<Found> = below.map(|rule| (rule, Fit::Maybe)).collect();
            found.extend(below);
        }
        self.choose((access, place.name()), found, built_in, question.who, question.detail)
    }

    fn run(&self, script: &Script, reads: &[Place], writes: &[Place], question: Question<'_>, parts: &mut Vec<Part>) {
        if let Some(reason) = not_understood(script) {
            parts.push(self.whole_script(reason));
        }
        let commands = RunCommand::all(script);
        let has_others = RunCommand::has_others(&commands);
        for run in &commands {
            parts.extend(run.problem.iter().map(|problem| self.whole_script(problem.clone())));
            // A redirect without a command is judged as the write that it is.
            if !run.command.words.is_empty() || !run.command.assignments.is_empty() {
                let built_in = if run.changes_directory_to(reads.iter().chain(writes)) {
                    Some(BuiltIn::Asks("a directory outside the workspace"))
                } else {
                    (has_others && run.is_builtin()).then_some(BuiltIn::AllowsByDefault("a builtin without effect"))
                };
                parts.push(self.command(run, built_in, &commands, question));
            }
        }
        for place in reads {
            // A program reads what it likes, so that a denial which nobody can override would only pretend.
            let built_in = match self.always.about(Access::Read, place) {
                Some(BuiltIn::Never(name, _)) if matches!(place, Place::Outside(_)) => Some(BuiltIn::Asks(name)),
                built_in => built_in,
            };
            let part = self.touch(Access::Read, place, built_in, question);
            parts.push(with_source(part, &commands));
        }
        parts.extend(writes.iter().map(|place| with_source(self.write(place, question), &commands)));
        if writes.is_empty() {
            // Whoever made the act has not said where its words and redirects lead.
            let unplaced = commands.iter().flat_map(RunCommand::written);
            parts.extend(unplaced.map(|place| with_source(self.write(&place, question), &commands)));
        }
    }

    /// The part for what no rule can cover, because it is not understood.
    fn whole_script(&self, reason: String) -> Part {
        let by = RuleId::BuiltIn { name: "a script that is not understood in whole".to_owned() };
        let (what, others) = ("the whole script".to_owned(), Vec::new());
        let (default, _) = self.default_for(Access::Run);
        // Where commands are denied unless a rule allows them, what is not understood is denied too.
        let ruling = if default == Ruling::Deny { Ruling::Deny } else { Ruling::Ask };
        Part { access: Access::Run, what, ruling, by, reason: Some(reason), others }
    }

    fn command(
        &self,
        run: &RunCommand<'_>,
        usual: Option<BuiltIn>,
        all: &[RunCommand<'_>],
        question: Question<'_>,
    ) -> Part {
        let command = &run.command;
        let spoken = Spoken::new(command, &run.words, run.reading.as_ref());
        let (found, clause) = self.about_command(&spoken, all, question.detail);
        let dangerous = command.assignments.iter().find(|word| {
            // Without a plain name it sets an element, in whose subscript a shell evaluates code.
            assigned_name(&word.text).is_none_or(is_dangerous)
        });
        let built_in = match run.words.first().map(Word::as_literal) {
            _ if dangerous.is_some() => Some(BuiltIn::Asks("a variable that changes what programs do")),
            Some(None) => Some(BuiltIn::Asks("a program that is not known before")),
            // An agent must not approve itself, by a rule or by trust.
            Some(Some(name)) if base_name(name).eq_ignore_ascii_case("sayso") => Some(BuiltIn::Asks("sayso itself")),
            _ => usual,
        };
        let words: Vec<&str> =
            command.assignments.iter().chain(&command.words).map(|word| word.text.as_str()).collect();
        let mut part = self.choose((Access::Run, words.join(" ")), found, built_in, question.who, question.detail);
        if part.ruling == Ruling::Ask && part.reason.is_none() {
            let variable = dangerous.map(|word| format!("`{}` changes what programs do", visible(&word.text)));
            part.reason = variable.or(clause).or_else(|| run.origin.clone());
        } else if part.ruling < Ruling::Ask {
            part.reason = part.reason.or_else(|| self.widened(&part.by, &spoken));
        }
        part
    }

    /// Names, in one clause, the word that only `options = "any"` lets through.
    fn widened(&self, by: &RuleId, spoken: &Spoken<'_>) -> Option<String> {
        let rule = self.rules.iter().find(|rule| rule.id == *by && rule.options.is_some())?;
        rule.options?;
        let hindrance = hindrance(spoken, &[0])?;
        Some(format!("`options = \"any\"` lets this through: {}", hindrance.clause(spoken)))
    }

    /// The rules about a command, and the clause that says why a rule that nearly covers it does not.
    fn about_command(
        &self,
        spoken: &Spoken<'_>,
        all: &[RunCommand<'_>],
        detail: Detail,
    ) -> (Vec<Found>, Option<String>) {
        let command = spoken.command;
        let first = spoken.plain().first().map(|word| word.text.as_str());
        let programs = || command.through.iter().filter_map(|name| name.split(' ').next()).chain(first);
        let mut found: Vec<Found> = Vec::new();
        for (pattern, rule) in self.run.stricter_about(programs()) {
            let alias = spoken.reading.is_some_and(|reading| reading.has_unknown_verb) && pattern.names_arguments();
            let fit = match pattern.reaches(spoken) {
                Fit::No if alias => Fit::Maybe,
                fit => fit,
            };
            found.push((*rule, fit));
        }
        found.extend(mentioned(&self.run, spoken));
        let wrappers =
            if command.through.iter().all(|name| is_listed(name, all)) { Wrappers::Listed } else { Wrappers::Hidden };
        let mut clause = None;
        let mut add = |(pattern, rule): &(Words, u32)| {
            let fit = pattern.covers(spoken, wrappers, self.rules[*rule as usize].options);
            if let Fit::But(why) = fit {
                clause = near_miss(why, spoken, pattern).or(clause.take());
            }
            found.push((*rule, fit));
        };
        if detail == Detail::Everything {
            self.run.all_milder().for_each(&mut add);
        } else {
            let programs = command.through.iter().map(String::as_str).chain(first);
            self.run.milder_about(programs).for_each(&mut add);
        }
        found.retain(|(_, fit)| *fit != Fit::No);
        found.sort_unstable_by_key(|(rule, fit)| (*rule, *fit != Fit::Yes));
        // A rule with several patterns counts once, by the one that fits best.
        found.dedup_by_key(|(rule, _)| *rule);
        (found, clause)
    }
}

/// Names, in one clause, the word that keeps a rule from covering a command.
fn near_miss(why: Why, spoken: &Spoken<'_>, pattern: &Words) -> Option<String> {
    match why {
        Why::FurtherEffect | Why::FurtherWords | Why::Unclear => {
            let spelled: Vec<usize> = (0..pattern.length()).collect();
            hindrance(spoken, &spelled).map(|hindrance| hindrance.clause(spoken))
        }
        Why::Assignment => {
            let word = spoken.command.assignments.iter().find(|word| !is_harmless_assignment(word))?;
            Some(format!("`{}` may change what the command does", visible(&word.text)))
        }
        _ => None,
    }
}

/// Stricter rules about a program that is only mentioned: among the words of an unknown wrapper, or in code.
fn mentioned(rules: &Commands, spoken: &Spoken<'_>) -> Vec<Found> {
    let is_opaque = match spoken.reading {
        None => builtins::is_effect_free(spoken.plain()).is_none(),
        Some(reading) => reading
            .findings
            .iter()
            .any(|finding| matches!(finding.what, What::Unclear(_) | What::Effect(Trait::Code | Trait::Unknown))),
    };
    if !is_opaque || rules.has_no_stricter() {
        return Vec::new();
    }
    let arguments = spoken.plain().get(1..).unwrap_or_default();
    let is_separator = |character: char| !(character.is_alphanumeric() || "_-./+".contains(character));
    let tokens: Vec<Cow<'_, Word>> = arguments
        .iter()
        .flat_map(|word| word.text.split(is_separator))
        .filter(|token| !token.is_empty())
        .map(|token| Cow::Owned(Word::literal(token)))
        .collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        for (pattern, rule) in rules.stricter_named(&token.text) {
            if pattern.reaches_words(&tokens[at..]) != Fit::No {
                found.push((*rule, Fit::Maybe));
            }
        }
    }
    found
}

/// Names the word that causes a part about a place, if one does.
fn with_source(mut part: Part, commands: &[RunCommand<'_>]) -> Part {
    if part.ruling == Ruling::Ask && part.reason.is_none() {
        part.reason = commands.iter().find_map(|run| run.source_of(part.access, &part.what));
    }
    part
}

/// `true` if a program that runs others is itself a command of the script.
fn is_listed(wrapper: &str, all: &[RunCommand<'_>]) -> bool {
    let program = wrapper.split(' ').next();
    all.iter().any(|run| run.words.first().is_some_and(|word| Some(word.text.as_str()) == program))
}

/// The first of the strictest.
fn strictest(parts: &[Part]) -> Option<&Part> {
    parts.iter().rev().max_by_key(|part| part.ruling)
}
