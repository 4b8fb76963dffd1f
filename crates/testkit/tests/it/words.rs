//! Limits on vague comments, long names, long files and long functions.
//!
//! The limits are near the figures of jj, ripgrep and linkerd2-proxy. They find cryptic places and do not guarantee good prose.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sayso_testkit::programs::root;

use super::test_files::rust_files;

/// Percent of doc comments that may start with a question word.
const MAX_QUESTION_DOCS: f64 = 5.0;
/// Percent of doc comments that may have three words or fewer.
const MAX_EMPTY_DOCS: f64 = 6.0;
/// Vague pronouns in 1,000 words of comments.
const MAX_VAGUE_WORDS: f64 = 2.5;
/// Mean number of words in the name of a test.
const MAX_TEST_NAME_WORDS: f64 = 6.5;
/// Number of tests whose name has twelve words or more.
const MAX_LONG_TEST_NAMES: usize = 10;
/// Number of constants that say "most" or "some" and not what they limit.
const MAX_UNNAMED_LIMITS: usize = 2;
/// Number of type names that occur in more than one source file.
const MAX_REPEATED_TYPES: usize = 100;
/// Lines of a file below `src`, unit tests included.
const MAX_SOURCE_LINES: usize = 450;
/// Lines of a function below `src`, from its `fn` to its closing brace.
const MAX_FUNCTION_LINES: usize = 100;

/// Offending places that a failure shows.
const SHOWN_EXAMPLES: usize = 20;

const QUESTION_WORDS: [&str; 12] =
    ["what", "whether", "how", "who", "whose", "whom", "whoever", "whatever", "where", "why", "when", "which"];
/// Phrases that start a doc comment like a question word does.
const QUESTION_PHRASES: [&str; 2] = ["that which", "those"];
const VAGUE_PHRASES: [&str; 15] = [
    "whoever",
    "whomever",
    "whatever",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "something",
    "nothing",
    "those",
    "thing",
    "things",
    "one that",
    "ones",
    "otherwise than",
];
const UNNAMED_LIMITS: [&str; 5] = ["MOST", "SOME", "PATIENCE", "BEGINNING", "ENOUGH"];

/// A Rust file of the workspace with its path relative to the repository.
struct SourceFile {
    path: PathBuf,
    text: String,
}

impl SourceFile {
    fn all() -> Vec<Self> {
        let mut files: Vec<PathBuf> = rust_files(&root().join("crates"));
        files.sort();
        let read = |path: PathBuf| Self {
            text: std::fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(root()).unwrap().to_owned(),
        };
        files.into_iter().map(read).collect()
    }

    /// `true` for code of the product, `false` for integration tests and build scripts.
    fn is_source(&self) -> bool {
        self.path.iter().nth(2).is_some_and(|folder| folder == "src")
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{}", self.path.display(), line + 1)
    }

    /// Doc comments with the index of their first line, the lines of each joined by spaces.
    fn doc_comments(&self) -> Vec<(usize, String)> {
        let mut found: Vec<(usize, String)> = Vec::new();
        let mut open = false;
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim_start();
            let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
                open = false;
                continue;
            };
            match found.last_mut().filter(|_| open) {
                Some((_, comment)) => *comment = format!("{comment} {}", text.trim()),
                None => found.push((number, text.trim().to_owned())),
            }
            open = true;
        }
        // Headings, tables, lists and examples are not sentences.
        found.retain(|(_, text)| !text.is_empty() && !["```", "#", "|", "-"].iter().any(|mark| text.starts_with(mark)));
        found
    }

    /// Comments of all kinds, line by line, without code between backticks or brackets.
    fn comment_lines(&self) -> impl Iterator<Item = (usize, String)> {
        self.text.lines().enumerate().filter_map(|(number, line)| {
            let comment = line.split_once("//")?.1.trim_start_matches(['/', '!']);
            Some((number, without_code(comment)))
        })
    }

    /// Names of tests, each with the index of its line.
    fn tests(&self) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        let mut is_test = false;
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim();
            is_test |= line.starts_with("#[test") || line.starts_with("#[tokio::test");
            if line.starts_with("#[") || line.is_empty() {
                continue;
            }
            if let Some(name) = function_name(line).filter(|_| is_test) {
                found.push((number, name));
            }
            is_test = false;
        }
        found
    }

    /// Names of structs, enums and traits, each with the index of its line.
    fn types(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().filter_map(|(number, line)| {
            let item = without_visibility(line.trim_start());
            let rest = ["struct ", "enum ", "trait "].iter().find_map(|keyword| item.strip_prefix(keyword))?;
            Some((number, identifier(rest))).filter(|(_, name)| !name.is_empty())
        })
    }

    /// Functions with the index of their first line and their number of lines. Relies on the layout of rustfmt: the closing
    /// brace has the indentation of the `fn`.
    fn functions(&self) -> Vec<(usize, &str, usize)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut found = Vec::new();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line.trim_start()) else { continue };
            let indentation = &line[..line.len() - line.trim_start().len()];
            let ends = |line: &&str| line.strip_prefix(indentation).is_some_and(|rest| rest == "}" || rest == ");");
            let length = lines[start..].iter().position(ends).map_or(1, |last| last + 1);
            // Without a body, or with one on the same line, it ends at once.
            let length = if line.ends_with([';', '}']) { 1 } else { length };
            found.push((start, name, length));
        }
        found
    }
}

/// Removes code between backticks and link texts between brackets.
fn without_code(comment: &str) -> String {
    let prose: String = comment.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    let mut depth = 0_usize;
    for character in prose.chars() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(character),
            _ => {}
        }
    }
    text
}

/// Returns the words of a text in lower case, without punctuation.
fn words(text: &str) -> Vec<String> {
    let clean = |word: &str| word.trim_matches(|edge: char| !edge.is_alphanumeric()).to_lowercase();
    text.split_whitespace().map(clean).collect()
}

fn identifier(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
    &text[..end]
}

fn without_visibility(item: &str) -> &str {
    match item.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(item, |(_, rest)| rest),
        Some(rest) => rest.trim_start(),
        None => item,
    }
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = without_visibility(line);
    while let Some(after) = ["async ", "const ", "unsafe "].iter().find_map(|keyword| rest.strip_prefix(keyword)) {
        rest = after;
    }
    Some(identifier(rest.strip_prefix("fn ")?)).filter(|name| !name.is_empty())
}

fn contains_phrase(words: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words.windows(phrase.len()).any(|window| window.iter().eq(phrase.iter()))
}

fn starts_with_question(text: &str) -> bool {
    let words = words(text);
    let first = words.first().map(String::as_str).unwrap_or_default();
    QUESTION_WORDS.contains(&first)
        || QUESTION_PHRASES.iter().any(|phrase| words.join(" ").starts_with(&format!("{phrase} ")))
}

fn percent(part: usize, whole: usize) -> f64 {
    per(100, part, whole)
}

#[allow(clippy::cast_precision_loss, reason = "counts of comments are small")]
fn per(unit: usize, part: usize, whole: usize) -> f64 {
    (unit * part) as f64 / whole.max(1) as f64
}

/// Lists the first examples of a figure beyond its limit.
fn examples(found: &[String]) -> String {
    let shown = found.iter().take(SHOWN_EXAMPLES).map(|line| format!("\n  {line}")).collect::<String>();
    format!("{} places, the first of them:{shown}", found.len())
}

#[test]
fn doc_comments_start_with_a_statement() {
    let (mut total, mut found) = (0, Vec::new());
    for file in SourceFile::all() {
        for (line, text) in file.doc_comments() {
            total += 1;
            if starts_with_question(&text) {
                found.push(format!("{}: {text}", file.place(line)));
            }
        }
    }
    let share = percent(found.len(), total);
    assert!(
        share <= MAX_QUESTION_DOCS,
        "{share:.1} % of doc comments start with a question word: {}",
        examples(&found)
    );
}

#[test]
fn doc_comments_say_more_than_three_words() {
    let (mut total, mut found) = (0, Vec::new());
    for file in SourceFile::all() {
        for (line, text) in file.doc_comments() {
            total += 1;
            if text.split_whitespace().count() <= 3 {
                found.push(format!("{}: {text}", file.place(line)));
            }
        }
    }
    let share = percent(found.len(), total);
    assert!(share <= MAX_EMPTY_DOCS, "{share:.1} % of doc comments are empty: {}", examples(&found));
}

#[test]
fn comments_name_their_subject() {
    let (mut total, mut count, mut found) = (0, 0, Vec::new());
    for file in SourceFile::all() {
        for (line, text) in file.comment_lines() {
            let words = words(&text);
            total += words.len();
            let vague = VAGUE_PHRASES.iter().filter(|phrase| contains_phrase(&words, phrase)).count();
            if vague > 0 {
                count += vague;
                found.push(format!("{}:{text}", file.place(line)));
            }
        }
    }
    let rate = per(1000, count, total);
    assert!(rate <= MAX_VAGUE_WORDS, "{rate:.1} vague pronouns in 1,000 words of comments: {}", examples(&found));
}

#[test]
fn test_names_are_short() {
    let files = SourceFile::all();
    let length = |name: &str| name.split('_').count();
    let tests = || files.iter().flat_map(|file| file.tests().into_iter().map(move |(line, name)| (file, line, name)));
    let total = tests().count();
    assert!(total > 1000, "the tests were found");
    let mean = per(1, tests().map(|(_, _, name)| length(name)).sum(), total);
    let long: Vec<String> = tests()
        .filter(|(_, _, name)| length(name) >= 12)
        .map(|(file, line, name)| format!("{}: {name}", file.place(line)))
        .collect();
    assert!(mean <= MAX_TEST_NAME_WORDS, "names of tests have {mean:.1} words");
    assert!(long.len() <= MAX_LONG_TEST_NAMES, "names of twelve words or more: {}", examples(&long));
}

#[test]
fn constants_name_what_they_limit() {
    let mut found = Vec::new();
    for file in SourceFile::all() {
        for (number, line) in file.text.lines().enumerate() {
            let name = without_visibility(line.trim_start()).strip_prefix("const ").map(identifier);
            if name.is_some_and(|name| UNNAMED_LIMITS.contains(&name)) {
                found.push(format!("{}: {}", file.place(number), line.trim()));
            }
        }
    }
    assert!(found.len() <= MAX_UNNAMED_LIMITS, "constants without a quantity: {}", examples(&found));
}

#[test]
fn type_names_mean_one_thing() {
    let files = SourceFile::all();
    let mut places: BTreeMap<&str, BTreeSet<&Path>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_source()) {
        for (_, name) in file.types() {
            places.entry(name).or_default().insert(&file.path);
        }
    }
    let mut repeated: Vec<_> = places.into_iter().filter(|(_, files)| files.len() > 1).collect();
    repeated.sort_by_key(|(_, files)| std::cmp::Reverse(files.len()));
    let lines: Vec<String> = repeated.iter().map(|(name, files)| format!("{name} in {} files", files.len())).collect();
    assert!(lines.len() <= MAX_REPEATED_TYPES, "type names in more than one file: {}", examples(&lines));
}

#[test]
fn source_files_have_at_most_450_lines() {
    let mut found = Vec::new();
    for file in SourceFile::all().iter().filter(|file| file.is_source()) {
        let lines = file.text.lines().count();
        if lines > MAX_SOURCE_LINES {
            found.push(format!("{} has {lines} lines", file.path.display()));
        }
    }
    assert!(found.is_empty(), "source files to split by idea: {}", examples(&found));
}

#[test]
fn functions_have_at_most_100_lines() {
    let (mut total, mut found) = (0, Vec::new());
    for file in SourceFile::all().iter().filter(|file| file.is_source()) {
        for (line, name, length) in file.functions() {
            total += 1;
            if length > MAX_FUNCTION_LINES {
                found.push(format!("{}: `{name}` has {length} lines", file.place(line)));
            }
        }
    }
    assert!(total > 3000, "the functions were found");
    assert!(found.is_empty(), "functions to split: {}", examples(&found));
}

#[test]
fn measures_find_their_examples() {
    let text = "/// What it is.\nstruct Deed;\n\n/// Adds one.\n#[test]\nfn adds_one() {\n    let _ = 1; // see `those` and somebody\n}\n";
    let file = SourceFile { path: PathBuf::from("crates/demo/src/lib.rs"), text: text.to_owned() };
    assert!(file.is_source());
    let docs: Vec<String> = file.doc_comments().into_iter().map(|(_, text)| text).collect();
    assert_eq!(docs, ["What it is.", "Adds one."]);
    assert_eq!(docs.iter().map(|text| starts_with_question(text)).collect::<Vec<_>>(), [true, false]);
    assert_eq!(file.types().collect::<Vec<_>>(), [(1, "Deed")]);
    assert_eq!(file.tests(), [(5, "adds_one")]);
    assert_eq!(file.functions(), [(5, "adds_one", 3)]);
    let comments: Vec<String> = file.comment_lines().map(|(_, text)| text).collect();
    assert!(contains_phrase(&words(&comments[2]), "somebody"));
    assert!(!contains_phrase(&words(&comments[2]), "those"), "code is not prose");
}
