//! What a reviewer wants to know first about a change to a file.
//!
//! A diff shows everything and therefore hides what matters: the one line ending that changes, the assertion that goes, the key
//! in line 400. A [`Note`] says such a thing in one sentence. [`notes`] finds those that the two contents tell; what only the
//! file system or the way an edit was placed can tell (hard links, owners, loose matches) is handed in by who knows it.
//!
//! # Limits
//!
//! - Everything here is recognised by names and shapes, never by parsing a language. A note may be wrong, so a note never
//!   decides: it puts something before a person's eyes. That nothing was noted proves nothing.
//! - Only what changes is looked at: a secret that was there before is not news.
//! - The secret itself is in no note, since notes are recorded and shown (invariant 11).

mod checks;
mod find;
mod hidden;
mod place;
pub(crate) mod secret;
mod sentence;

use sayso_base::{FileMode, Severity, WsPath};
use serde::{Deserialize, Serialize};

pub use find::notes;

/// What a change does to a file besides changing its lines, or what the lines do that is easy to miss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// The form of the content changes: line ending, encoding, byte order mark, final newline, text or binary.
    Form {
        /// What changes.
        change: sayso_diff::Note,
    },
    /// The permissions change.
    Mode {
        /// Before.
        old: FileMode,
        /// After.
        new: FileMode,
    },
    /// A new file can be run.
    Executable,
    /// The path is a symbolic link, and what is written goes to where it leads. Handed in.
    Symlink {
        /// The file that is written.
        leads_to: String,
    },
    /// A symbolic link itself is made, removed or leads elsewhere.
    Link {
        /// Where it led, if there was one.
        old: Option<String>,
        /// Where it will lead, if there will be one.
        new: Option<String>,
    },
    /// The content is not text, so nobody can read the change.
    Binary,
    /// More than half of the old lines go.
    LargeRewrite {
        /// How many of a hundred.
        percent: u8,
    },
    /// A program makes this file.
    Generated {
        /// What tells so, as the end of a sentence.
        why: String,
    },
    /// It pins which versions of other people's code are used.
    LockFile,
    /// It runs on the project's own machines with the project's secrets.
    Ci,
    /// It runs whenever the project is built.
    Build,
    /// It says what someone may do, or makes programs run without being asked.
    Permission {
        /// Whose rights it is about.
        over: Rights,
    },
    /// There are fewer tests afterwards.
    TestsRemoved {
        /// How many fewer.
        count: usize,
    },
    /// There are fewer assertions in tests afterwards.
    AssertionsRemoved {
        /// How many fewer.
        count: usize,
    },
    /// More tests are skipped afterwards.
    TestsSkipped {
        /// How many more.
        count: usize,
    },
    /// An added line holds what looks like a credential.
    Secret {
        /// The 1-based line of the new content.
        line: usize,
        /// What it looks like.
        what: SecretKind,
    },
    /// An added line holds characters that cannot be seen or that change the order in which others are seen.
    Hidden {
        /// The 1-based line of the new content.
        line: usize,
        /// Each such character once, as `U+202E`.
        code_points: Vec<String>,
    },
    /// The name of the file itself holds such characters.
    HiddenName {
        /// Each such character once, as `U+202E`.
        code_points: Vec<String>,
    },
    /// The file has other names, which keep the old content. Handed in.
    HardLink {
        /// How many names it has, this one included.
        names: u64,
    },
    /// The owner or group changes. Handed in.
    Owner {
        /// Before.
        old: String,
        /// After.
        new: String,
    },
    /// Extended attributes or access control lists get lost. Handed in.
    Attributes {
        /// Their names.
        names: Vec<String>,
    },
    /// Another file's name differs in case only; some systems take them for one. Handed in.
    CaseTwin {
        /// The other file.
        other: WsPath,
    },
    /// The file's encoding has no way to write some of the characters. Handed in.
    Unrepresentable {
        /// Each of them once.
        characters: Vec<String>,
    },
    /// What an edit was to replace was found only by ignoring differences. Handed in.
    Loosened {
        /// The 1-based number of the hunk or edit.
        hunk: usize,
        /// What was ignored, such as "indentation".
        ignored: String,
    },
    /// A hunk was found elsewhere than it said. Handed in.
    Moved {
        /// The 1-based number of the hunk or edit.
        hunk: usize,
        /// How many lines further down; negative is further up.
        lines: isize,
    },
    /// What an edit was to replace is there more than once. Handed in.
    Ambiguous {
        /// The 1-based number of the hunk or edit.
        hunk: usize,
        /// In how many places.
        places: usize,
    },
    /// The file was changed meanwhile, and the result holds both changes. Handed in.
    Merged,
    /// Somebody else changed it after the agent did.
    ChangedSince,
    /// Lines that somebody changed after the agent proposed this would go. Handed in.
    Overwrites {
        /// Their 1-based numbers in the file as it is now; none where the file has no lines.
        lines: Vec<usize>,
    },
}

/// What a file of the kind [`Note::Permission`] has power over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    /// What an agent may do, which hooks it runs and which servers it talks to.
    Agent,
    /// What agents are told to do.
    Instructions,
    /// What sayso itself asks about.
    Gate,
    /// What git runs and where it goes: hooks, filters, submodules.
    Git,
    /// Who has to approve what.
    Owners,
    /// What an editor runs when the project is opened.
    Editor,
    /// Where packages come from and who publishes them.
    Packages,
    /// Who may log in, or act as another.
    Login,
    /// What a shell runs when the directory is entered, or a tool before each commit.
    Shell,
}

/// What a credential looks like. Its value is never kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// Of Amazon Web Services.
    AwsAccessKey,
    /// Of GitHub.
    GithubToken,
    /// Of GitLab.
    GitlabToken,
    /// Of Slack, or the address of a Slack hook.
    SlackToken,
    /// Of Stripe.
    StripeKey,
    /// Of OpenAI.
    OpenaiKey,
    /// Of Anthropic.
    AnthropicKey,
    /// Of Google: an API key, an OAuth token or a client secret.
    GoogleKey,
    /// Of a package registry: npm, PyPI, crates.io, RubyGems.
    RegistryToken,
    /// Of another service with a shape of its own.
    ServiceToken,
    /// A private key, whole.
    PrivateKey,
    /// A signed JSON web token.
    JsonWebToken,
    /// A password within an address.
    UrlPassword,
    /// What an HTTP header would carry.
    BearerToken,
    /// A long random text that is called a password, secret, token or key.
    Literal,
}

impl Note {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        use sayso_diff::Note::{FinalNewlineAdded, FinalNewlineRemoved};
        match self {
            Self::Secret { .. }
            | Self::Hidden { .. }
            | Self::HiddenName { .. }
            | Self::TestsRemoved { .. }
            | Self::AssertionsRemoved { .. }
            | Self::Unrepresentable { .. }
            | Self::Permission { .. }
            | Self::Overwrites { .. }
            | Self::Ci => Severity::Critical,
            Self::Form { change: FinalNewlineAdded | FinalNewlineRemoved } | Self::Moved { .. } => Severity::Info,
            Self::Form { .. }
            | Self::Mode { .. }
            | Self::Executable
            | Self::Symlink { .. }
            | Self::Link { .. }
            | Self::Binary
            | Self::LargeRewrite { .. }
            | Self::Generated { .. }
            | Self::LockFile
            | Self::Build
            | Self::TestsSkipped { .. }
            | Self::HardLink { .. }
            | Self::Owner { .. }
            | Self::Attributes { .. }
            | Self::CaseTwin { .. }
            | Self::Loosened { .. }
            | Self::Ambiguous { .. }
            | Self::Merged
            | Self::ChangedSince => Severity::Warning,
        }
    }
}
