//! Strategies for subjects.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::{
    CommandPreview, DelegationPreview, DryRun, FileAccess, GuessedFrom, ShownArgument, ShownCommand, Subject, Syntax,
    ToolPreview, UncertainSpan,
};

use crate::arbitrary::{effects, json, maybe, path, proposals, text, texts, tool_problems, uncertainties};

pub(crate) fn syntaxes() -> impl Strategy<Value = Syntax> {
    prop_oneof![
        Just(Syntax::Valid),
        (text(), option::of(any::<u32>()))
            .prop_map(|(message, line)| Syntax::Invalid { message, line: line.map(|line| line as usize) }),
        text().prop_map(|reason| Syntax::Unchecked { reason }),
    ]
}

fn shown_commands() -> impl Strategy<Value = ShownCommand> {
    (text(), texts()).prop_map(|(text, wrappers)| ShownCommand { text, wrappers })
}

fn command_previews() -> impl Strategy<Value = CommandPreview> {
    // A dry run without words would decode as absent.
    let dry_run = option::of(vec(text(), 1..4).prop_map(|argv| DryRun { argv }));
    let lists = (vec(shown_commands(), 0..3), vec(effects(), 0..3), vec(uncertainties(), 0..3));
    (text(), path(), maybe(), lists, dry_run, syntaxes()).prop_map(
        |(script, directory, description, (commands, effects, uncertainties), dry_run, syntax)| CommandPreview {
            script,
            directory,
            description,
            commands,
            effects,
            uncertain_spans: uncertainties
                .first()
                .map(|_| UncertainSpan { uncertainty: 0, start: 1, end: 3 })
                .into_iter()
                .collect(),
            uncertainties,
            dry_run,
            syntax,
        },
    )
}

fn shown_arguments() -> impl Strategy<Value = ShownArgument> {
    (text(), json(), maybe(), maybe(), any::<bool>()).prop_map(|(name, value, kind, description, required)| {
        ShownArgument { name, value, kind, description, required }
    })
}

fn delegations() -> impl Strategy<Value = DelegationPreview> {
    (maybe(), text(), texts(), maybe()).prop_map(|(agent, prompt, tools, description)| DelegationPreview {
        agent,
        prompt,
        tools,
        description,
    })
}

fn tool_previews() -> impl Strategy<Value = ToolPreview> {
    let guess = (option::of(proposals()), option::of(texts().prop_map(|keys| GuessedFrom { keys })));
    let lists = (vec(shown_arguments(), 0..3), vec(tool_problems(), 0..3));
    let access = select(vec![FileAccess::Reads, FileAccess::Writes]);
    (text(), lists, guess, option::of(delegations()), texts(), access, maybe()).prop_map(
        |(name, (arguments, problems), (changes, guessed_from), delegation, paths, access, command)| ToolPreview {
            name,
            arguments,
            problems,
            changes,
            guessed_from,
            delegation,
            paths,
            access,
            command,
        },
    )
}

pub(crate) fn subjects() -> impl Strategy<Value = Subject> {
    prop_oneof![
        1 => Just(Subject::Files),
        3 => (text(), path(), maybe(), command_previews()).prop_map(|(command, directory, description, preview)| {
            Subject::Command { command, directory, description, preview: Box::new(preview) }
        }),
        3 => (text(), json(), tool_previews())
            .prop_map(|(name, arguments, preview)| Subject::Tool { name, arguments, preview: Box::new(preview) }),
    ]
}
