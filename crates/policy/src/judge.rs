//! Taking an act apart and judging each part.

use sayso_base::OutsidePath;
use sayso_shell::{RedirectAccess, Script, SimpleCommand};

use crate::act::{Act, Who};
use crate::always::{BuiltIn, SINKS};
use crate::choose::{Detail, Found};
use crate::compile::Policy;
use crate::effects::Place;
use crate::index::Texts;
use crate::ruling::{Access, Part, RuleId, Ruled, Ruling};
use crate::words::{Fit, Spoken, Wrappers, base_name};

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
        if !script.doubts.is_empty() || script.commands.is_empty() {
            let by = RuleId::BuiltIn { name: "a script that is not understood in whole".to_owned() };
            let (what, others) = ("the whole script".to_owned(), Vec::new());
            let (default, _) = self.default_for(Access::Run);
            // Where commands are denied unless a rule allows them, what is not understood is denied too.
            let ruling = if default == Ruling::Deny { Ruling::Deny } else { Ruling::Ask };
            parts.push(Part { access: Access::Run, what, ruling, by, reason: None, others });
        }
        for command in &script.commands {
            // A redirect without a command is judged as the write that it is.
            if !command.words.is_empty() || !command.assignments.is_empty() {
                parts.push(self.command(command, script, question));
            }
        }
        for place in reads {
            // A program reads what it likes, so that a denial which nobody can override would only pretend.
            let built_in = match self.always.about(Access::Read, place) {
                Some(BuiltIn::Never(name, _)) if matches!(place, Place::Outside(_)) => Some(BuiltIn::Asks(name)),
                built_in => built_in,
            };
            parts.push(self.touch(Access::Read, place, built_in, question));
        }
        parts.extend(writes.iter().map(|place| self.write(place, question)));
        if writes.is_empty() {
            // Whoever made the act has not said where its redirects lead.
            let redirects = script.commands.iter().flat_map(|command| &command.redirects);
            let unknown = redirects.filter(|redirect| redirect.access != RedirectAccess::Read);
            let places = unknown.map(|redirect| match redirect.target.as_literal() {
                Some(text) if SINKS.contains(&text) => Place::Outside(text.to_owned()),
                _ => Place::Unknown(redirect.target.text.clone()),
            });
            parts.extend(places.map(|place| self.write(&place, question)));
        }
    }

    fn command(&self, command: &SimpleCommand, script: &Script, question: Question<'_>) -> Part {
        let found = self.about_command(command, script, question.detail);
        let built_in = command.words.first().and_then(|program| match program.as_literal() {
            None => Some(BuiltIn::Asks("a program that is not known before")),
            // An agent must not approve itself, by a rule or by trust.
            Some(name) if base_name(name).eq_ignore_ascii_case("sayso") => Some(BuiltIn::Asks("sayso itself")),
            Some(_) => None,
        });
        let words: Vec<&str> =
            command.assignments.iter().chain(&command.words).map(|word| word.text.as_str()).collect();
        self.choose((Access::Run, words.join(" ")), found, built_in, question.who, question.detail)
    }

    fn about_command(&self, command: &SimpleCommand, script: &Script, detail: Detail) -> Vec<Found> {
        let first = command.words.first().map(|word| word.text.as_str());
        let programs = || command.through.iter().filter_map(|name| name.split(' ').next()).chain(first);
        let spoken = Spoken::new(command);
        let mut found: Vec<Found> = Vec::new();
        for (pattern, rule) in self.run.stricter_about(programs()) {
            found.push((*rule, pattern.reaches(&spoken)));
        }
        let wrappers = if command.through.iter().all(|name| is_listed(name, script)) {
            Wrappers::Listed
        } else {
            Wrappers::Hidden
        };
        if detail == Detail::Everything {
            found.extend(self.run.all_milder().map(|(pattern, rule)| (*rule, pattern.covers(&spoken, wrappers))));
        } else {
            let milder = self.run.milder_about(command.through.iter().map(String::as_str).chain(first));
            found.extend(milder.map(|(pattern, rule)| (*rule, pattern.covers(&spoken, wrappers))));
        }
        found.retain(|(_, fit)| *fit != Fit::No);
        found.sort_unstable_by_key(|(rule, fit)| (*rule, *fit != Fit::Yes));
        // A rule with several patterns counts once, by the one that fits best.
        found.dedup_by_key(|(rule, _)| *rule);
        found
    }
}

/// Whether a program that runs others is itself a command of the script.
fn is_listed(wrapper: &str, script: &Script) -> bool {
    let program = wrapper.split(' ').next();
    script.commands.iter().any(|command| command.words.first().is_some_and(|word| Some(word.text.as_str()) == program))
}

/// The first of the strictest.
fn strictest(parts: &[Part]) -> Option<&Part> {
    parts.iter().rev().max_by_key(|part| part.ruling)
}
