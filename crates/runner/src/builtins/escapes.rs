//! Backslash escapes of `echo -e` and `printf`.

/// The program whose escapes are read; they differ in small ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `echo -e` and `%b`: octal numbers need a leading zero, `\c` ends all output.
    Echo,
    /// `%b` also takes octal numbers without the zero.
    FormatB,
    /// The format of `printf`.
    Format,
}

/// The rest of the output is dropped, as after `\c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Continues,
    /// `\c` ends the output of the command.
    Ends,
}

/// Replaces the escapes of a whole text.
pub(super) fn unescape(text: &[u8], dialect: Dialect, output: &mut Vec<u8>) -> Rest {
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            output.push(text[at]);
            at += 1;
            continue;
        }
        match escape(&text[at..], dialect, output) {
            Some(length) => at += length,
            None => return Rest::Ends,
        }
    }
    Rest::Continues
}

/// Replaces the escape at the beginning of a text and gives its length; `None` for `\c`.
pub(super) fn escape(text: &[u8], dialect: Dialect, output: &mut Vec<u8>) -> Option<usize> {
    let Some(letter) = text.get(1) else {
        output.push(b'\\');
        return Some(1);
    };
    let simple = match letter {
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' => b'\\',
        b'\'' | b'"' | b'?' if dialect != Dialect::Echo => *letter,
        b'c' if dialect != Dialect::Format => return None,
        b'0' if dialect != Dialect::Format => {
            let (value, length) = number(&text[2..], 8, 3);
            output.push(value as u8);
            return Some(2 + length);
        }
        b'0'..=b'7' if dialect != Dialect::Echo => {
            let (value, length) = number(&text[1..], 8, 3);
            output.push(value as u8);
            return Some(1 + length);
        }
        b'x' => return Some(character(text, 2, output)),
        b'u' => return Some(character(text, 4, output)),
        b'U' => return Some(character(text, 8, output)),
        _ => {
            output.extend_from_slice(&[b'\\', *letter]);
            return Some(2);
        }
    };
    output.push(simple);
    Some(2)
}

/// Reads `\xHH`, `\uHHHH` or `\UHHHHHHHH`; without digits it stands for itself.
fn character(text: &[u8], digits: usize, output: &mut Vec<u8>) -> usize {
    let (value, length) = number(&text[2..], 16, digits);
    if length == 0 {
        output.extend_from_slice(&text[..2]);
    } else if digits == 2 {
        output.push(value as u8);
    } else if let Some(decoded) = char::from_u32(value) {
        output.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
    }
    2 + length
}

/// The number of up to `digits` digits at the beginning of a text, and its length.
fn number(text: &[u8], base: u32, digits: usize) -> (u32, usize) {
    let mut value: u32 = 0;
    let mut length = 0;
    while let Some(digit) = text.get(length).and_then(|byte| char::from(*byte).to_digit(base)) {
        if length == digits {
            break;
        }
        value = value.wrapping_mul(base).wrapping_add(digit);
        length += 1;
    }
    (value, length)
}
