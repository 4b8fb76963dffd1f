//! Scripts of sed and awk, as far as it takes to see that they only print.

use sayso_shell::Word;

/// `true` for a script of sed without `w`, `W`, `e`, `r` and `R`, read to its end.
pub(super) fn sed_is_harmless(word: &Word) -> bool {
    word.as_literal().is_some_and(|script| Sed { rest: script }.commands().is_some())
}

/// The unread rest of a script of sed.
struct Sed<'s> {
    rest: &'s str,
}

impl Sed<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn skip(&mut self, matches: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(matches);
    }

    /// Reads commands to the end; `None` where one may write, run, or is not understood.
    fn commands(&mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
            if self.rest.is_empty() {
                return Some(());
            }
            self.addresses()?;
            self.skip(|c| c.is_whitespace() || c == '!');
            self.command()?;
        }
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            match self.rest.chars().next() {
                Some('0'..='9' | '$' | '+' | '~' | ',' | ' ') => _ = self.next(),
                Some('/') => {
                    self.next();
                    self.delimited('/')?;
                    self.skip(|c| matches!(c, 'I' | 'M'));
                }
                Some('\\') => {
                    self.next();
                    let delimiter = self.next()?;
                    self.delimited(delimiter)?;
                    self.skip(|c| matches!(c, 'I' | 'M'));
                }
                _ => return Some(()),
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.next()? {
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'l' | 'n' | 'N' | 'p' | 'P' | 'q' | 'Q' | 'x' | 'z' | 'F' => {
                self.skip(|c| c.is_ascii_digit() || c == ' ');
                // Each command ends here; sed reads a letter behind it as another command.
                matches!(self.rest.chars().next(), None | Some(';' | '\n' | '}' | '#')).then_some(())
            }
            '{' | '}' => Some(()),
            'a' | 'i' | 'c' | '#' => {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
                Some(())
            }
            // A label; programs differ in whether a semicolon ends it, so that what follows is read as commands.
            ':' | 'b' | 't' | 'T' => {
                self.skip(|c| c == ' ' || c.is_alphanumeric() || c == '_');
                matches!(self.rest.chars().next(), None | Some(';' | '\n' | '}')).then_some(())
            }
            's' => {
                let delimiter = self.next()?;
                self.delimited(delimiter)?;
                self.delimited(delimiter)?;
                self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9'));
                matches!(self.rest.chars().next(), None | Some(';' | '\n' | '}' | ' ')).then_some(())
            }
            'y' => {
                let delimiter = self.next()?;
                self.delimited(delimiter)?;
                self.delimited(delimiter)
            }
            _ => None,
        }
    }

    /// Skips to behind the next delimiter that no backslash hides. Programs differ in what a delimiter within brackets means, so
    /// that one is refused there.
    fn delimited(&mut self, delimiter: char) -> Option<()> {
        if delimiter == '\n' || delimiter == '\\' || delimiter == '[' {
            return None;
        }
        loop {
            match self.next()? {
                '\\' => _ = self.next()?,
                '\n' => return None,
                '[' => self.brackets(delimiter)?,
                next if next == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    /// Skips to behind the bracket that closes a set of characters, in a pattern or literally in a replacement.
    fn brackets(&mut self, delimiter: char) -> Option<()> {
        self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
        if self.rest.starts_with(']') {
            return None;
        }
        loop {
            match self.next()? {
                ']' => return Some(()),
                '[' if self.rest.starts_with(':') => {
                    let (class, rest) = self.rest.split_once(":]")?;
                    class[1..].chars().all(char::is_alphanumeric).then_some(())?;
                    self.rest = rest;
                }
                '[' | '\n' | '\\' => return None,
                next if next == delimiter => return None,
                _ => {}
            }
        }
    }
}

/// `true` for a script of awk that neither runs a program nor opens a file.
pub(super) fn awk_is_harmless(word: &Word) -> bool {
    let Some(script) = word.as_literal() else { return false };
    !awk_may_run(script) && !awk_may_write(script)
}

/// `true` for a script of awk that appears to run a program or to write.
pub(super) fn awk_runs(word: &Word) -> bool {
    awk_may_run(&word.text) || awk_may_write(&word.text)
}

fn awk_may_run(script: &str) -> bool {
    let pipes = script.replace("||", "");
    script.contains("system") || script.contains("getline") || script.contains('@') || pipes.contains('|')
}

/// Comparisons are told from redirections only where no quote and no slash could hide a brace.
fn awk_may_write(script: &str) -> bool {
    if !script.contains('>') {
        return false;
    }
    let first = script.find('>').unwrap_or_default();
    let is_plain = !script[..first].contains(['"', '/']);
    let (mut braces, mut parentheses) = (0_i32, 0_i32);
    for (at, character) in script.char_indices() {
        match character {
            '{' => braces += 1,
            '}' => braces -= 1,
            '(' => parentheses += 1,
            ')' => parentheses -= 1,
            // Outside of braces, and within parentheses, it compares.
            '>' if is_plain && (braces == 0 || parentheses > 0) => {}
            '>' if script[at + 1..].starts_with('=') && is_plain => {}
            '>' => return true,
            // From here on braces may be part of a text.
            '"' | '/' if script[at..].contains('>') => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts_that_print_are_harmless() {
        for script in [
            "p",
            "1,20p",
            "s/a/b/",
            "s/a/b/g;s#x#y#2p",
            "/foo/,/bar/p",
            "$d",
            "/^$/d",
            "1!G;h;$!d",
            "s/\\/x/y/",
            "10q",
            "n;d",
            "/a/{s/x/y/;p}",
            "s|a|b|I",
            "1~2p",
            "\\,x,d",
            "y/abc/def/",
            "/x/!d",
            "s/[0-9]*//",
            "$!N;p",
            "=",
            ":a;N;$!ba;s/x/y/",
            "s/[[:space:]]*$//",
            "s/[^a-z]//g",
        ] {
            assert!(sed_is_harmless(&Word::literal(script)), "{script}");
        }
        for script in [
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/e",
            "s/a/b/ge",
            "e",
            "1e rm x",
            "r /etc/passwd",
            "R x",
            "/a/w x",
            "p;w x",
            "s/a/b/;1{p;w x\n}",
            "v 4.2",
            "s/[/]/b/e;p",
            "pw x",
            "s/a",
            "W x",
            "1,$w x",
            "s/a/b/pw x",
            "\\xaxw y",
            "b;w x",
            ":a;w x",
            "s/[]/]/g;s/e;/a/p",
            "s/[[:alpha:]/]/g;s/e;/a/p",
            "b a;s/x/y/e",
            "s/a[/b/e",
        ] {
            assert!(!sed_is_harmless(&Word::literal(script)), "{script}");
        }
    }

    #[test]
    fn awk_scripts_that_print_are_harmless() {
        for script in [
            "{print $1}",
            "NR>5",
            "$3 > 100 {print $1}",
            "{ if ($1 > 5) print }",
            "NR>=10 && NR<=20",
            "{s+=$1} END {print s}",
            "/foo/ {print $2}",
            "a || b",
            "BEGIN {FS=\":\"} {print $1}",
            "{print $1\" \"$2}",
            "!seen[$0]++",
        ] {
            assert!(awk_is_harmless(&Word::literal(script)), "{script}");
        }
        for script in [
            "{system(\"rm x\")}",
            "{print > \"out\"}",
            "{print >> $2}",
            "{print | \"sh\"}",
            "\"date\" | getline x",
            "@load \"x\"",
            "/\"/ {print > \"x\"}",
            "{print \"->\"}",
            "{print ($1) > $2}",
            "/{/ {print > $1}",
        ] {
            assert!(!awk_is_harmless(&Word::literal(script)), "{script}");
        }
    }
}
