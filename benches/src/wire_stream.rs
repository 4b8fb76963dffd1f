//! Decoding a model's stream beside looking for its newlines.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use sayso_wire::stream::{
    Api, FinishReason, ModelScript, ScriptBlock, ScriptEnding, StreamEvent, ToolKind, Usage, collect,
};

use crate::clock::{self, median, milliseconds, ratio};
use crate::table::{Check, Section, Target};

/// Bytes of one read from a socket.
const CHUNK: usize = 16 << 10;
const BLOCKS: usize = 40;

/// Prose and code in pieces of a few words, as models stream them.
fn pieces(text: &str, times: usize) -> Vec<String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    (0..times).flat_map(|_| words.chunks(3).map(<[_]>::concat)).collect()
}

/// A long answer that thinks, speaks and calls tools.
fn script() -> ModelScript {
    let prose =
        "The parser reads one line at a time, and keeps what the last chunk left over; so a cut anywhere is the same. ";
    let code = "fn main() {\n    let name = \"world\";\n    println!(\"Hello, {name}!\\n\");\n}\n";
    let arguments = serde_json::json!({"file_path": "/work/src/main.rs", "content": code.repeat(20)}).to_string();
    let mut blocks =
        vec![ScriptBlock::Thinking { pieces: pieces(prose, 200), opaque: Some("c2lnbmF0dXJl".repeat(20)) }];
    for number in 0..BLOCKS {
        blocks.push(ScriptBlock::Text { pieces: pieces(prose, 50) });
        blocks.push(ScriptBlock::ToolCall {
            id: format!("call_{number}"),
            name: "Write".to_owned(),
            kind: ToolKind::Function,
            pieces: pieces(&arguments, 1),
            opaque: None,
        });
    }
    ModelScript {
        id: "answer".to_owned(),
        model: "model".to_owned(),
        blocks,
        usage: Usage { input: Some(20_000), output: Some(9_000), cache_read: Some(18_000), ..Usage::default() },
        ending: ScriptEnding::Finished(FinishReason::ToolUse),
    }
}

/// Measures every dialect.
pub fn section(rounds: usize) -> Result<Section> {
    let note = format!("one stream in chunks of {CHUNK} bytes; CPU, median of {rounds} rounds in turns");
    let title = "Streams: decoding beside memchr's search for newlines";
    let mut section = Section::new(title, &["MB", "ms", "newlines ms", "times newlines"], "MB/s").note(note);
    for api in Api::ALL {
        let bytes = api.encode(&script());
        let answer = collect::from_stream(api, &bytes);
        ensure!(answer.problems.is_empty() && answer.finish.is_some(), "{api:?}: the stream is not decoded right");
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..=rounds {
            times[0].push(clock::time(|| decode(api, &bytes)).1);
            times[1].push(clock::time(|| newlines(&bytes)).1);
        }
        // The first round is for warming up.
        let [ours, scan] = times.each_mut().map(|times| median(&mut times[1..]));
        let megabytes = bytes.len() as f64 / 1e6;
        let cells = vec![
            format!("{megabytes:.1}"),
            milliseconds(ours),
            milliseconds(scan),
            format!("{:.1}", ratio(ours, scan)),
        ];
        let check = Check::new(megabytes / ours.max(Duration::from_nanos(1)).as_secs_f64(), Target::AtLeast(500.0));
        section.row(format!("{api:?}"), cells, Some(check));
    }
    Ok(section)
}

fn decode(api: Api, bytes: &[u8]) -> usize {
    let mut decoder = api.decoder();
    let mut length = 0;
    for chunk in bytes.chunks(CHUNK) {
        decoder.feed(chunk, &mut |positioned| match positioned.event {
            StreamEvent::Text { text, .. } | StreamEvent::Thinking { text, .. } => length += text.len(),
            StreamEvent::ToolArguments { piece, .. } => length += piece.len(),
            other => drop(black_box(other)),
        });
    }
    black_box(length)
}

fn newlines(bytes: &[u8]) -> usize {
    black_box(bytes.chunks(CHUNK).map(|chunk| memchr::memchr_iter(b'\n', chunk).map(|at| at & 1).sum::<usize>()).sum())
}
