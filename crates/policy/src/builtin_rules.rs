//! Built-in rules, which no configuration changes: actions that are always denied, and actions that are always asked about.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use sayso_base::{OutsidePath, WsPath};

use crate::decision::Access;
use crate::effects::PathTarget;
use crate::effects::directory::normalize;

/// A built-in rule for one path or command. The text is its display name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltinRule {
    /// Denies, with the reason for the agent as the second text.
    Deny(&'static str, &'static str),
    /// Asks in spite of allow rules.
    AlwaysAsk(&'static str),
    /// Asks unless a rule matches; overrides a milder default.
    AskByDefault(&'static str),
    /// Allows, because the action has no effect.
    Harmless(&'static str),
    /// Allows unless a rule matches; overrides the default.
    AllowByDefault(&'static str),
}

/// Files that configure an agent's permissions or run code automatically, with the display name of each group.
///
/// Patterns are lower case and match at any depth of the workspace. Support for a new tool is one line here.
const SENSITIVE_FILES: &[(&str, &[&str])] = &[
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

const SAYSO_FILES: BuiltinRule = BuiltinRule::Deny("sayso's own records", "sayso's own records must not be changed");
const GIT_INTERNALS: BuiltinRule = BuiltinRule::Deny(
    "git's internals",
    "change git's own files with git only: hooks and settings in them run programs",
);
const OUTSIDE: BuiltinRule = BuiltinRule::AskByDefault("outside the workspace");

/// Devices without stored data: writing discards, reading reveals no file.
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

/// Compiled form of [`SENSITIVE_FILES`]. It is compiled at the first write: most commands of `sayso call` write nothing, and the
/// patterns cost a third of its start.
static SENSITIVE_GLOBS: LazyLock<Result<SensitiveGlobs, globset::Error>> = LazyLock::new(SensitiveGlobs::new);

struct SensitiveGlobs {
    set: GlobSet,
    /// Display name of each pattern of `set`.
    names: Vec<&'static str>,
}

impl SensitiveGlobs {
    fn new() -> Result<Self, globset::Error> {
        let mut globs = GlobSetBuilder::new();
        let mut names = Vec::new();
        for (name, patterns) in SENSITIVE_FILES {
            for pattern in *patterns {
                // Renaming or removing a parent directory changes the file too, so each parent is a pattern.
                let directories = pattern.match_indices('/').map(|(at, _)| &pattern[..at]);
                for pattern in directories.chain([*pattern]) {
                    let glob = GlobBuilder::new(&format!("**/{pattern}")).literal_separator(true).build()?;
                    globs.add(glob);
                    names.push(*name);
                }
            }
        }
        Ok(Self { set: globs.build()?, names })
    }
}

/// The built-in rules with the paths that belong to sayso.
#[derive(Clone, Debug)]
pub(super) struct BuiltinRules {
    /// sayso's own paths in the workspace, case-folded.
    protected: Vec<String>,
    /// sayso's own paths elsewhere, case-folded, without the leading slash.
    protected_outside: Vec<String>,
}

impl BuiltinRules {
    pub(super) fn new(protected: &[WsPath]) -> Self {
        Self {
            protected: protected.iter().map(|path| fold_case(path.as_str())).collect(),
            protected_outside: Vec::new(),
        }
    }

    /// Sets sayso's own paths outside the workspace.
    pub(super) fn protect_outside(&mut self, paths: &[OutsidePath]) {
        self.protected_outside = paths.iter().map(|path| fold_case(path.below_root())).collect();
    }

    /// Returns the built-in rule for an access to a path.
    pub(super) fn rule_for(&self, access: Access, target: &PathTarget) -> Option<BuiltinRule> {
        let path = match target {
            PathTarget::Inside(path) => path,
            PathTarget::Outside(text) if SINKS.contains(&text.as_str()) => {
                return Some(BuiltinRule::Harmless("a device without stored data"));
            }
            PathTarget::Outside(text) => return Some(self.rule_for_outside(access, text)),
            PathTarget::Unknown(_) => return Some(BuiltinRule::AlwaysAsk("the path is not known before it runs")),
        };
        let folded = fold_case(path.as_str());
        if is_protected(&self.protected, access, &folded) {
            return Some(SAYSO_FILES);
        }
        if access != Access::Write {
            return None;
        }
        if is_in_git(&folded) {
            return Some(GIT_INTERNALS);
        }
        if path.is_root() {
            return Some(BuiltinRule::AlwaysAsk("the whole workspace"));
        }
        sensitive_file_rule(&folded)
    }

    /// Returns the built-in rule for a path outside the workspace. Comparison resolves `..` textually.
    fn rule_for_outside(&self, access: Access, text: &str) -> BuiltinRule {
        let folded = fold_case(normalize(text).trim_start_matches('/'));
        if is_protected(&self.protected_outside, access, &folded) {
            return SAYSO_FILES;
        }
        if access != Access::Write {
            return OUTSIDE;
        }
        if is_in_git(&folded) {
            return GIT_INTERNALS;
        }
        sensitive_file_rule(&folded).unwrap_or(OUTSIDE)
    }
}

fn sensitive_file_rule(folded: &str) -> Option<BuiltinRule> {
    match &*SENSITIVE_GLOBS {
        Ok(globs) => globs.set.matches(folded).first().map(|&at| BuiltinRule::AlwaysAsk(globs.names[at])),
        // Without the patterns every file may be one of them.
        Err(_) => Some(BuiltinRule::AlwaysAsk("the patterns of sensitive files do not compile")),
    }
}

/// `true` for sayso's own paths. A write to a parent directory counts, because removing or renaming it changes them.
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

/// Folds a path as a case-insensitive file system does, without zero-width characters.
pub(super) fn fold_case(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    let ignored = |character: &char| matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    path.chars().filter(|character| !ignored(character)).flat_map(char::to_lowercase).collect()
}
