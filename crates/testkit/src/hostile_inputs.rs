//! Generators of inputs that have broken diff tools: repeated lines, `\r\n` among `\n`, no final newline, NUL bytes, empty files,
//! lines longer than buffers, UTF-16.

use proptest::collection::vec;
use proptest::prelude::*;

/// Generates a line with its ending.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // Few distinct lines, so that lines repeat and hunks can slide.
        8 => "[abc]{0,2}\n".prop_map(String::into_bytes),
        4 => "[ \t]{0,6}(fn|if|\\}|end|return)[a-z(){};]{0,8}\n".prop_map(String::into_bytes),
        2 => "[a-z ]{0,20}\r\n".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..12).prop_map(|mut bytes| { bytes.push(b'\n'); bytes }),
        1 => Just(b"\0\0\n".to_vec()),
        1 => Just(b"-- looks like a header\n".to_vec()),
        1 => Just(b"\\ No newline at end of file\n".to_vec()),
        1 => (1..3usize).prop_map(|size| { let mut bytes = vec![b'x'; size * 70_000]; bytes.push(b'\n'); bytes }),
    ]
}

/// Generates the content of a file.
pub fn content() -> impl Strategy<Value = Vec<u8>> {
    (vec(line(), 0..40), any::<bool>(), vec(any::<u8>(), 0..4)).prop_map(|(lines, finished, rest)| {
        let mut bytes = lines.concat();
        if !finished {
            bytes.extend(rest);
        }
        bytes
    })
}

/// Edit of a run of lines.
#[derive(Clone, Debug)]
enum Edit {
    Remove(usize),
    Insert(Vec<Vec<u8>>),
    Replace(usize, Vec<Vec<u8>>),
    Repeat(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (1..6usize).prop_map(Edit::Remove),
        vec(line(), 1..6).prop_map(Edit::Insert),
        (1..4usize, vec(line(), 1..4)).prop_map(|(count, lines)| Edit::Replace(count, lines)),
        (1..6usize).prop_map(Edit::Repeat),
    ]
}

fn edited(old: &[u8], edits: &[(prop::sample::Index, Edit)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = old.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    for (at, edit) in edits {
        let at = at.index(lines.len() + 1);
        let up_to = |count: &usize| (at + count).min(lines.len());
        match edit {
            Edit::Remove(count) => drop(lines.drain(at..up_to(count))),
            Edit::Insert(added) => drop(lines.splice(at..at, added.iter().cloned())),
            Edit::Replace(count, added) => drop(lines.splice(at..up_to(count), added.iter().cloned())),
            Edit::Repeat(count) => {
                let run = lines[at..up_to(count)].to_vec();
                lines.splice(at..at, run);
            }
        }
    }
    lines.concat()
}

/// Generates two contents; mostly the second is an edit of the first.
pub fn pair() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let related = (content(), vec((any::<prop::sample::Index>(), edit()), 0..6)).prop_map(|(old, edits)| {
        let new = edited(&old, &edits);
        (old, new)
    });
    prop_oneof![6 => related, 1 => (content(), content())]
}

/// Generates a base and two edits of it.
pub fn merge_triple() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Vec<u8>)> {
    let edits = || vec((any::<prop::sample::Index>(), edit()), 0..4);
    (content(), edits(), edits()).prop_map(|(base, ours, theirs)| {
        let (ours, theirs) = (edited(&base, &ours), edited(&base, &theirs));
        (base, ours, theirs)
    })
}

/// Generates two UTF-16 contents in either byte order.
pub fn utf16_pair() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let text = || "[a-cĀਊ🦀]{0,3}(\r?\n[a-cĀਊ🦀]{0,3}){0,20}";
    let encode = |text: &str, big: bool| -> Vec<u8> {
        let to_bytes = if big { u16::to_be_bytes } else { u16::to_le_bytes };
        format!("\u{FEFF}{text}").encode_utf16().flat_map(to_bytes).collect()
    };
    (text(), text(), any::<bool>(), any::<bool>())
        .prop_map(move |(old, new, old_big, new_big)| (encode(&old, old_big), encode(&new, new_big)))
}

/// Generates a text of few distinct lines. `breaks` is a regular expression for line endings.
fn broken_text(breaks: &'static str) -> impl Strategy<Value = String> {
    let line = "(|[ab]|[ab]{1,2}|é|€|[a-c é]{0,6})";
    proptest::string::string_regex(&format!("({line}{breaks}){{0,12}}{line}")).expect("it is a regular expression")
}

/// Generates a text as a model may send it: mostly with `\n`, sometimes with characters that Latin-1 lacks.
pub fn model_text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => broken_text("\n"),
        1 => broken_text("\r\n"),
        1 => broken_text("(\r?\n|\r|\r\r\n)"),
        1 => broken_text("\n").prop_map(|text| format!("\u{FEFF}{text}")),
        1 => (broken_text("\n"), "[🦀ł漢\u{81}\0]{1,3}").prop_map(|(text, more)| text + &more),
    ]
}

/// Generates a file in one of several encodings, with or without a byte order mark, and with any line endings.
pub fn formatted_file() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        2 => broken_text("\n"),
        2 => broken_text("\r\n"),
        4 => broken_text("\r?\n"),
        1 => broken_text("(\r?\n|\r|\r\r\n)"),
    ];
    let mark = prop_oneof![2 => Just(""), 2 => Just("\u{FEFF}"), 1 => Just("\u{FEFF}\u{FEFF}")];
    let wide = |to_bytes: fn(u16) -> [u8; 2]| move |text: &str| text.encode_utf16().flat_map(to_bytes).collect();
    let latin1 = |text: &str| -> Vec<u8> {
        let byte = |character: char| u8::try_from(character).unwrap_or(b'\x80');
        text.chars().filter(|&character| character != '\u{FEFF}').map(byte).collect()
    };
    (mark, text, 0..4).prop_map(move |(mark, text, encoding)| {
        let text = format!("{mark}{text}");
        match encoding {
            0 => text.into_bytes(),
            1 => wide(u16::to_le_bytes)(&text),
            2 => wide(u16::to_be_bytes)(&text),
            _ => latin1(&text),
        }
    })
}

/// Generates lines of the `*** Begin Patch` format in any order.
pub fn sections() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        1 => Just("*** Begin Patch".to_owned()),
        2 => "\\*\\*\\* (Add|Delete|Update) File: [ab]?",
        1 => "\\*\\*\\* (Move to: c|End of File|End Patch|Nothing)",
        3 => "@@( [ab]{1,2}| )?",
        10 => "[ +-][ ]{0,2}[ab]{0,2}",
        1 => "[ab\r]{0,2}",
    ];
    let last = prop_oneof![4 => Just("*** End Patch\n"), 1 => Just("")];
    (vec(line, 0..20), last).prop_map(|(lines, last)| format!("*** Begin Patch\n{}\n{last}", lines.join("\n")))
}
