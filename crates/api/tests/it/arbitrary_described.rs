//! Strategies for notes, problems, effects and uncertainties.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::{
    Conflict, Effect, FileMode, Note, Obstacle, PathTarget, Problem, Rights, SecretKind, ToolProblem, Uncertainty,
};
use serde_json::{Value, json};

use crate::arbitrary::{maybe, path, text, texts};

/// Text formats in their serialised form.
fn forms() -> impl Strategy<Value = Note> {
    let ends = select(vec!["lf", "crlf", "mixed", "none"]);
    let encodings = select(vec!["utf8", "utf16-le", "utf16-be", "latin1"]);
    let form = prop_oneof![
        Just(json!({ "note": "kind", "old": "text", "new": "binary" })),
        (encodings.clone(), encodings).prop_map(|(old, new)| json!({ "note": "encoding", "old": old, "new": new })),
        (ends.clone(), ends).prop_map(|(old, new)| json!({ "note": "line-ending", "old": old, "new": new })),
        select(vec!["bom-added", "bom-removed", "final-newline-added", "final-newline-removed"])
            .prop_map(|note| json!({ "note": note })),
    ];
    form.prop_map(|change: Value| serde_json::from_value(json!({ "note": "form", "change": change })).unwrap())
}

fn rights() -> impl Strategy<Value = Rights> {
    select(vec![
        Rights::Agent,
        Rights::Instructions,
        Rights::Gate,
        Rights::Git,
        Rights::Owners,
        Rights::Editor,
        Rights::Packages,
        Rights::Login,
        Rights::Shell,
    ])
}

fn secrets() -> impl Strategy<Value = SecretKind> {
    select(vec![
        SecretKind::AwsAccessKey,
        SecretKind::GithubToken,
        SecretKind::GitlabToken,
        SecretKind::SlackToken,
        SecretKind::StripeKey,
        SecretKind::OpenaiKey,
        SecretKind::AnthropicKey,
        SecretKind::GoogleKey,
        SecretKind::RegistryToken,
        SecretKind::ServiceToken,
        SecretKind::PrivateKey,
        SecretKind::JsonWebToken,
        SecretKind::UrlPassword,
        SecretKind::BearerToken,
        SecretKind::Literal,
    ])
}

pub(crate) fn mode() -> impl Strategy<Value = FileMode> {
    any::<u32>().prop_map(FileMode::new)
}

pub(crate) fn notes() -> impl Strategy<Value = Note> {
    let number = any::<usize>;
    prop_oneof![
        forms().boxed(),
        (mode(), mode()).prop_map(|(old, new)| Note::Mode { old, new }).boxed(),
        select(vec![
            Note::Executable,
            Note::Binary,
            Note::LockFile,
            Note::Ci,
            Note::Build,
            Note::Merged,
            Note::ChangedSince
        ])
        .boxed(),
        text().prop_map(|leads_to| Note::Symlink { leads_to }).boxed(),
        (maybe(), maybe()).prop_map(|(old, new)| Note::Link { old, new }).boxed(),
        any::<u8>().prop_map(|percent| Note::LargeRewrite { percent }).boxed(),
        (text(), any::<bool>()).prop_map(|(editor, applies)| Note::UnsavedText { editor, applies }).boxed(),
        (text(), text()).prop_map(|(editor, reason)| Note::UnsavedTextIgnored { editor, reason }).boxed(),
        vec(number(), 0..3).prop_map(|lines| Note::Overwrites { lines }).boxed(),
        text().prop_map(|why| Note::Generated { reason: why }).boxed(),
        rights().prop_map(|over| Note::Permission { over }).boxed(),
        number().prop_map(|count| Note::TestsRemoved { count }).boxed(),
        number().prop_map(|count| Note::AssertionsRemoved { count }).boxed(),
        number().prop_map(|count| Note::TestsSkipped { count }).boxed(),
        (number(), secrets()).prop_map(|(line, what)| Note::Secret { line, kind: what }).boxed(),
        (number(), texts()).prop_map(|(line, code_points)| Note::Hidden { line, code_points }).boxed(),
        texts().prop_map(|code_points| Note::HiddenName { code_points }).boxed(),
        any::<u64>().prop_map(|names| Note::HardLink { names }).boxed(),
        (text(), text()).prop_map(|(old, new)| Note::Owner { old, new }).boxed(),
        texts().prop_map(|names| Note::Attributes { names }).boxed(),
        path().prop_map(|other| Note::CaseTwin { other }).boxed(),
        texts().prop_map(|characters| Note::Unrepresentable { characters }).boxed(),
        (number(), text()).prop_map(|(hunk, ignored)| Note::Loosened { hunk, ignored }).boxed(),
        (number(), any::<isize>()).prop_map(|(hunk, lines)| Note::Moved { hunk, lines }).boxed(),
        (number(), number()).prop_map(|(hunk, places)| Note::Ambiguous { hunk, places }).boxed(),
    ]
}

fn obstacles() -> impl Strategy<Value = Obstacle> {
    prop_oneof![
        select(vec![Obstacle::Directory, Obstacle::Special, Obstacle::NotADirectory, Obstacle::Protected]),
        any::<u64>().prop_map(|limit| Obstacle::TooLarge { limit }),
        text().prop_map(|reason| Obstacle::Outside { reason }),
        text().prop_map(|reason| Obstacle::ReadOnly { reason }),
        text().prop_map(|reason| Obstacle::Unreadable { reason }),
    ]
}

fn conflicts() -> impl Strategy<Value = Conflict> {
    (any::<usize>(), text(), text(), text()).prop_map(|(line, base, current, proposed)| Conflict {
        line,
        base,
        current,
        proposed,
    })
}

pub(crate) fn problems() -> impl Strategy<Value = Problem> {
    let plain = vec![Problem::Exists, Problem::Missing, Problem::NoText, Problem::NotText, Problem::ContentGone];
    prop_oneof![
        obstacles().prop_map(Problem::Blocked),
        select(plain),
        (text(), option::of(any::<usize>()))
            .prop_map(|(first_line, but_for_spaces)| Problem::TextNotFound { first_line, but_for_spaces }),
        vec(any::<usize>(), 0..7).prop_map(|lines| Problem::TextNotUnique { lines }),
        texts().prop_map(|reasons| Problem::PatchRejected { reasons }),
        vec(conflicts(), 0..3).prop_map(|conflicts| Problem::Conflicts { conflicts }),
        any::<u64>().prop_map(|change| Problem::ChangedSince { change }),
        path().prop_map(|below| Problem::IsAlsoADirectory { below }),
    ]
}

fn places() -> impl Strategy<Value = PathTarget> {
    prop_oneof![
        path().prop_map(PathTarget::Inside),
        text().prop_map(PathTarget::Outside),
        text().prop_map(PathTarget::Unknown)
    ]
}

pub(crate) fn effects() -> impl Strategy<Value = Effect> {
    prop_oneof![
        places().prop_map(|path| Effect::Writes { path }),
        (places(), any::<bool>()).prop_map(|(path, recursive)| Effect::Deletes { path, recursive }),
        text().prop_map(|what| Effect::Fetches { what }),
        select(vec![Effect::RunsFetched, Effect::Kills]),
        (text(), text()).prop_map(|(path, reason)| Effect::NotCaptured { path, reason }),
        text().prop_map(|program| Effect::Elevates { program }),
        text().prop_map(|interpreter| Effect::RunsCode { interpreter }),
        places().prop_map(|path| Effect::ChangesPermissions { path }),
        text().prop_map(|command| Effect::RewritesHistory { command }),
        text().prop_map(|path| Effect::LeavesWorkspace { path }),
        text().prop_map(|program| Effect::System { program }),
    ]
}

pub(crate) fn uncertainties() -> impl Strategy<Value = Uncertainty> {
    prop_oneof![
        select(vec![
            Uncertainty::TooLong,
            Uncertainty::TooDeep,
            Uncertainty::TooMany,
            Uncertainty::CarriageReturn,
            Uncertainty::Nul
        ]),
        text().prop_map(|opening| Uncertainty::Unterminated { opening }),
        text().prop_map(|token| Uncertainty::Unexpected { token }),
        text().prop_map(|word| Uncertainty::UnknownProgram { word }),
        text().prop_map(|through| Uncertainty::UnknownScript { through }),
        text().prop_map(|through| Uncertainty::UnknownArguments { through }),
        text().prop_map(|name| Uncertainty::Redefined { name }),
        text().prop_map(|name| Uncertainty::ChangesLookup { name }),
        (text(), text()).prop_map(|(part, reason)| Uncertainty::Unsupported { part, reason }),
    ]
}

pub(crate) fn tool_problems() -> impl Strategy<Value = ToolProblem> {
    prop_oneof![
        Just(ToolProblem::NotAnObject),
        text().prop_map(|name| ToolProblem::Missing { name }),
        text().prop_map(|name| ToolProblem::Unknown { name }),
        (text(), text(), text()).prop_map(|(name, expected, found)| ToolProblem::WrongType { name, expected, found }),
        text().prop_map(|name| ToolProblem::NotListed { name }),
    ]
}
