//! Constructs: groups, loops and branches.

use super::reader::{Outcome, Reader};
use super::word::Context;
use super::{Compound, Construct, List, UnexpandedWord, VariableClass, is_name, variable_class};

impl Reader<'_> {
    /// Reads a construct with its redirections, if one begins here.
    pub(super) fn compound(&mut self) -> Outcome<Option<Compound>> {
        let start = self.at;
        let line = self.line_of(start);
        let construct = match self.raw_word() {
            "" if self.starts_with("((") => {
                self.at += 2;
                return self.unsupported(start, "`((` evaluates arithmetic, which can run commands");
            }
            "" if self.take("(") => self.subshell(start)?,
            "{" => self.group()?,
            "for" => self.for_loop()?,
            "if" => self.branches()?,
            "case" => self.case()?,
            "while" => self.while_read()?,
            "[[" => {
                self.at += 2;
                Construct::Condition(self.condition()?)
            }
            "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "in" | "}" | "!" | "]]" => {
                return self.unexpected();
            }
            word => {
                let Some(reason) = rejected_keyword(word) else { return Ok(None) };
                return Self::unsupported_at(start..start + word.len(), reason);
            }
        };
        let redirections = self.redirections()?;
        Ok(Some(Compound { construct, redirections, line }))
    }

    fn subshell(&mut self, start: usize) -> Outcome<Construct> {
        let body = self.filled_list(&[])?;
        if self.take(")") {
            return Ok(Construct::Subshell(body));
        }
        if self.at < self.end { self.unexpected() } else { Self::unsupported_at(start..start + 1, "`(` has no end") }
    }

    fn group(&mut self) -> Outcome<Construct> {
        self.at += 1;
        let body = self.filled_list(&["}"])?;
        self.expect("}")?;
        Ok(Construct::Group(body))
    }

    fn for_loop(&mut self) -> Outcome<Construct> {
        let start = self.at;
        self.at += "for".len();
        self.skip_blanks()?;
        if self.take("((") {
            return self.unsupported(start, "`for ((` evaluates arithmetic, which can run commands");
        }
        let variable = self.variable_name()?;
        self.skip_lines()?;
        if !self.take_reserved("in") {
            return self.unsupported(start, "`for` without `in` goes through arguments that the script does not have");
        }
        let words = self.loop_words()?;
        let body = self.loop_body()?;
        Ok(Construct::For { variable, words, body })
    }

    /// Reads the words behind `in`.
    fn loop_words(&mut self) -> Outcome<Vec<UnexpandedWord>> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.byte(0) {
                Some(b';' | b'\n' | b'#') | None => return Ok(words),
                Some(b'|' | b'&' | b'<' | b'>' | b'(' | b')') => return self.unexpected(),
                Some(_) => words.push(self.word(Context::Argument)?),
            }
        }
    }

    /// Reads `; do list done`.
    fn loop_body(&mut self) -> Outcome<List> {
        self.skip_blanks()?;
        if self.starts_with(";;") {
            return self.unexpected();
        }
        self.take(";");
        self.skip_lines()?;
        self.expect("do")?;
        let body = self.filled_list(&["done"])?;
        self.expect("done")?;
        Ok(body)
    }

    fn branches(&mut self) -> Outcome<Construct> {
        let mut branches = Vec::new();
        self.at += "if".len();
        loop {
            let condition = self.filled_list(&["then"])?;
            self.expect("then")?;
            let body = self.filled_list(&["elif", "else", "fi"])?;
            branches.push((condition, body));
            if !self.take_reserved("elif") {
                break;
            }
        }
        let otherwise = if self.take_reserved("else") { Some(self.filled_list(&["fi"])?) } else { None };
        self.expect("fi")?;
        Ok(Construct::If { branches, otherwise })
    }

    fn case(&mut self) -> Outcome<Construct> {
        self.at += "case".len();
        self.skip_blanks()?;
        let subject = self.word(Context::Value)?;
        self.skip_lines()?;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(Construct::Case { subject, arms });
            }
            let patterns = self.patterns()?;
            let body = self.list(&["esac"])?;
            arms.push((patterns, body));
            self.skip_lines()?;
            if self.starts_with(";;&") || (!self.take(";;") && self.raw_word() != "esac") {
                return self.unexpected();
            }
        }
    }

    /// Reads `(pattern | pattern)`, of which the first parenthesis may be missing.
    fn patterns(&mut self) -> Outcome<Vec<UnexpandedWord>> {
        self.take("(");
        let mut patterns = Vec::new();
        loop {
            self.skip_blanks()?;
            patterns.push(self.word(Context::Value)?);
            self.skip_blanks()?;
            if self.take(")") {
                return Ok(patterns);
            }
            if self.starts_with("||") || !self.take("|") {
                return self.unexpected();
            }
        }
    }

    fn while_read(&mut self) -> Outcome<Construct> {
        let start = self.at;
        self.at += "while".len();
        self.skip_blanks()?;
        let keeps_blanks = self.take_reserved("IFS=");
        self.skip_blanks()?;
        let is_read = self.take_reserved("read");
        self.skip_blanks()?;
        if !is_read || !self.take_reserved("-r") {
            return self.unsupported(start, "`while` is supported as `while read -r NAME` only");
        }
        self.skip_blanks()?;
        let variable = self.variable_name()?;
        self.skip_blanks()?;
        if !matches!(self.byte(0), Some(b';' | b'\n' | b'#')) {
            return self.unsupported(start, "`while` is supported as `while read -r NAME` only");
        }
        let body = self.loop_body()?;
        Ok(Construct::WhileRead { variable, keeps_blanks, body })
    }

    /// Reads the name of a variable that a loop sets.
    fn variable_name(&mut self) -> Outcome<String> {
        let start = self.at;
        let word = self.raw_word();
        self.at += word.len();
        if !is_name(word) {
            return self.unsupported(start, format!("`{word}` is not the name of a variable"));
        }
        if variable_class(word) == VariableClass::Dangerous {
            return self.unsupported(start, format!("setting `{word}` changes how programs run"));
        }
        Ok(word.to_owned())
    }
}

/// Reason why a keyword is not supported.
fn rejected_keyword(word: &str) -> Option<String> {
    let reason = match word {
        "until" => "`until` is not supported, only `while read -r NAME`",
        "select" => "`select` asks at a terminal",
        "function" => "`function` gives a name another meaning",
        "coproc" => "`coproc` leaves a command running in the background",
        "time" => "`time` is a keyword that is not supported",
        _ => return None,
    };
    Some(reason.to_owned())
}
