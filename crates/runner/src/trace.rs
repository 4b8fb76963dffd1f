//! The trace of `set -x` on standard error.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use sayso_shell::program::{Condition, UnexpandedWord};

use crate::shell::Shell;
use crate::walk::{Stop, Walker};

impl Walker<'_> {
    pub(crate) fn trace_loop(&self, variable: &str, words: &[UnexpandedWord], shell: &Shell) {
        if shell.options.traces {
            let written = words.iter().filter_map(|word| self.program().source.get(word.span.clone()));
            let words: Vec<&str> = written.collect();
            write(format!("for {variable} in {}", words.join(" ")).as_bytes(), shell);
        }
    }

    /// Writes a condition as it is written in the script.
    pub(crate) fn trace_condition(&self, condition: &Condition, shell: &Shell) -> Result<(), Stop> {
        self.check()?;
        if shell.options.traces {
            let (start, end) = bounds(condition);
            let text = self.program().source.get(start..end).unwrap_or_default();
            write(format!("[[ {text} ]]").as_bytes(), shell);
        }
        Ok(())
    }
}

/// Writes assignments and words of a command.
pub(crate) fn trace(assignments: &[(OsString, OsString)], argv: &[OsString], shell: &Shell) {
    if !shell.options.traces {
        return;
    }
    for (name, value) in assignments {
        let shown = [name.as_bytes(), b"=", &quoted_value(value.as_bytes())].concat();
        write(&shown, shell);
    }
    if !argv.is_empty() {
        let words: Vec<Vec<u8>> = argv.iter().map(|word| quoted(word.as_bytes())).collect();
        write(&words.join(&b' '), shell);
    }
}

/// First and last byte of a condition's words.
fn bounds(condition: &Condition) -> (usize, usize) {
    match condition {
        Condition::Not(inner) => bounds(inner),
        Condition::And(left, right) | Condition::Or(left, right) => (bounds(left).0, bounds(right).1),
        Condition::Unary(_, word) => (word.span.start, word.span.end),
        Condition::Matches(left, right) | Condition::Differs(left, right) => (left.span.start, right.span.end),
    }
}

fn write(text: &[u8], shell: &Shell) {
    let mut line = vec![b'+'; shell.depth + 1];
    line.push(b' ');
    line.extend_from_slice(text);
    line.push(b'\n');
    // Standard error may be closed.
    let _ = shell.descriptors.write(2, &line);
}

/// A value behind `NAME=`, where an empty one needs no quotes.
fn quoted_value(value: &[u8]) -> Vec<u8> {
    if value.is_empty() { Vec::new() } else { quoted(value) }
}

/// A word in quotes, if it needs them.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    if word.iter().any(u8::is_ascii_control) {
        return ansi_quoted(word);
    }
    let is_special = |byte: &u8| b" '\"\\|&;()<>!{}*[]?^$`".contains(byte);
    let is_plain = !word.iter().any(is_special) && !word.starts_with(b"#") && !word.starts_with(b"~");
    if !word.is_empty() && is_plain {
        return word.to_vec();
    }
    let mut shown = vec![b'\''];
    for byte in word {
        if *byte == b'\'' { shown.extend_from_slice(b"'\\''") } else { shown.push(*byte) }
    }
    shown.push(b'\'');
    shown
}

/// A word as `$'…'`.
pub(crate) fn ansi_quoted(word: &[u8]) -> Vec<u8> {
    let mut shown = b"$'".to_vec();
    for byte in word {
        match byte {
            b'\n' => shown.extend_from_slice(b"\\n"),
            b'\t' => shown.extend_from_slice(b"\\t"),
            b'\r' => shown.extend_from_slice(b"\\r"),
            7 => shown.extend_from_slice(b"\\a"),
            8 => shown.extend_from_slice(b"\\b"),
            11 => shown.extend_from_slice(b"\\v"),
            12 => shown.extend_from_slice(b"\\f"),
            27 => shown.extend_from_slice(b"\\E"),
            b'\'' | b'\\' => shown.extend_from_slice(&[b'\\', *byte]),
            byte if byte.is_ascii_control() => shown.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => shown.push(*byte),
        }
    }
    shown.push(b'\'');
    shown
}
