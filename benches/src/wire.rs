//! Model requests: what reading one costs, and counting its tokens when it comes again.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sayso_testkit::requests::{DIALECTS, agent_request, texts};
use sayso_wire::tokens::{TokenCounter, Tokenizer, Tokens, count};

use crate::clock::{self, median, milliseconds, ratio};
use crate::table::{Check, Section, Target, thousands};

/// A first request of an agent, and one with a long history.
const SIZES: [(&str, usize); 2] = [("80 kB", 80_000), ("1 MB", 1_000_000)];

/// Measures tokens, and what every reader of a request is compared with.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    Ok(vec![tokens(rounds)?, parse(rounds)?])
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
        let tokenizer = Tokenizer::of_model(model);
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

fn parse(rounds: usize) -> Result<Section> {
    let note = format!("CPU of `serde_json::from_slice::<Value>`, median of {rounds} rounds");
    let columns = ["bytes", "ms"];
    let mut section = Section::new("A request as a `serde_json::Value`", &columns, "MB/s").note(note);
    for dialect in DIALECTS {
        for (name, size) in SIZES {
            let request = agent_request(dialect, size);
            serde_json::from_slice::<serde_json::Value>(&request).context("the request is no JSON")?;
            let time = measure(rounds * 10, |_| serde_json::from_slice::<serde_json::Value>(&request));
            let speed = request.len() as f64 / 1e6 / time.as_secs_f64();
            let cells = vec![thousands(request.len()), milliseconds(time)];
            section.row(format!("{dialect}, {name}"), cells, Some(Check::note(speed)));
        }
    }
    Ok(section)
}
