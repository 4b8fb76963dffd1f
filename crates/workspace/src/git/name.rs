//! Branch names for tasks.

use std::fmt;
use std::str::FromStr;

use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

/// Name of a task's branch: a prefix and a short form of the task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BranchName {
    name: String,
}

/// Prefix of all task branches; `sayso/` by default.
///
/// Never empty: with an empty prefix, a task called "main" would use the branch `main`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BranchPrefix {
    text: String,
}

/// Reason why a branch name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BranchNameError {
    /// The task is empty.
    #[error("the task is empty, so there is nothing to name a branch after")]
    NoTask,
    /// The prefix is not valid in a branch name.
    #[error("`{prefix}` cannot start a branch's name: {reason}")]
    Prefix { prefix: String, reason: &'static str },
}

impl BranchNameError {
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::NoTask => "say in a few words what is to be done".into(),
            Self::Prefix { .. } => "use letters, digits, `-`, `_` and `/`, as in `sayso/`".into(),
        }
    }
}

/// Long enough for a few words, short enough for a shell prompt.
const MAX_SLUG_BYTES: usize = 50;
const MAX_PREFIX_BYTES: usize = 60;

impl BranchName {
    /// Creates the branch name for a task: the prefix, then lower-case ASCII letters, digits and single hyphens.
    ///
    /// Latin letters lose their accents, and other characters separate words. A task without Latin letters or digits is
    /// named after its hash, so that the same task always gets the same branch.
    pub fn for_task(prefix: &BranchPrefix, task: &str) -> Result<Self, BranchNameError> {
        if task.trim().is_empty() {
            return Err(BranchNameError::NoTask);
        }
        let mut slug = slug(task);
        if slug.is_empty() {
            slug = format!("task-{}", ContentHash::of(task.trim().as_bytes()).short());
        }
        Ok(Self { name: format!("{}{slug}", prefix.text) })
    }

    /// Returns the name without `refs/heads/`.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the branch names that cannot exist beside this one, since git stores `a` and `a/b` in one path.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.name.match_indices('/').map(|(at, _)| &self.name[..at])
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl BranchPrefix {
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Default for BranchPrefix {
    fn default() -> Self {
        Self { text: "sayso/".to_owned() }
    }
}

impl FromStr for BranchPrefix {
    type Err = BranchNameError;

    /// Parses a prefix. The rules are those of git for reference names, and stricter where a shell or a reader could
    /// misread the name.
    fn from_str(text: &str) -> Result<Self, BranchNameError> {
        let error = |reason| Err(BranchNameError::Prefix { prefix: text.to_owned(), reason });
        if text.is_empty() {
            return error("it is empty, and a task called `main` would then be the branch `main`");
        }
        if text.len() > MAX_PREFIX_BYTES {
            return error("it is longer than 60 bytes");
        }
        if !text.chars().all(|letter| letter.is_alphanumeric() || "-_./+#@=".contains(letter)) {
            return error("it has a character other than letters, digits and `-_./+#@=`");
        }
        if text.starts_with(['-', '/']) || text == "@" || text.starts_with("refs/") {
            return error("a branch's name does not start like this");
        }
        if text.contains("//") || text.contains("..") {
            return error("it has `//` or `..`");
        }
        let (parents, _) = text.rsplit_once('/').unwrap_or(("", text));
        if text.split('/').any(|part| part.starts_with('.')) {
            return error("a part of it starts with a dot");
        }
        // The task continues the last part, so only the parts before it end here.
        let ends_badly = |part: &str| part.rsplit_once('.').is_some_and(|(_, end)| end.is_empty() || end == "lock");
        if parents.split('/').any(ends_badly) {
            return error("a part of it ends with a dot or with `.lock`");
        }
        Ok(Self { text: text.to_owned() })
    }
}

/// Joins the words of a task with hyphens, up to the maximum length.
fn slug(task: &str) -> String {
    let mut plain = String::with_capacity(task.len());
    for letter in task.chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => plain.push(letter),
            // As in "don't": not a word boundary.
            '\'' | '’' | '\u{300}'..='\u{36F}' => {}
            _ => plain.push_str(without_accent(letter).unwrap_or(" ")),
        }
    }
    let mut slug = String::new();
    for word in plain.split_ascii_whitespace() {
        let hyphen = usize::from(!slug.is_empty());
        if slug.len() + hyphen + word.len() > MAX_SLUG_BYTES {
            if slug.is_empty() {
                // A single word that is too long.
                slug.extend(word.chars().take(MAX_SLUG_BYTES));
            }
            break;
        }
        slug.push_str(&"-"[..hyphen]);
        slug.push_str(word);
    }
    slug
}

/// Returns a Latin letter without its accent, as people commonly write it.
fn without_accent(letter: char) -> Option<&'static str> {
    Some(match letter {
        'à'..='ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' | 'ŋ' => "n",
        'ò'..='õ' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ơ' => "o",
        'ö' | 'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'þ' => "th",
        'ù'..='û' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ư' => "u",
        'ü' => "ue",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{BranchName, BranchPrefix};

    fn check(task: &str, expected: &str) {
        let name = BranchName::for_task(&BranchPrefix::default(), task).map_err(|error| error.to_string());
        assert_eq!(name.as_ref().map(BranchName::as_str), Ok(expected), "{task:?}");
    }

    #[test]
    fn task_becomes_branch_name() {
        check("Fix the login page", "sayso/fix-the-login-page");
        check("  don't -- panic!  ", "sayso/dont-panic");
        check("Größe ändern: naïve Œuvre", "sayso/groesse-aendern-naive-oeuvre");
        check("Żółć i u\u{308}ber", "sayso/zolc-i-uber");
        check("fix #123 (see src/a.rs)", "sayso/fix-123-see-src-a-rs");
        check("..", &format!("sayso/{}", hashed("..")));
        check("refs/heads/main", "sayso/refs-heads-main");
        check("HEAD", "sayso/head");
        check("a.lock", "sayso/a-lock");
        check("修复 login 页面", "sayso/login");
    }

    fn hashed(task: &str) -> String {
        format!("task-{}", sayso_review::ContentHash::of(task.as_bytes()).short())
    }

    #[test]
    fn task_in_other_script_has_stable_name() {
        check("修复登录页面", &format!("sayso/{}", hashed("修复登录页面")));
        check(" 修复登录页面 ", &format!("sayso/{}", hashed("修复登录页面")));
    }

    #[test]
    fn long_task_ends_at_word() {
        let words = "rewrite the whole of the parser so that it reports every error at once";
        check(words, "sayso/rewrite-the-whole-of-the-parser-so-that-it-reports");
        check(&"x".repeat(1000), &format!("sayso/{}", "x".repeat(50)));
    }

    #[test]
    fn empty_task_is_rejected() {
        for task in ["", "  \n"] {
            assert!(BranchName::for_task(&BranchPrefix::default(), task).is_err());
        }
    }

    #[test]
    fn invalid_prefixes_are_rejected() {
        for good in ["sayso/", "ai-", "team/ai/", "größe/", "x"] {
            assert!(good.parse::<BranchPrefix>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "/",
            "-x/",
            "a//b",
            "a..b",
            ".a/",
            "a/.b",
            "a.lock/",
            "a./",
            "a b/",
            "a~",
            "refs/heads/",
            "@{",
            "a\\b",
            "a*",
        ] {
            assert!(bad.parse::<BranchPrefix>().is_err(), "{bad}");
        }
    }
}
