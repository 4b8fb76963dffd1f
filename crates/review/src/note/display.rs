//! Notes as sentences in lower case without a full stop, for use in a list or after a colon.

use std::fmt::{self, Display, Formatter};

use super::{Note, Rights, SecretKind};

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { change } => change.fmt(f),
            Self::Mode { old, new } => {
                write!(f, "file mode changes from {old} to {new}")?;
                match (old.is_executable(), new.is_executable()) {
                    (false, true) => f.write_str(", so it can be run"),
                    (true, false) => f.write_str(", so it can no longer be run"),
                    _ => Ok(()),
                }
            }
            Self::Symlink { leads_to } => {
                write!(f, "a symbolic link: writes go to {}", quoted(leads_to))
            }
            Self::Link { old: None, new: None } => f.write_str("a symbolic link"),
            Self::Link { old: None, new: Some(new) } => write!(f, "becomes a symbolic link to {}", quoted(new)),
            Self::Link { old: Some(old), new: None } => write!(f, "no longer a symbolic link to {}", quoted(old)),
            Self::Link { old: Some(old), new: Some(new) } => {
                write!(f, "symbolic link leads to {} instead of {}", quoted(new), quoted(old))
            }
            Self::Binary => f.write_str("binary content: the change cannot be read as lines"),
            Self::LargeRewrite { percent } => write!(f, "{percent} % of the old lines are removed"),
            Self::Generated { reason } => write!(f, "looks generated ({reason}): manual edits may be lost"),
            Self::LockFile => f.write_str("a lock file: it decides which versions of other people's code are used"),
            Self::Ci => f.write_str("a CI file: it runs with the project's rights"),
            Self::Build => f.write_str("a build file: it runs with every build"),
            Self::Permission { over } => over.fmt(f),
            Self::TestsRemoved { count } => write!(f, "{} removed", counted(*count, "test")),
            Self::AssertionsRemoved { count } => write!(f, "{} removed", counted(*count, "assertion")),
            Self::TestsSkipped { count } => write!(f, "{} skipped or narrowed", counted(*count, "test")),
            Self::Secret { line, kind } => write!(f, "line {line} adds what looks like {kind}"),
            Self::Hidden { line, code_points } => {
                write!(f, "line {line} adds characters that cannot be seen: {}", code_points.join(", "))
            }
            Self::HiddenName { code_points } => {
                write!(f, "its name holds characters that cannot be seen: {}", code_points.join(", "))
            }
            Self::HardLink { names } => {
                write!(f, "one of {names} names of the same file: the others keep the old content")
            }
            Self::Owner { old, new } => write!(f, "owner changes from {} to {}", quoted(old), quoted(new)),
            Self::Attributes { names } => write!(f, "extended attributes are lost: {}", list(names)),
            Self::CaseTwin { other } => write!(f, "differs only in case from {}", quoted(other.as_str())),
            Self::Unrepresentable { characters } => {
                write!(f, "the encoding of the file cannot hold {}", list(characters))
            }
            Self::Loosened { hunk, ignored } => {
                write!(f, "hunk {hunk} fits only if {} is ignored", ignored.escape_debug())
            }
            Self::Moved { hunk, lines } => {
                let direction = if *lines < 0 { "up" } else { "down" };
                write!(f, "hunk {hunk} was found {} further {direction}", counted(lines.unsigned_abs(), "line"))
            }
            Self::Ambiguous { hunk, places } => {
                write!(f, "hunk {hunk} fits in {}; the first was taken", counted(*places, "place"))
            }
            Self::Executable => f.write_str("a new file that can be run"),
            Self::Merged => f.write_str("changed meanwhile; the result holds both changes"),
            Self::ChangedSince => {
                f.write_str("changed by another party since; lines that both changed are shown together")
            }
            Self::UnsavedText { editor, applies: true } => {
                write!(f, "compared with the unsaved text in {}, which is saved with the change", quoted(editor))
            }
            Self::UnsavedText { editor, applies: false } => {
                write!(f, "compared with the unsaved text in {}: save it there before you approve", quoted(editor))
            }
            Self::UnsavedTextIgnored { editor, reason } => {
                write!(
                    f,
                    "{} has unsaved text that this change is not based on: {}",
                    quoted(editor),
                    reason.escape_debug()
                )
            }
            Self::Overwrites { lines } => match &lines[..] {
                [] => f.write_str("edited after this was proposed: that edit would be lost"),
                [line] => write!(f, "line {line} was edited after this was proposed, and would be lost"),
                lines => write!(f, "lines {} were edited after this was proposed, and would be lost", ranges(lines)),
            },
        }
    }
}

impl Display for Rights {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "an agent's own settings: they decide what agents may do and run",
            Self::Instructions => "instructions to agents: agents will follow them",
            Self::Gate => "sayso's own configuration: it decides what is asked about",
            Self::Git => "git's own settings: they decide what git runs and fetches",
            Self::Owners => "code owners: they decide who has to approve what",
            Self::Editor => "an editor's settings: they can run programs when the project is opened",
            Self::Packages => "a package manager's settings: they decide where other people's code comes from",
            Self::Login => "rights to log in or to impersonate",
            Self::Shell => "run without being asked: when the directory is entered or before a commit",
        })
    }
}

impl Display for SecretKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AwsAccessKey => "an AWS access key",
            Self::GithubToken => "a GitHub token",
            Self::GitlabToken => "a GitLab token",
            Self::SlackToken => "a Slack token",
            Self::StripeKey => "a Stripe key",
            Self::OpenaiKey => "an OpenAI key",
            Self::AnthropicKey => "an Anthropic key",
            Self::GoogleKey => "a Google key",
            Self::RegistryToken => "a token of a package registry",
            Self::ServiceToken => "a token of a service",
            Self::PrivateKey => "a private key",
            Self::JsonWebToken => "a JSON web token",
            Self::UrlPassword => "a password in an address",
            Self::BearerToken => "a bearer token",
            Self::Literal => "a secret written out",
        })
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Quotes and escapes outside text, so that it cannot break the line.
fn quoted(text: &str) -> String {
    format!("`{}`", text.escape_debug())
}

/// Formats ascending line numbers with ranges: `3–5, 9`.
fn ranges(lines: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &line in lines {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => runs.push((line, line)),
        }
    }
    let run =
        |(first, last): (usize, usize)| if first == last { first.to_string() } else { format!("{first}–{last}") };
    runs.into_iter().map(run).collect::<Vec<_>>().join(", ")
}

fn list(texts: &[String]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use sayso_diff::{Encoding, Kind, LineEnding, Note as FormNote};

    use super::super::*;

    fn check(note: &Note, severity: Severity, sentence: &str) {
        assert_eq!(note.to_string(), sentence);
        assert_eq!(note.severity(), severity, "{sentence}");
        let written = serde_json::to_string(note).unwrap();
        assert_eq!(&serde_json::from_str::<Note>(&written).unwrap(), note, "{written}");
    }

    #[test]
    fn notes_have_sentence_severity_and_serialization() {
        use Severity::{Critical, Info, Warning};
        let form = |change| Note::Form { change };
        let path = |text: &str| WsPath::parse(text).unwrap();
        let lf = form(FormNote::LineEnding { old: LineEnding::Crlf, new: LineEnding::Lf });
        check(&lf, Warning, "line ending changes from CRLF to LF");
        let encoding = form(FormNote::Encoding { old: Encoding::Utf16Le, new: Encoding::Utf8 });
        check(&encoding, Warning, "encoding changes from UTF-16 LE to UTF-8");
        let kind = form(FormNote::Kind { old: Kind::Text, new: Kind::Binary });
        check(&kind, Warning, "content changes from text to binary");
        check(&form(FormNote::BomAdded), Warning, "byte order mark added");
        check(&form(FormNote::FinalNewlineRemoved), Info, "final newline removed");
        check(&form(FormNote::FinalNewlineAdded), Info, "final newline added");
        let mode = |old, new| Note::Mode { old: FileMode::new(old), new: FileMode::new(new) };
        check(&mode(0o644, 0o755), Warning, "file mode changes from 0644 to 0755, so it can be run");
        check(&mode(0o755, 0o644), Warning, "file mode changes from 0755 to 0644, so it can no longer be run");
        check(&mode(0o644, 0o600), Warning, "file mode changes from 0644 to 0600");
        let symlink = Note::Symlink { leads_to: "a/b".to_owned() };
        check(&symlink, Warning, "a symbolic link: writes go to `a/b`");
        let link = |old: Option<&str>, new: Option<&str>| Note::Link {
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        };
        check(&link(None, Some("b")), Warning, "becomes a symbolic link to `b`");
        check(&link(Some("a"), None), Warning, "no longer a symbolic link to `a`");
        check(&link(Some("a"), Some("b\n")), Warning, "symbolic link leads to `b\\n` instead of `a`");
        check(&Note::Binary, Warning, "binary content: the change cannot be read as lines");
        check(&Note::LargeRewrite { percent: 80 }, Warning, "80 % of the old lines are removed");
        let generated = Note::Generated { reason: "it is in dist/".to_owned() };
        check(&generated, Warning, "looks generated (it is in dist/): manual edits may be lost");
        check(&Note::LockFile, Warning, "a lock file: it decides which versions of other people's code are used");
        check(&Note::Ci, Critical, "a CI file: it runs with the project's rights");
        check(&Note::Build, Warning, "a build file: it runs with every build");
        let instructions = Note::Permission { over: Rights::Instructions };
        check(&instructions, Critical, "instructions to agents: agents will follow them");
        check(&Note::TestsRemoved { count: 1 }, Critical, "1 test removed");
        check(&Note::AssertionsRemoved { count: 3 }, Critical, "3 assertions removed");
        check(&Note::TestsSkipped { count: 2 }, Warning, "2 tests skipped or narrowed");
        let secret = Note::Secret { line: 14, kind: SecretKind::AwsAccessKey };
        check(&secret, Critical, "line 14 adds what looks like an AWS access key");
        let code_points = vec!["U+202E".to_owned(), "U+200B".to_owned()];
        let hidden = Note::Hidden { line: 2, code_points: code_points.clone() };
        check(&hidden, Critical, "line 2 adds characters that cannot be seen: U+202E, U+200B");
        let name = Note::HiddenName { code_points };
        check(&name, Critical, "its name holds characters that cannot be seen: U+202E, U+200B");
        let hard_link = Note::HardLink { names: 3 };
        check(&hard_link, Warning, "one of 3 names of the same file: the others keep the old content");
        let owner = Note::Owner { old: "root".to_owned(), new: "me".to_owned() };
        check(&owner, Warning, "owner changes from `root` to `me`");
        let attributes = Note::Attributes { names: vec!["user.a".to_owned(), "user.b".to_owned()] };
        check(&attributes, Warning, "extended attributes are lost: `user.a`, `user.b`");
        check(&Note::CaseTwin { other: path("Readme") }, Warning, "differs only in case from `Readme`");
        let characters = vec!["→".to_owned(), "\u{202E}".to_owned()];
        let unrepresentable = Note::Unrepresentable { characters };
        check(&unrepresentable, Critical, "the encoding of the file cannot hold `→`, `\\u{202e}`");
        let loosened = Note::Loosened { hunk: 2, ignored: "indentation".to_owned() };
        check(&loosened, Warning, "hunk 2 fits only if indentation is ignored");
        check(&Note::Moved { hunk: 1, lines: -1 }, Info, "hunk 1 was found 1 line further up");
        check(&Note::Moved { hunk: 1, lines: 7 }, Info, "hunk 1 was found 7 lines further down");
        check(&Note::Ambiguous { hunk: 1, places: 3 }, Warning, "hunk 1 fits in 3 places; the first was taken");
        check(&Note::Executable, Warning, "a new file that can be run");
        check(&Note::Merged, Warning, "changed meanwhile; the result holds both changes");
        check(
            &Note::ChangedSince,
            Warning,
            "changed by another party since; lines that both changed are shown together",
        );
        let unsaved = |applies| Note::UnsavedText { editor: "VS Code".to_owned(), applies };
        check(&unsaved(true), Warning, "compared with the unsaved text in `VS Code`, which is saved with the change");
        check(
            &unsaved(false),
            Warning,
            "compared with the unsaved text in `VS Code`: save it there before you approve",
        );
        let ignored =
            Note::UnsavedTextIgnored { editor: "VS Code".to_owned(), reason: "it does not answer".to_owned() };
        check(&ignored, Warning, "`VS Code` has unsaved text that this change is not based on: it does not answer");
        let overwrites = |lines: &[usize]| Note::Overwrites { lines: lines.to_vec() };
        check(&overwrites(&[]), Critical, "edited after this was proposed: that edit would be lost");
        check(&overwrites(&[4]), Critical, "line 4 was edited after this was proposed, and would be lost");
        let lines = "lines 3–5, 9 were edited after this was proposed, and would be lost";
        check(&overwrites(&[3, 4, 5, 9]), Critical, lines);
    }

    #[test]
    fn severities_are_ordered() {
        assert!(Severity::Info < Severity::Warning && Severity::Warning < Severity::Critical);
        assert_eq!(Severity::Critical.to_string(), "critical");
    }
}
