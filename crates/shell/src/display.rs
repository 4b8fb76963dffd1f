//! Display of words, commands and uncertainties.

use std::fmt::{self, Display, Formatter};

use crate::{Certainty, RedirectAccess, SimpleCommand, Uncertainty, Word};

impl Display for Word {
    /// Writes the word as a script can have it, with quotes where its end would be unclear.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_plain = |character: char| character.is_alphanumeric() || "_-./:=,+@%^".contains(character);
        if self.certainty != Certainty::Literal {
            let text = escape_unprintable(&self.text);
            return if text.contains(' ') { write!(f, "\"{text}\"") } else { f.write_str(&text) };
        }
        if !self.text.is_empty() && self.text.chars().all(is_plain) {
            return f.write_str(&self.text);
        }
        if self.text.chars().any(|character| {
            character.is_control()
                || "\u{61C}\u{2028}\u{2029}\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}"
                    .contains(character)
        }) {
            return write!(f, "$'{}'", self.text.escape_debug());
        }
        write!(f, "'{}'", self.text.replace('\'', "'\\''"))
    }
}

impl Display for SimpleCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for word in self.assignments.iter().chain(&self.words) {
            write!(f, "{separator}{word}")?;
            separator = " ";
        }
        for redirect in &self.redirects {
            let sign = match redirect.access {
                RedirectAccess::Read => "<",
                RedirectAccess::Write => ">",
                RedirectAccess::Append => ">>",
                RedirectAccess::ReadWrite => "<>",
            };
            write!(f, "{separator}{sign} {}", redirect.target)?;
            separator = " ";
        }
        Ok(())
    }
}

impl Display for Uncertainty {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the script is too long to be read to its end"),
            Self::TooDeep => f.write_str("the script is nested too deep to be followed"),
            Self::TooMany => f.write_str("the script has more commands than are listed"),
            Self::Unterminated { opening } => write!(f, "{} has no end", quoted(opening)),
            Self::Unexpected { token } => write!(f, "{} is not understood here", quoted(token)),
            Self::UnknownProgram { word } => write!(f, "which program runs depends on {}", quoted(word)),
            Self::UnknownScript { through } => write!(f, "{} runs a script that is not in this text", quoted(through)),
            Self::UnknownArguments { through } => {
                write!(f, "{} adds arguments that are not in this text", quoted(through))
            }
            Self::Redefined { name } => write!(f, "{} is given another meaning", quoted(name)),
            Self::ChangesLookup { name } => write!(f, "setting {} changes how programs run", quoted(name)),
            Self::Unsupported { reason, .. } => f.write_str(reason),
            Self::CarriageReturn => f.write_str("carriage returns become part of words"),
            Self::Nul => f.write_str("NUL characters are dropped"),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", escape_unprintable(text))
}

/// Escapes characters that are invisible or move the text around them.
pub fn escape_unprintable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\'' | '"' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    shown
}
