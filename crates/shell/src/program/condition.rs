//! The expression of `[[ … ]]`.

use super::reader::{Outcome, Reader};
use super::word::Context;
use super::{Condition, UnaryTest, UnexpandedWord};

/// Operands of one `&&` or `||`: each of them makes the tree one level deeper.
const MAX_OPERANDS: usize = 32;

impl Reader<'_> {
    /// Reads up to `]]`, the opening being behind.
    pub(super) fn condition(&mut self) -> Outcome<Condition> {
        let condition = self.any_of()?;
        self.skip_blanks()?;
        self.expect("]]")?;
        Ok(condition)
    }

    fn any_of(&mut self) -> Outcome<Condition> {
        let mut left = self.all_of()?;
        for _ in 0..MAX_OPERANDS {
            self.skip_blanks()?;
            if !self.take("||") {
                return Ok(left);
            }
            left = Condition::Or(Box::new(left), Box::new(self.all_of()?));
        }
        self.unsupported(self.at, format!("`[[` has more than {MAX_OPERANDS} operands"))
    }

    fn all_of(&mut self) -> Outcome<Condition> {
        let mut left = self.primary()?;
        for _ in 0..MAX_OPERANDS {
            self.skip_blanks()?;
            if !self.take("&&") {
                return Ok(left);
            }
            left = Condition::And(Box::new(left), Box::new(self.primary()?));
        }
        self.unsupported(self.at, format!("`[[` has more than {MAX_OPERANDS} operands"))
    }

    fn primary(&mut self) -> Outcome<Condition> {
        self.nested(|reader| {
            reader.skip_blanks()?;
            if reader.take_reserved("!") {
                return Ok(Condition::Not(Box::new(reader.primary()?)));
            }
            let raw = reader.raw_word();
            match unary(raw) {
                Some(test) => {
                    reader.at += raw.len();
                    Ok(Condition::Unary(test, reader.operand()?))
                }
                None if raw.len() == 2 && raw.starts_with('-') => {
                    let span = reader.at..reader.at + raw.len();
                    Self::unsupported_at(span, format!("`[[` with `{raw}` is not supported"))
                }
                None => reader.comparison(),
            }
        })
    }

    fn comparison(&mut self) -> Outcome<Condition> {
        let left = self.operand()?;
        self.skip_blanks()?;
        let start = self.at;
        match self.raw_word() {
            "=" | "==" => {
                self.at += self.raw_word().len();
                Ok(Condition::Matches(left, self.operand()?))
            }
            "!=" => {
                self.at += 2;
                Ok(Condition::Differs(left, self.operand()?))
            }
            "]]" => Ok(Condition::Unary(UnaryTest::NotEmpty, left)),
            "" if self.starts_with("&&") || self.starts_with("||") => Ok(Condition::Unary(UnaryTest::NotEmpty, left)),
            "" => self.unexpected(),
            operator => {
                self.at += operator.len();
                self.unsupported(start, format!("`[[` with `{operator}` is not supported"))
            }
        }
    }

    fn operand(&mut self) -> Outcome<UnexpandedWord> {
        self.skip_blanks()?;
        if matches!(self.raw_word(), "" | "]]") { self.unexpected() } else { self.word(Context::Value) }
    }
}

fn unary(operator: &str) -> Option<UnaryTest> {
    Some(match operator {
        "-e" => UnaryTest::Exists,
        "-f" => UnaryTest::File,
        "-d" => UnaryTest::Directory,
        "-s" => UnaryTest::Filled,
        "-r" => UnaryTest::Readable,
        "-w" => UnaryTest::Writable,
        "-x" => UnaryTest::Executable,
        "-L" | "-h" => UnaryTest::SymbolicLink,
        "-z" => UnaryTest::Empty,
        "-n" => UnaryTest::NotEmpty,
        _ => return None,
    })
}
