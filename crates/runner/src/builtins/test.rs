//! The builtins `test` and `[`: files, texts and numbers.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use sayso_shell::program::UnaryTest;

use super::Arguments;
use crate::compound::passes;
use crate::files;
use crate::shell::Shell;

/// A wrong expression, as a message.
type Outcome = Result<bool, Vec<u8>>;

pub(super) fn bracket(arguments: &Arguments<'_>, shell: &Shell) -> u8 {
    if let [operands @ .., b"]"] = arguments {
        return test("[", operands, shell);
    }
    shell.complain("[: missing `]'");
    2
}

pub(super) fn test(name: &str, operands: &Arguments<'_>, shell: &Shell) -> u8 {
    match evaluate(operands, shell) {
        Ok(holds) => u8::from(!holds),
        Err(message) => {
            shell.complain_bytes(&[name.as_bytes(), b": ", &message].concat());
            2
        }
    }
}

/// Evaluates operands by their number, as POSIX has it.
fn evaluate(operands: &Arguments<'_>, shell: &Shell) -> Outcome {
    match operands {
        [] => Ok(false),
        [only] => Ok(!only.is_empty()),
        [b"!", only] => Ok(only.is_empty()),
        [operator, operand] => unary(operator, operand, shell),
        [left, operator, right] => match binary(left, operator, right, shell) {
            Some(outcome) => outcome,
            None if *left == b"!" => Ok(!evaluate(&operands[1..], shell)?),
            None if *left == b"(" && *right == b")" => evaluate(&operands[1..2], shell),
            None => Err([*operator, b": binary operator expected"].concat()),
        },
        [b"!", rest @ ..] if rest.len() == 3 => Ok(!evaluate(rest, shell)?),
        [b"(", inner @ .., b")"] if inner.len() == 2 => evaluate(inner, shell),
        _ => Err(b"too many arguments".to_vec()),
    }
}

fn unary(operator: &[u8], operand: &[u8], shell: &Shell) -> Outcome {
    let test = match operator {
        b"-e" => UnaryTest::Exists,
        b"-f" => UnaryTest::File,
        b"-d" => UnaryTest::Directory,
        b"-s" => UnaryTest::Filled,
        b"-r" => UnaryTest::Readable,
        b"-w" => UnaryTest::Writable,
        b"-x" => UnaryTest::Executable,
        b"-L" | b"-h" => UnaryTest::SymbolicLink,
        b"-z" => UnaryTest::Empty,
        b"-n" => UnaryTest::NotEmpty,
        _ => return rare_unary(operator, operand, shell),
    };
    Ok(passes(test, operand, shell))
}

fn rare_unary(operator: &[u8], operand: &[u8], shell: &Shell) -> Outcome {
    let metadata = || files::metadata(&shell.absolute(operand)).filter(|_| !operand.is_empty());
    let kind = || metadata().map(|metadata| metadata.file_type());
    let mode = |bit: u32| metadata().is_some_and(|metadata| metadata.mode() & bit != 0);
    Ok(match operator {
        b"-b" => kind().is_some_and(|kind| kind.is_block_device()),
        b"-c" => kind().is_some_and(|kind| kind.is_char_device()),
        b"-p" => kind().is_some_and(|kind| kind.is_fifo()),
        b"-S" => kind().is_some_and(|kind| kind.is_socket()),
        b"-u" => mode(0o4000),
        b"-g" => mode(0o2000),
        b"-k" => mode(0o1000),
        b"-O" => metadata().is_some_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw()),
        b"-G" => metadata().is_some_and(|metadata| metadata.gid() == rustix::process::getegid().as_raw()),
        b"-t" => is_terminal(operand, shell)?,
        _ => return Err([operator, b": unary operator expected"].concat()),
    })
}

fn is_terminal(operand: &[u8], shell: &Shell) -> Outcome {
    use std::io::IsTerminal;
    let number = integer(operand).ok_or_else(|| not_integer(operand))?;
    let file = u8::try_from(number).ok().and_then(|number| shell.descriptors.get(number));
    Ok(file.is_some_and(|file| file.is_terminal()))
}

/// Compares two operands; `None` if there is no such operator.
fn binary(left: &[u8], operator: &[u8], right: &[u8], shell: &Shell) -> Option<Outcome> {
    let newer = |left: &[u8], right: &[u8]| {
        let time = |path: &Path| files::metadata(path).map(|metadata| (metadata.mtime(), metadata.mtime_nsec()));
        time(&shell.absolute(left)) > time(&shell.absolute(right))
    };
    Some(Ok(match operator {
        b"=" | b"==" => left == right,
        b"!=" => left != right,
        b"<" => left < right,
        b">" => left > right,
        b"-nt" => newer(left, right),
        b"-ot" => newer(right, left),
        b"-ef" => files::is_same(&shell.absolute(left), &shell.absolute(right)),
        b"-eq" | b"-ne" | b"-lt" | b"-le" | b"-gt" | b"-ge" => return Some(compare(left, operator, right)),
        _ => return None,
    }))
}

fn compare(left: &[u8], operator: &[u8], right: &[u8]) -> Outcome {
    let left = integer(left).ok_or_else(|| not_integer(left))?;
    let right = integer(right).ok_or_else(|| not_integer(right))?;
    Ok(match operator {
        b"-eq" => left == right,
        b"-ne" => left != right,
        b"-lt" => left < right,
        b"-le" => left <= right,
        b"-gt" => left > right,
        _ => left >= right,
    })
}

fn not_integer(operand: &[u8]) -> Vec<u8> {
    [operand, b": integer expression expected"].concat()
}

/// A decimal number with blanks around it.
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    let text = text(bytes)?.trim_matches([' ', '\t', '\n']);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
