//! The builtin `echo`, with the options of bash.

use super::escapes::{Dialect, Rest, unescape};
use super::{Arguments, write};
use crate::shell::Shell;
use crate::walk::Step;

pub(super) fn echo(arguments: &Arguments<'_>, shell: &Shell) -> Step {
    let is_option = |word: &&&[u8]| {
        word.len() > 1 && word[0] == b'-' && word[1..].iter().all(|letter| matches!(letter, b'n' | b'e' | b'E'))
    };
    let options = arguments.iter().take_while(is_option).count();
    let (mut ends_line, mut has_escapes) = (true, false);
    for letter in arguments[..options].concat() {
        match letter {
            b'n' => ends_line = false,
            b'e' => has_escapes = true,
            b'E' => has_escapes = false,
            _ => {}
        }
    }
    let text = arguments[options..].join(&b' ');
    let mut output = Vec::with_capacity(text.len() + 1);
    if has_escapes {
        ends_line &= unescape(&text, Dialect::Echo, &mut output) == Rest::Continues;
    } else {
        output = text;
    }
    if ends_line {
        output.push(b'\n');
    }
    write("echo", &output, shell)
}
