//! Model requests: what reading one costs, and counting its tokens when it comes again.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sayso_testkit::requests::{DIALECTS, agent_request, texts};
use sayso_wire::tokens::{TokenCounter, Tokenizer, Tokens, count};
use sayso_wire::{Editable, ModelRequest, RequestHead};

use crate::clock::{self, median, microseconds, milliseconds, ratio};
use crate::table::{Check, Section, Target, thousands};

/// A first request of an agent, and one with a long history.
const SIZES: [(&str, usize); 2] = [("80 kB", 80_000), ("1 MB", 1_000_000)];

/// Measures how requests are read, edited and counted.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    Ok(vec![projection(rounds * 10)?, edits(rounds), tokens(rounds)?, whole_tokens(rounds)?])
}

/// The median CPU time of `work`, after one round to warm up.
fn measure<T>(rounds: usize, mut work: impl FnMut(usize) -> T) -> Duration {
    let mut times: Vec<Duration> = (0..=rounds)
        .map(|round| {
            let (result, time) = clock::time(|| work(round));
            black_box(result);
            time
        })
        .collect();
    median(&mut times[1..])
}

fn tokens(rounds: usize) -> Result<Section> {
    let note = format!(
        "CPU of counting every text of a request of 1 MB that was counted before, and one new message; from scratch, and with \
         what is remembered; median of {rounds} rounds"
    );
    let columns = ["texts", "tokens", "from scratch, ms", "again, ms"];
    let mut section = Section::new("Tokens of a re-sent history", &columns, "times cheaper").note(note);
    for (dialect, model) in DIALECTS.into_iter().zip(["claude-sonnet-4-5", "gpt-4.1", "gpt-5.5", "gemini-2.5-pro"]) {
        let tokenizer = Tokenizer::for_model(model);
        let history = texts(&agent_request(dialect, SIZES[1].1));
        // What each round adds must be new each time, and as long as what a person writes.
        let message = |round: usize| {
            format!("Round {round}. ")
                + &"Now look at the other callers too, and tell me which of them may fail. ".repeat(8)
        };
        let scratch = |round: usize| -> Tokens {
            history.iter().map(|text| count(tokenizer, text)).sum::<Tokens>() + count(tokenizer, &message(round))
        };
        let mut counter = TokenCounter::default();
        let mut again = |round: usize| -> Tokens {
            let history: Tokens = history.iter().map(|text| counter.count(tokenizer, text)).sum();
            history + counter.count(tokenizer, &message(round))
        };
        let expected = scratch(0);
        ensure!(again(0) == expected, "what is remembered is not what was counted");
        ensure!(again(0) == expected, "what is remembered changes");
        let [slow, fast] = [measure(rounds, scratch), measure(rounds, |round| again(round + 1))];
        let check = Check::new(ratio(slow, fast), Target::AtLeast(20.0));
        let cells = vec![thousands(history.len()), expected.to_string(), milliseconds(slow), milliseconds(fast)];
        section.row(dialect, cells, Some(check));
    }
    Ok(section)
}

/// The same as a surface asks for it: the tokens of a whole request, found in its bytes.
fn whole_tokens(rounds: usize) -> Result<Section> {
    let note =
        format!("CPU of counting a request of 1 MB from its bytes, with one new message; median of {rounds} rounds");
    let columns = ["from scratch, ms", "again, ms"];
    let mut section = Section::new("Tokens of a re-sent request", &columns, "times cheaper").note(note);
    for dialect in DIALECTS {
        let body: Arc<[u8]> = agent_request(dialect, SIZES[1].1).into();
        let with_more = |round: usize| -> Result<ModelRequest> {
            let mut request = read(dialect, &body);
            request.append(&format!("Round {round}: and now the other callers, please."))?;
            Ok(request)
        };
        let requests: Vec<ModelRequest> = (0..=rounds).map(with_more).collect::<Result<_>>()?;
        let slow = measure(rounds, |round| requests[round].total_tokens(&mut TokenCounter::default()));
        let mut counter = TokenCounter::default();
        read(dialect, &body).total_tokens(&mut counter);
        let fast = measure(rounds, |round| requests[round].total_tokens(&mut counter));
        let check = Check::new(ratio(slow, fast), Target::AtLeast(20.0));
        section.row(dialect, vec![milliseconds(slow), milliseconds(fast)], Some(check));
    }
    Ok(section)
}

fn path(dialect: &str) -> &'static str {
    match dialect {
        "anthropic" => "/v1/messages",
        "openai-chat" => "/v1/chat/completions",
        "openai-responses" => "/v1/responses",
        _ => "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    }
}

fn read(dialect: &str, body: &Arc<[u8]>) -> ModelRequest {
    ModelRequest::new("r", RequestHead::new(path(dialect)), Arc::clone(body))
}

/// A request in sections, beside the same bytes as a `serde_json::Value`, in turns.
fn projection(rounds: usize) -> Result<Section> {
    let note =
        format!("CPU of a request in sections and of `serde_json::from_slice::<Value>`, median of {rounds} rounds");
    let columns = ["bytes", "sections", "Value, ms", "sayso, ms"];
    let mut section = Section::new("A request in sections", &columns, "times a Value").note(note);
    for dialect in DIALECTS {
        for (name, size) in SIZES {
            let body: Arc<[u8]> = agent_request(dialect, size).into();
            serde_json::from_slice::<serde_json::Value>(&body).context("the request is no JSON")?;
            let count = read(dialect, &body).sections().count();
            ensure!(count > 20, "the request is not understood");
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..=rounds {
                ours.push(measure_once(|| read(dialect, &body)));
                theirs.push(measure_once(|| serde_json::from_slice::<serde_json::Value>(&body)));
            }
            let [ours, theirs] = [ours, theirs].map(|mut times| median(&mut times[1..]));
            let cells = vec![thousands(body.len()), thousands(count), milliseconds(theirs), milliseconds(ours)];
            let check = Check::new(ratio(ours, theirs), Target::AtMost(1.5));
            section.row(format!("{dialect}, {name}"), cells, Some(check));
        }
    }
    Ok(section)
}

fn measure_once<T>(work: impl FnOnce() -> T) -> Duration {
    let (result, time) = clock::time(work);
    black_box(result);
    time
}

/// An edit of one leaf with all that shows it made anew, beside a projection of the whole.
fn edits(rounds: usize) -> Section {
    const EDITS: u32 = 200;
    let note =
        format!("CPU of an edit of one text at 1 MB, {EDITS} a round, and of all sections, median of {rounds} rounds");
    let columns = ["edit, µs", "all, µs"];
    let mut section = Section::new("An edit of one leaf", &columns, "% of a projection").note(note);
    for dialect in DIALECTS {
        let body: Arc<[u8]> = agent_request(dialect, SIZES[1].1).into();
        let mut request = read(dialect, &body);
        let texts = request.sections().filter(|one| one.editable == Editable::Yes && one.message_index.is_some());
        let ids: Vec<_> = texts.map(|one| one.id).collect();
        let mut edit = |round: usize| {
            for number in 0..EDITS as usize {
                let text =
                    format!("Round {round}, edit {number}: what somebody would write instead of what was there.");
                let id = ids[(round * 31 + number * 7) % ids.len()];
                // Arguments of some dialects are no text.
                if request.edit_section(id, &text).is_err() {
                    drop(request.edit_section(id, "{\"edited\": true}"));
                }
            }
        };
        let (one, all) = (measure(rounds, &mut edit) / EDITS, measure(rounds, |_| read(dialect, &body)));
        let check = Check::new(ratio(one, all) * 100.0, Target::AtMost(2.0));
        section.row(dialect, vec![microseconds(one), microseconds(all)], Some(check));
    }
    section
}
