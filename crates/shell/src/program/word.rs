//! Words: literals, expansions and wildcards.

use super::reader::{Outcome, Reader};
use super::variables::is_shell_made;
use super::{UnexpandedWord, Wildcard, WordPart};

/// The place of a word, which decides how it is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// May become several words.
    Argument,
    /// Stays one word: a value, a pattern, an operand of `[[`, a here-string, the file of a redirection.
    Value,
}

impl Reader<'_> {
    /// Reads the word that begins here.
    pub(super) fn word(&mut self, context: Context) -> Outcome<UnexpandedWord> {
        let start = self.at;
        if self.is_comment() {
            return self.unexpected();
        }
        let mut word = WordDraft::default();
        while let Some(byte) = self.byte(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b')' => break,
                b'<' | b'>' => {
                    self.check_operator(start)?;
                    break;
                }
                b'(' => return self.parenthesis(start),
                b'\\' if self.is_continuation() => self.continuation()?,
                b'\\' => {
                    self.at += 1;
                    match self.character() {
                        Some(character) => word.quoted(character.encode_utf8(&mut [0; 4])),
                        None => return self.unsupported(self.at - 1, "a backslash ends the script"),
                    }
                }
                b'\'' => {
                    let text = self.single_quotes()?;
                    word.quoted(text);
                }
                b'"' => self.double_quotes(&mut word)?,
                b'$' => self.unquoted_dollar(&mut word)?,
                b'`' => return self.backtick(),
                b'~' => self.tilde(start, &mut word)?,
                b'*' => self.wildcard(&mut word, Wildcard::Any),
                b'?' => self.wildcard(&mut word, Wildcard::One),
                b'[' => self.bracket(&mut word)?,
                b'{' => {
                    let at = self.at;
                    self.brace(context, &mut word)?;
                    self.check_braces(at, &word)?;
                }
                b'!' if self.at == start => self.exclamation(&mut word)?,
                _ => self.plain(&mut word),
            }
        }
        if self.at == start {
            return self.unexpected();
        }
        let has = |kind: fn(&WordPart) -> bool| word.parts.iter().any(kind);
        if has(|part| matches!(part, WordPart::Braces(_))) && has(|part| matches!(part, WordPart::Substitution { .. }))
        {
            return self.unsupported(start, "braces repeat the substitution in their word");
        }
        let is_expanded = |part: &WordPart| {
            matches!(
                part,
                WordPart::Variable { is_quoted: false, .. } | WordPart::Substitution { is_quoted: false, .. }
            )
        };
        // The parts hold a lone `$` as literal text, so the script tells it from `\$`.
        if self.text[start..self.at].ends_with('$')
            && matches!(word.parts.last(), Some(WordPart::Literal { is_quoted: false, .. }))
            && word.parts.iter().any(is_expanded)
        {
            return self.unsupported(start, "`$` at the end of a word changes how bash splits it");
        }
        Ok(UnexpandedWord { parts: word.parts, is_assignment: false, span: start..self.at })
    }

    /// Rejects `$x{1..3}`: bash expands braces first, so the names are `x1`, `x2` and `x3`.
    fn check_braces(&self, at: usize, word: &WordDraft) -> Outcome<()> {
        let [.., WordPart::Variable { .. }, WordPart::Braces(_) | WordPart::Literal { .. }] = word.parts.as_slice()
        else {
            return Ok(());
        };
        match self.text[..at].bytes().next_back() {
            Some(before) if before.is_ascii_alphanumeric() || before == b'_' => {
                self.unsupported(at, "braces become part of the variable's name")
            }
            _ => Ok(()),
        }
    }

    /// `true` before a `#` that begins a comment.
    fn is_comment(&self) -> bool {
        let before = self.text[..self.at].bytes().next_back();
        self.byte(0) == Some(b'#') && before.is_none_or(|byte| b" \t\n|&;<>()".contains(&byte))
    }

    /// Takes literal characters.
    fn plain(&mut self, word: &mut WordDraft) {
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let length = rest.bytes().skip(first).position(|byte| SPECIAL.contains(&byte));
        let length = length.map_or(rest.len(), |length| length + first);
        word.literal(&rest[..length]);
        self.at += length;
    }

    /// Rejects `{name}>` and process substitutions.
    fn check_operator(&self, start: usize) -> Outcome<()> {
        if self.byte(1) == Some(b'(') {
            return Self::unsupported_at(self.at..self.at + 2, "process substitution is not supported");
        }
        let word = &self.text[start..self.at];
        if word.starts_with('{') && word.ends_with('}') {
            return self.unsupported(start, "a redirection that picks its own descriptor is not supported");
        }
        Ok(())
    }

    fn parenthesis<T>(&self, start: usize) -> Outcome<T> {
        let span = start..self.at + 1;
        let reason = match self.text[..self.at].bytes().next_back() {
            Some(b'=') => "arrays are not supported",
            Some(b'@' | b'?' | b'*' | b'+' | b'!') => "extended patterns are not supported",
            _ if self.byte(1) == Some(b')') => "a function gives a name another meaning",
            _ => "`(` within a word is not supported",
        };
        Self::unsupported_at(span, reason)
    }

    pub(super) fn backtick<T>(&self) -> Outcome<T> {
        Self::unsupported_at(self.at..self.at + 1, "backticks are not supported; `$(…)` is")
    }

    fn exclamation(&mut self, word: &mut WordDraft) -> Outcome<()> {
        let raw = self.raw_word();
        if raw != "!" && raw != "!=" {
            let span = self.at..self.at + raw.len();
            return Self::unsupported_at(span, "`!` before a word is history expansion in a terminal");
        }
        self.plain(word);
        Ok(())
    }

    fn single_quotes(&mut self) -> Outcome<&str> {
        let start = self.at;
        self.at += 1;
        let text = self.rest();
        let Some(length) = text.find('\'') else { return self.unsupported(start, "`'` has no end") };
        self.at += length + 1;
        Ok(&text[..length])
    }

    fn double_quotes(&mut self, word: &mut WordDraft) -> Outcome<()> {
        let start = self.at;
        self.at += 1;
        word.quoted("");
        loop {
            match self.byte(0) {
                None => return Self::unsupported_at(start..start + 1, "`\"` has no end"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if self.is_continuation() => self.quoted_continuation(word)?,
                Some(b'\\') if matches!(self.byte(1), Some(b'$' | b'`' | b'"' | b'\\')) => {
                    self.at += 1;
                    self.quoted_character(word);
                }
                Some(b'$') => self.quoted_dollar(word)?,
                Some(b'`') => return self.backtick(),
                Some(_) => self.quoted_character(word),
            }
        }
    }

    /// Takes one character, and the literal text of double quotes behind it.
    pub(super) fn quoted_character(&mut self, word: &mut WordDraft) {
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let length = rest.bytes().skip(first).position(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'`' | b'\n'));
        let length = length.map_or(rest.len(), |length| length + first);
        word.quoted(&rest[..length]);
        self.at += length;
    }

    /// Moves behind a line continuation within double quotes.
    fn quoted_continuation(&mut self, word: &WordDraft) -> Outcome<()> {
        let start = self.at;
        let before = self.text[..start].bytes().next_back();
        while self.take("\\\n") {}
        let continues_name = self.byte(0).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_behind_name = before != Some(b'}') && matches!(word.parts.last(), Some(WordPart::Variable { .. }));
        if before == Some(b'$') || before == Some(b'\\') || (is_behind_name && continues_name) {
            return self.unsupported(start, "a line continuation joins two parts of an expansion");
        }
        Ok(())
    }

    fn unquoted_dollar(&mut self, word: &mut WordDraft) -> Outcome<()> {
        let start = self.at;
        match self.byte(1) {
            Some(b'\'') => {
                let text = self.ansi_quotes()?;
                word.quoted(&text);
                Ok(())
            }
            Some(b'"') => {
                self.at += 2;
                self.unsupported(start, "`$\"…\"` is translated by the shell")
            }
            _ => self.dollar(word, Quoting::Bare),
        }
    }

    pub(super) fn quoted_dollar(&mut self, word: &mut WordDraft) -> Outcome<()> {
        self.dollar(word, Quoting::Quoted)
    }

    /// Reads `$NAME`, `${NAME}`, `$?`, `$(list)`, or a `$` that stands for itself.
    fn dollar(&mut self, word: &mut WordDraft, quoting: Quoting) -> Outcome<()> {
        let start = self.at;
        let is_quoted = quoting == Quoting::Quoted;
        self.at += 1;
        match self.byte(0) {
            Some(b'(') => word.parts.push(self.substitution(start, is_quoted)?),
            Some(b'{') => {
                let name = self.braced_name(start)?;
                word.parts.push(WordPart::Variable { name, is_quoted });
            }
            Some(b'?') => {
                self.at += 1;
                word.parts.push(WordPart::Status { is_quoted });
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = self.name().to_owned();
                self.check_readable(start, &name)?;
                word.parts.push(WordPart::Variable { name, is_quoted });
            }
            Some(byte @ (b'0'..=b'9' | b'@' | b'*' | b'#' | b'$' | b'!' | b'-')) => {
                self.at += 1;
                let name = char::from(byte);
                return self.unsupported(start, format!("`${name}` is only known to the shell that runs the script"));
            }
            Some(b'[') => {
                self.at += 1;
                return self.unsupported(start, "`$[` evaluates arithmetic, which can run commands");
            }
            Some(b'\\') if self.is_continuation() => {
                return self.unsupported(start, "a line continuation joins two parts of an expansion");
            }
            _ => word.add("$", is_quoted),
        }
        Ok(())
    }

    fn braced_name(&mut self, start: usize) -> Outcome<String> {
        self.at += 1;
        let name = self.name().to_owned();
        if !name.is_empty() && self.take("}") {
            self.check_readable(start, &name)?;
            return Ok(name);
        }
        let rest = self.rest();
        self.at += rest.find(['}', '\n']).map_or(rest.len(), |length| length + 1);
        self.unsupported(start, "`${…}` is supported around a name only")
    }

    /// Rejects variables that only a shell can give a value to.
    fn check_readable(&self, start: usize, name: &str) -> Outcome<()> {
        if is_shell_made(name) {
            return self.unsupported(start, format!("`${name}` is only known to the shell that runs the script"));
        }
        Ok(())
    }

    fn substitution(&mut self, start: usize, is_quoted: bool) -> Outcome<WordPart> {
        self.at += 1;
        if self.starts_with("(") {
            self.at += 1;
            return self.unsupported(start, "`$((` evaluates arithmetic, which can run commands");
        }
        let waiting = self.pending.len();
        let body = self.nested(|reader| reader.list(&[]))?;
        if let Some(document) = self.pending.get(waiting) {
            return Self::unsupported_at(document.span.clone(), "the here-document has no body");
        }
        if self.take(")") {
            self.check_file_read(start, &body)?;
            return Ok(WordPart::Substitution { body, is_quoted });
        }
        if self.at < self.end { self.unexpected() } else { Self::unsupported_at(start..start + 2, "`$(` has no end") }
    }

    /// Rejects `$(< file)`, which reads the file without a program.
    fn check_file_read(&self, start: usize, body: &super::List) -> Outcome<()> {
        let [only] = body.items.as_slice() else { return Ok(()) };
        let is_bare = matches!(&only.first.stages[..], [stage] if matches!(&stage.command,
            super::Command::Simple(simple) if simple.words.is_empty() && simple.assignments.is_empty()));
        if is_bare && only.rest.is_empty() {
            return self.unsupported(start, "`$(< file)` is not supported; `$(cat file)` is");
        }
        Ok(())
    }

    fn tilde(&mut self, start: usize, word: &mut WordDraft) -> Outcome<()> {
        let before = self.text[..self.at].bytes().next_back();
        let at = self.at;
        self.at += 1;
        if at == start {
            let is_home = matches!(
                self.byte(0),
                None | Some(b'/' | b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b')' | b'<' | b'>')
            );
            if !is_home {
                self.at += self.raw_word().len();
                return self.unsupported(start, "`~` is supported alone or before `/` only");
            }
            word.parts.push(WordPart::Tilde);
            return Ok(());
        }
        if matches!(before, Some(b'=' | b':')) {
            return self.unsupported(at, "`~` in the middle of a word depends on the words around it");
        }
        word.literal("~");
        Ok(())
    }

    fn wildcard(&mut self, word: &mut WordDraft, wildcard: Wildcard) {
        self.at += 1;
        word.parts.push(WordPart::Wildcard(wildcard));
    }

    /// Reads `[…]`. A `[` without an end is literal.
    fn bracket(&mut self, word: &mut WordDraft) -> Outcome<()> {
        let start = self.at;
        let raw = self.raw_word();
        let Some(length) = class_length(raw) else {
            self.at += 1;
            word.literal("[");
            return Ok(());
        };
        let class = &raw[..length];
        self.at += length;
        if class.contains(['\'', '"', '\\', '$', '`', '/', '{', '}']) || class.contains("[.") || class.contains("[=") {
            return self.unsupported(start, "`[…]` with quotes, expansions or slashes is not supported");
        }
        word.parts.push(WordPart::Wildcard(Wildcard::Class(class.to_owned())));
        Ok(())
    }
}

/// Length of the bracket expression at the beginning of a text, if it is closed.
fn class_length(raw: &str) -> Option<usize> {
    let bytes = raw.as_bytes();
    let mut at = 1;
    if matches!(bytes.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    // The first `]` is a character of the class.
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    while at < bytes.len() {
        if bytes[at] == b']' {
            return Some(at + 1);
        }
        let is_named = raw[at..].starts_with("[:");
        at += if is_named { raw[at..].find(":]").map_or(1, |length| length + 2) } else { 1 };
        while !raw.is_char_boundary(at) {
            at += 1;
        }
    }
    None
}

/// Quotes around an expansion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Bare,
    Quoted,
}

/// Bytes with a meaning within a word.
const SPECIAL: &[u8] = b" \t\n|&;()<>\\'\"$`~*?[{";

/// A word that is being read.
#[derive(Default)]
pub(super) struct WordDraft {
    pub(super) parts: Vec<WordPart>,
}

impl WordDraft {
    fn literal(&mut self, more: &str) {
        self.add(more, false);
    }

    pub(super) fn quoted(&mut self, more: &str) {
        self.add(more, true);
    }

    /// Adds literal text to the last part, or as a new one.
    pub(super) fn add(&mut self, more: &str, quoted: bool) {
        match self.parts.last_mut() {
            Some(WordPart::Literal { text, is_quoted }) if *is_quoted == quoted => text.push_str(more),
            _ => self.parts.push(WordPart::Literal { text: more.to_owned(), is_quoted: quoted }),
        }
    }
}
