//! The builtin `printf`, without `-v`.

use super::escapes::{Dialect, Rest, escape, unescape};
use super::format::{self, Directive};
use super::{Arguments, test, write};
use crate::shell::Shell;
use crate::trace;
use crate::walk::Step;

/// Widest field that a format may ask for.
const MAX_WIDTH: i64 = 1 << 20;

pub(super) fn printf(arguments: &Arguments<'_>, shell: &Shell) -> Step {
    let (format, values) = match arguments {
        [b"--", format, values @ ..] => (format, values),
        [option, ..] if option.len() > 1 && option[0] == b'-' && option[1].is_ascii_alphabetic() => {
            shell.complain_bytes(&[b"printf: ", &option[..2], b": invalid option"].concat());
            return Ok(usage(shell));
        }
        [format, values @ ..] if *format != b"--" => (format, values),
        _ => return Ok(usage(shell)),
    };
    let mut run = Run { values, used: 0, output: Vec::new(), status: 0, shell };
    loop {
        let before = run.used;
        let rest = run.once(format);
        if rest == Rest::Ends || run.used >= values.len() || run.used == before {
            break;
        }
    }
    let (output, status) = (run.output, run.status);
    Ok(write("printf", &output, shell)?.max(status))
}

fn usage(shell: &Shell) -> u8 {
    // Standard error may be closed.
    let _ = shell.descriptors.write(2, b"printf: usage: printf [-v var] format [arguments]\n");
    2
}

/// One use of `printf`, which repeats its format until all values are used.
struct Run<'a> {
    values: &'a Arguments<'a>,
    used: usize,
    output: Vec<u8>,
    status: u8,
    shell: &'a Shell,
}

impl Run<'_> {
    /// Goes through the format once.
    fn once(&mut self, format: &[u8]) -> Rest {
        let mut at = 0;
        while at < format.len() {
            match format[at] {
                b'\\' => at += escape(&format[at..], Dialect::Format, &mut self.output).unwrap_or(2),
                b'%' if format.get(at + 1) == Some(&b'%') => {
                    self.output.push(b'%');
                    at += 2;
                }
                b'%' => {
                    let Some((directive, length)) = format::parse(&format[at..]) else {
                        return self.invalid(&format[at..]);
                    };
                    at += length;
                    if self.directive(directive) == Rest::Ends {
                        return Rest::Ends;
                    }
                }
                byte => {
                    self.output.push(byte);
                    at += 1;
                }
            }
        }
        Rest::Continues
    }

    fn invalid(&mut self, format: &[u8]) -> Rest {
        let letter = format.iter().skip(1).find(|byte| byte.is_ascii_alphabetic() || **byte == b'(');
        if let Some(letter) = letter {
            let letter = char::from(*letter);
            self.shell.complain(&format!("printf: `{letter}': invalid format character"));
        } else {
            let shown = String::from_utf8_lossy(format);
            self.shell.complain(&format!("printf: `{shown}': missing format character"));
        }
        self.status = 1;
        Rest::Ends
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let value = self.values.get(self.used).map(|value| value.to_vec());
        self.used += usize::from(value.is_some());
        value
    }

    fn directive(&mut self, mut directive: Directive) -> Rest {
        if directive.takes_width {
            let width = self.next().map_or(0, |value| self.integer(&value)).clamp(-MAX_WIDTH, MAX_WIDTH);
            directive.is_left |= width < 0;
            directive.width = width.unsigned_abs() as usize;
        }
        if directive.takes_precision {
            let precision = self.next().map_or(0, |value| self.integer(&value)).min(MAX_WIDTH);
            directive.precision = usize::try_from(precision).ok();
        }
        let value = self.next();
        let mut rest = Rest::Continues;
        let text = match directive.conversion {
            b's' => directive.text(&value.unwrap_or_default()),
            b'c' => directive.text(&value.unwrap_or_default().iter().take(1).copied().collect::<Vec<u8>>()),
            b'b' => {
                let mut text = Vec::new();
                rest = unescape(&value.unwrap_or_default(), Dialect::FormatB, &mut text);
                directive.text(&text)
            }
            b'q' => directive.text(&quoted(&value.unwrap_or_default())),
            b'd' | b'i' => {
                let number = value.map_or(0, |value| self.integer(&value));
                directive.signed(number)
            }
            b'u' | b'o' | b'x' | b'X' => {
                let number = value.map_or(0, |value| self.integer(&value));
                directive.unsigned(number.cast_unsigned())
            }
            _ => {
                let number = value.map_or(0.0, |value| self.float(&value));
                directive.float(number)
            }
        };
        self.output.extend_from_slice(&text);
        rest
    }

    /// Reads a number; a wrong one is told and counts as far as it goes.
    fn integer(&mut self, value: &[u8]) -> i64 {
        let (number, is_whole) = format::integer(value);
        if !is_whole {
            self.shell.complain_bytes(&[b"printf: ", value, b": invalid number"].concat());
            self.status = 1;
        }
        number
    }

    fn float(&mut self, value: &[u8]) -> f64 {
        let text = test::text(value).unwrap_or_default().trim_start();
        if let Some(number) = format::character_value(value) {
            return number as f64;
        }
        let length =
            (0..=text.len()).rev().find(|end| text.get(..*end).is_some_and(|text| text.parse::<f64>().is_ok()));
        let is_whole = length == Some(text.len()) && !text.is_empty();
        if !is_whole && !value.is_empty() {
            self.shell.complain_bytes(&[b"printf: ", value, b": invalid number"].concat());
            self.status = 1;
        }
        length.and_then(|length| text[..length].parse().ok()).unwrap_or(0.0)
    }
}

/// Text that a shell reads back as one word.
fn quoted(value: &[u8]) -> Vec<u8> {
    if value.is_empty() {
        return b"''".to_vec();
    }
    if value.iter().any(u8::is_ascii_control) {
        return trace::ansi_quoted(value);
    }
    let mut shown = Vec::new();
    for (at, byte) in value.iter().enumerate() {
        let is_special = b" '\"\\|&;()<>!{}*[]?^$`,".contains(byte) || (at == 0 && matches!(byte, b'#' | b'~'));
        if is_special {
            shown.push(b'\\');
        }
        shown.push(*byte);
    }
    shown
}
