//! Brace expansion: `{a,b}` and `{1..9}`.

use super::WordPart;
use super::reader::{Outcome, Reader};
use super::word::{Context, WordDraft};

/// Words that the braces of one word may stand for.
const MAX_ALTERNATIVES: usize = 1000;

impl Reader<'_> {
    /// Reads braces, or an unquoted `{` that is literal.
    pub(super) fn brace(&mut self, context: Context, word: &mut WordDraft) -> Outcome<()> {
        let start = self.at;
        let raw = self.raw_word();
        let length = raw[1..].find(['{', '}', '\'', '"', '\\', '$', '`']).map(|length| length + 1);
        let inner = &raw[1..length.unwrap_or(raw.len())];
        let is_list = inner.contains(',') || inner.contains("..");
        match length.map(|length| raw.as_bytes()[length]) {
            None if !is_list => {
                self.at += 1;
                word.add("{", false);
                return Ok(());
            }
            Some(b'}') if !is_list => {
                let rest = &raw[inner.len() + 2..];
                if rest.contains('}') && (rest.contains(',') || rest.contains("..")) {
                    self.at += raw.len();
                    return self.unsupported(start, "bash may pair these braces in another way");
                }
                self.at += inner.len() + 2;
                self.check_plain(start, inner)?;
                word.add(&raw[..inner.len() + 2], false);
                return Ok(());
            }
            Some(b'}') => self.at += inner.len() + 2,
            _ => {
                self.at += raw.len();
                return self.unsupported(start, "braces are supported around plain text only");
            }
        }
        if context == Context::Value {
            return self.unsupported(start, "braces mean different things in different places here");
        }
        self.check_plain(start, inner)?;
        let alternatives = if inner.contains(',') {
            inner.split(',').map(str::to_owned).collect()
        } else {
            match range(inner) {
                Some(range) => range,
                None => {
                    return self.unsupported(start, "`{…..…}` is supported between two numbers or two letters only");
                }
            }
        };
        let earlier = word.parts.iter().map(|part| if let WordPart::Braces(texts) = part { texts.len() } else { 1 });
        if earlier.fold(alternatives.len(), usize::saturating_mul) > MAX_ALTERNATIVES {
            return self.unsupported(start, format!("braces stand for more than {MAX_ALTERNATIVES} words"));
        }
        word.parts.push(WordPart::Braces(alternatives));
        Ok(())
    }

    fn check_plain(&self, start: usize, inner: &str) -> Outcome<()> {
        if inner.contains(['*', '?', '[', '~', '!']) {
            return self.unsupported(start, "braces are supported around plain text only");
        }
        Ok(())
    }
}

/// Returns the texts of `1..9` or `a..e`, at most one beyond the limit.
fn range(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        let letters = first.min(last)..=first.max(last);
        let mut texts: Vec<String> = letters.map(|letter| char::from(letter).to_string()).collect();
        if first > last {
            texts.reverse();
        }
        // The characters between `Z` and `a` include quotes.
        return texts.iter().all(|text| text.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(texts);
    }
    let (from, to) = (number(first)?, number(last)?);
    let is_padded =
        |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
    let width = if is_padded(first) || is_padded(last) { first.len().max(last.len()) } else { 0 };
    let render = |value: i64| {
        if width > 0 && value < 0 { format!("-{:0>1$}", -value, width - 1) } else { format!("{value:0>width$}") }
    };
    let numbers = (from.min(to)..=from.max(to)).take(MAX_ALTERNATIVES + 1);
    let mut texts: Vec<String> = numbers.map(render).collect();
    if from > to {
        texts.reverse();
    }
    Some(texts)
}

fn letter(text: &str) -> Option<u8> {
    let [letter] = text.as_bytes() else { return None };
    letter.is_ascii_alphabetic().then_some(*letter)
}

fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}
