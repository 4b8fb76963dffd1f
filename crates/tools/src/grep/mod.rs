//! `Grep`: searches the content of files.

mod search;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::glob::{MAX_WALKED_FILES, below, matcher};
use crate::output::ToolOutput;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::Step;

use search::{FileMatches, Limits, Skipped};

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A regular expression in Rust's syntax. It is matched within single lines.
    pattern: String,
    /// The file or directory to search; by default the workspace.
    path: Option<String>,
    /// Only files that match this pattern, such as `*.rs` or `src/**/*.{ts,tsx}`.
    include: Option<String>,
    /// Lines shown before and after each match, up to 10.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10))]
    context: usize,
    /// Ignores upper and lower case.
    #[serde(default)]
    ignore_case: bool,
    /// Takes the pattern as plain text.
    #[serde(default)]
    literal: bool,
    /// The form of the result.
    #[serde(default)]
    output: OutputForm,
    /// Maximum number of matching lines, up to 1,000; by default 200.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OutputForm {
    /// Matching lines with their numbers.
    #[default]
    Lines,
    /// Names of the files with matches.
    Files,
    /// Number of matching lines by file.
    Count,
}

const MAX_CONTEXT_LINES: usize = 10;
const DEFAULT_LIMIT: usize = 200;
const MAX_LIMIT: usize = 1_000;
/// Maximum memory of a compiled pattern, in bytes. Nested repetitions would need gigabytes.
const MAX_PATTERN_MEMORY: usize = 4 << 20;
/// Maximum size of all searched files, in bytes.
const MAX_SEARCHED_BYTES: u64 = 1 << 30;
/// Maximum size of the result in bytes.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

impl Tool for Grep {
    fn name(&self) -> &'static str {
        "Grep"
    }

    fn description(&self) -> &'static str {
        "Searches the content of text files with a regular expression. Omits ignored, binary and very large files."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let (form, found) = grep(arguments, context)?;
        Ok(Step::Done(ToolOutput::text(found.for_model(form))))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let (_, found) = grep(arguments, context)?;
        Ok(json!({
            "files": found.files,
            "matches": found.matches,
            "truncated": found.is_truncated,
            "skipped": found.skipped,
        }))
    }
}

/// Result of a search.
#[derive(Debug, Default)]
struct SearchResult {
    /// Files with matches, sorted by path.
    files: Vec<FileMatches>,
    /// Number of matching lines in `files`.
    matches: usize,
    /// `true` if a limit ended the search.
    is_truncated: bool,
    skipped: Skipped,
}

fn grep(arguments: &Value, context: &Context<'_>) -> Result<(OutputForm, SearchResult), ToolError> {
    let arguments: Arguments = arguments::parse(arguments)?;
    if arguments.context > MAX_CONTEXT_LINES {
        return Err(invalid(format!("`context` is {}; it can be 0 to {MAX_CONTEXT_LINES}", arguments.context)));
    }
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(invalid(format!("`limit` is {limit}; it can be 1 to {MAX_LIMIT}")));
    }
    let regex = compile(&arguments)?;
    let include = arguments.include.as_deref().map(include_matcher).transpose()?;
    let start = context.locate(arguments.path.as_deref().unwrap_or("."))?;
    let (files, root, mut is_truncated) = match context.walk(&start, MAX_WALKED_FILES) {
        Ok(walk) => (walk.files, walk.root, walk.truncated),
        // A file is searched by itself, also if it is ignored. A file that is not readable has the error of reading it.
        Err(_) if context.is_readable(&start) && context.directory(start.as_str()).is_err() && !start.is_root() => {
            context.read(&start)?;
            (vec![start.clone()], start.parent().unwrap_or_else(|| start.clone()), false)
        }
        Err(error) => return Err(error),
    };
    let mut found = SearchResult::default();
    let mut searched: u64 = 0;
    let limits = |found: &SearchResult| Limits { lines: limit - found.matches, context: arguments.context };
    for path in files {
        let is_included = include.as_ref().is_none_or(|include| include.is_match(below(&path, &root)));
        if !is_included {
            continue;
        }
        if found.matches == limit || searched > MAX_SEARCHED_BYTES {
            is_truncated = true;
            break;
        }
        // A file that vanished or became unreadable meanwhile is skipped.
        let Ok(file) = context.read(&path) else {
            found.skipped.unreadable += 1;
            continue;
        };
        searched += file.bytes.len() as u64;
        match search::search(path, &file.bytes, &regex, limits(&found)) {
            None => found.skipped.binary += 1,
            Some(matches) => {
                is_truncated |= matches.is_truncated;
                found.matches += matches.count;
                if matches.count > 0 {
                    found.files.push(matches);
                }
            }
        }
    }
    found.is_truncated = is_truncated;
    Ok((arguments.output, found))
}

fn compile(arguments: &Arguments) -> Result<Regex, ToolError> {
    let pattern = &arguments.pattern;
    if pattern.is_empty() {
        return Err(invalid("`pattern` is empty: give a text or a regular expression"));
    }
    let escaped;
    let text = if arguments.literal {
        escaped = regex_syntax::escape(pattern);
        &escaped
    } else {
        pattern
    };
    let config = Regex::config()
        .nfa_size_limit(Some(MAX_PATTERN_MEMORY))
        .onepass_size_limit(Some(MAX_PATTERN_MEMORY))
        .hybrid_cache_capacity(MAX_PATTERN_MEMORY);
    let syntax = syntax::Config::new().case_insensitive(arguments.ignore_case).nest_limit(100);
    Regex::builder().configure(config).syntax(syntax).build(text).map_err(|error| {
        let reason = match (error.syntax_error(), error.size_limit()) {
            (Some(syntax), _) => syntax.to_string().lines().last().unwrap_or_default().trim().to_owned(),
            (None, Some(_)) => "it is too large when compiled".to_owned(),
            (None, None) => error.to_string(),
        };
        invalid(format!("cannot compile the pattern `{pattern}`: {reason}"))
            .hint("escape special characters with a backslash, or set `literal`")
    })
}

/// Compiles a pattern of names. Without a slash it matches at any depth.
fn include_matcher(pattern: &str) -> Result<globset::GlobMatcher, ToolError> {
    if pattern.contains('/') { matcher(pattern) } else { matcher(&format!("**/{pattern}")) }
}

impl SearchResult {
    fn for_model(&self, form: OutputForm) -> String {
        let mut text = String::new();
        let mut is_cut = false;
        for file in &self.files {
            let shown = match form {
                OutputForm::Lines => file.lines_text(),
                OutputForm::Files => format!("{}\n", file.path),
                OutputForm::Count => format!("{}: {}\n", file.path, file.count),
            };
            if text.len() + shown.len() > MAX_SHOWN_BYTES {
                let end = shown.floor_char_boundary(MAX_SHOWN_BYTES - text.len());
                let end = shown[..end].rfind('\n').map_or(0, |end| end + 1);
                text.push_str(&shown[..end]);
                is_cut = true;
                break;
            }
            text.push_str(&shown);
        }
        if self.files.is_empty() {
            text.push_str("(no line matches)\n");
        }
        if self.is_truncated || is_cut {
            text.push_str("[there may be more matches; narrow the pattern, the path or `include`]\n");
        }
        let Skipped { binary, unreadable } = self.skipped;
        if unreadable > 0 {
            text.push_str(&format!("[{unreadable} files were not searched: too large or not readable]\n"));
        }
        if binary > 0 && self.files.is_empty() {
            text.push_str(&format!("[{binary} binary files were not searched]\n"));
        }
        text
    }
}
