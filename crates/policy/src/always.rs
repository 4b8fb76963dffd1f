//! What no configuration changes: a few things never happen, a few are always asked about.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use sayso_base::{OutsidePath, WsPath};

use crate::effects::Place;
use crate::effects::directory::normal;
use crate::ruling::Access;

/// What is built in about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltIn {
    /// It is never done.
    Never(&'static str, &'static str),
    /// It is always asked about.
    Asks(&'static str),
    /// It is asked about unless a rule says otherwise, whatever the default says.
    AsksByDefault(&'static str),
    /// It does nothing.
    Harmless(&'static str),
    /// It is allowed unless a rule says otherwise, whatever the default says.
    AllowsByDefault(&'static str),
}

/// Files that change what an agent may do, or what runs by itself, by the name that a person is shown. In lower case, and
/// anywhere in the workspace. A new tool's files are one line here.
const ASK: &[(&str, &[&str])] = &[
    ("sayso.toml", &["sayso.toml"]),
    (
        "settings of agents",
        &[
            ".claude/settings*.json",
            ".claude/hooks/**",
            ".claude/plugins/**",
            ".claude-plugin/**",
            ".codex/**",
            ".gemini/settings.json",
            ".gemini/extensions/**",
            ".gemini/hooks/**",
            ".github/copilot*",
            ".github/copilot/**",
            ".github/hooks/**",
            ".github/agents/**",
            ".copilot/**",
            "opencode.json",
            "opencode.jsonc",
            ".opencode/**",
            ".mcp.json",
            "mcp.json",
            ".cursor/**",
            ".windsurf/**",
            ".kiro/**",
            ".amazonq/**",
            ".qwen/**",
            ".continue/**",
            ".aider.conf.yml",
            ".goosehints",
        ],
    ),
    (
        "settings of editors that run programs",
        &[
            ".vscode/settings.json",
            ".vscode/tasks.json",
            ".vscode/launch.json",
            ".vscode/mcp.json",
            "*.code-workspace",
            ".zed/**",
            ".idea/runconfigurations/**",
            ".devcontainer/**",
            ".devcontainer.json",
        ],
    ),
    (
        "continuous integration",
        &[
            ".github/workflows/**",
            ".github/actions/**",
            ".github/dependabot.yml",
            ".gitlab-ci.yml",
            ".gitlab-ci.yaml",
            ".gitlab/ci/**",
            ".circleci/**",
            ".buildkite/**",
            ".ci/**",
            ".woodpecker/**",
            ".woodpecker.yml",
            ".forgejo/workflows/**",
            ".gitea/workflows/**",
            ".teamcity/**",
            ".tekton/**",
            ".drone.yml",
            ".travis.yml",
            ".cirrus.yml",
            "appveyor.yml",
            ".appveyor.yml",
            "jenkinsfile*",
            "azure-pipelines*.yml",
            "bitbucket-pipelines.yml",
            "cloudbuild.yaml",
            "buildspec.yml",
        ],
    ),
    (
        "hooks of git and of the shell",
        &[
            ".husky/**",
            ".githooks/**",
            ".gitconfig",
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            "lefthook*.yml",
            "lefthook*.yaml",
            "lefthook*.toml",
            ".lefthook/**",
            ".lintstagedrc*",
            ".envrc",
            ".mise.toml",
            "mise.toml",
        ],
    ),
];

const STATE: BuiltIn = BuiltIn::Never("sayso's own records", "sayso's own records are not to be touched");
const GIT: BuiltIn = BuiltIn::Never(
    "git's internals",
    "files of git itself are changed with git, never directly: hooks and settings in there run programs",
);
const OUTSIDE: BuiltIn = BuiltIn::AsksByDefault("outside the workspace");

/// Devices that keep nothing and give nothing away.
pub(super) const SINKS: [&str; 9] = [
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/tty",
    "/dev/full",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];

/// What no configuration changes, ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct Always {
    asks: GlobSet,
    /// The name of each pattern of `asks`.
    names: Vec<&'static str>,
    /// Paths of sayso in the workspace, folded.
    protected: Vec<String>,
    /// Paths of sayso elsewhere, folded, without the slash at their start.
    protected_outside: Vec<String>,
}

impl Always {
    pub(super) fn new(protected: &[WsPath]) -> Result<Self, globset::Error> {
        let mut asks = GlobSetBuilder::new();
        let mut names = Vec::new();
        for (name, patterns) in ASK {
            for pattern in *patterns {
                // Whoever renames or removes the directory changes what is in it.
                let directories = pattern.match_indices('/').map(|(at, _)| &pattern[..at]);
                for pattern in directories.chain([*pattern]) {
                    let glob = GlobBuilder::new(&format!("**/{pattern}")).literal_separator(true).build()?;
                    asks.add(glob);
                    names.push(*name);
                }
            }
        }
        Ok(Self {
            asks: asks.build()?,
            names,
            protected: protected.iter().map(|path| fold(path.as_str())).collect(),
            protected_outside: Vec::new(),
        })
    }

    /// Names sayso's own files elsewhere.
    pub(super) fn protect_outside(&mut self, paths: &[OutsidePath]) {
        self.protected_outside = paths.iter().map(|path| fold(path.below_root())).collect();
    }

    /// What is built in about doing something with a place.
    pub(super) fn about(&self, access: Access, place: &Place) -> Option<BuiltIn> {
        let path = match place {
            Place::Inside(path) => path,
            Place::Outside(text) if SINKS.contains(&text.as_str()) => {
                return Some(BuiltIn::Harmless("a device that keeps nothing"));
            }
            Place::Outside(text) => return Some(self.about_outside(access, text)),
            Place::Unknown(_) => return Some(BuiltIn::Asks("where it is cannot be known before")),
        };
        let folded = fold(path.as_str());
        if is_protected(&self.protected, access, &folded) {
            return Some(STATE);
        }
        if access != Access::Write {
            return None;
        }
        if is_in_git(&folded) {
            return Some(GIT);
        }
        if path.is_root() {
            return Some(BuiltIn::Asks("the whole workspace"));
        }
        self.always_asked(&folded)
    }

    /// What is built in about a path outside. One that goes up is compared as it reads, and no rule covers it.
    fn about_outside(&self, access: Access, text: &str) -> BuiltIn {
        let folded = fold(normal(text).trim_start_matches('/'));
        if is_protected(&self.protected_outside, access, &folded) {
            return STATE;
        }
        if access != Access::Write {
            return OUTSIDE;
        }
        if is_in_git(&folded) {
            return GIT;
        }
        self.always_asked(&folded).unwrap_or(OUTSIDE)
    }

    fn always_asked(&self, folded: &str) -> Option<BuiltIn> {
        let found = self.asks.matches(folded);
        found.first().map(|&at| BuiltIn::Asks(self.names[at]))
    }
}

/// Whether a folded path is one of sayso's own. Removing or renaming a directory above one writes it too.
fn is_protected(protected: &[String], access: Access, folded: &str) -> bool {
    let within = |path: &str, directory: &str| {
        directory.is_empty()
            || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    protected.iter().any(|own| within(folded, own) || (access == Access::Write && within(own, folded)))
}

fn is_in_git(folded: &str) -> bool {
    folded.split('/').any(|name| matches!(name, ".git" | "git~1"))
}

/// A path as a file system sees it that ignores case, and characters that have no width as well.
pub(super) fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    let ignored = |character: &char| matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    path.chars().filter(|character| !ignored(character)).flat_map(char::to_lowercase).collect()
}
