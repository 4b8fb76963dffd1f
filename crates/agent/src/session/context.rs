//! The context window: pruning of old tool results, then compaction.

use std::fmt::Write;

use sayso_wire::stream::Api;

use super::invocation::{InvocationEnd, InvocationRun, NextStep};
use super::shorten::head_and_tail;
use crate::dialect::{BuiltRequest, RequestParts, build_request};
use crate::event::StepState;
use crate::host::RequestReason;
use crate::log::{AssistantBlock, AssistantMessage, Entry, History, HistoryItem, LogEntry, Prompt, UserSource};
use crate::model::{ExchangeEnd, exchange};

/// Share of the context window in percent at which old results are pruned.
const PRUNE_PERCENT: u64 = 70;
/// Share of the context window in percent at which the conversation is compacted.
const COMPACT_PERCENT: u64 = 85;
/// Share of the context window in percent that a pruning must free.
const MIN_FREED_PERCENT: u64 = 10;
/// Number of last results that a pruning keeps.
const KEPT_RESULTS: usize = 3;
/// Results below this size stay.
const MIN_PRUNED_BYTES: usize = 400;
/// Bytes of a body per token, as an estimate before the API has counted.
const BYTES_PER_TOKEN: u64 = 4;
/// Size of the transcript for a compaction in bytes, if the window is unknown.
const DEFAULT_TRANSCRIPT_BYTES: usize = 300_000;
const MIN_TRANSCRIPT_BYTES: usize = 4_000;
/// Maximum size of one result within the transcript, in bytes.
const TRANSCRIPT_RESULT_BYTES: usize = 2_000;
/// Maximum length of a summary, in tokens.
const SUMMARY_TOKENS: u64 = 8_000;
/// Number of attempts to make a compaction fit.
const COMPACTION_ATTEMPTS: usize = 4;

const COMPACTION_PROMPT: &str = "\
This request is a compaction of a conversation between a user and a coding agent. The conversation has become too long for the context \
window. Your answer replaces it: the agent will go on with your summary alone.

Write the summary under these headings:
- Task: each request of the user, as literally as possible, with all decisions and corrections.
- Done: the changes so far, by file, with the reason; denied changes with the reason of the denial.
- State: current state of the files, of commands and tests, and open problems with their exact messages.
- Facts: paths, names, signatures and commands that the agent needs again.
- Next: the next steps.

Write no introduction. Do not call tools.";

impl InvocationRun<'_> {
    /// Prunes and compacts as far as the estimated size of the next request demands.
    pub(super) async fn fit_context(&mut self, built: BuiltRequest) -> Result<BuiltRequest, InvocationEnd> {
        let Some(window) = self.context_window() else { return Ok(built) };
        if self.estimated_tokens(&built) * 100 < window * PRUNE_PERCENT {
            return Ok(built);
        }
        let mut built = built;
        // Each pruning costs the prompt cache, so it has to free a good part of the window.
        let min_bytes = usize::try_from(window * BYTES_PER_TOKEN * MIN_FREED_PERCENT / 100).unwrap_or(usize::MAX);
        if self.prune(min_bytes)? {
            built = self.build()?;
        }
        if self.estimated_tokens(&built) * 100 >= window * COMPACT_PERCENT && self.can_compact() {
            self.compact().await?;
            built = self.prepare_request().await?;
        }
        Ok(built)
    }

    /// Makes room after the upstream rejected a request for its size. Returns the end of the invocation if there is none to make.
    pub(super) async fn recover_from_overflow(&mut self, message: String) -> Result<NextStep, InvocationEnd> {
        self.overflows += 1;
        if self.overflows == 1 && self.prune(1)? {
            return Ok(NextStep::Continue);
        }
        if self.overflows <= 3 && self.can_compact() {
            self.compact().await?;
            return Ok(NextStep::Continue);
        }
        let hint = "start a new session, attach less, or choose a model with a larger context window".to_owned();
        Err(InvocationEnd::Failed { message, hint })
    }

    fn estimated_tokens(&self, built: &BuiltRequest) -> u64 {
        let bytes = built.body.len() as u64;
        let totals = &self.totals;
        if totals.context_tokens > 0 && bytes >= totals.last_body_bytes && totals.last_body_bytes > 0 {
            return totals.context_tokens + (bytes - totals.last_body_bytes) / BYTES_PER_TOKEN;
        }
        bytes / BYTES_PER_TOKEN
    }

    /// Removes old results from requests. Returns `false` if they have less than `min_bytes`.
    fn prune(&mut self, min_bytes: usize) -> Result<bool, InvocationEnd> {
        let (calls, bytes) = self.session.lock_history(prunable);
        if bytes < min_bytes {
            return Ok(false);
        }
        let text = format!("removed {} old tool results from the context ({bytes} bytes)", calls.len());
        self.session.append(Entry::Pruned { calls })?;
        self.totals.last_body_bytes = 0;
        self.status(StepState::Pruned, text, None);
        Ok(true)
    }

    /// `true` if a compaction would remove items.
    fn can_compact(&self) -> bool {
        self.session.lock_history(|history| kept_items(history, 0) < history.items().len() && history.items().len() > 1)
    }

    /// Replaces the older part of the conversation by a summary of the model.
    async fn compact(&mut self) -> Result<(), InvocationEnd> {
        let settings = self.settings();
        let window = self.context_window();
        let mut limit = window.map_or(DEFAULT_TRANSCRIPT_BYTES, |window| {
            usize::try_from(window * BYTES_PER_TOKEN / 2).unwrap_or(DEFAULT_TRANSCRIPT_BYTES)
        });
        let kept_bytes = window
            .map_or(DEFAULT_TRANSCRIPT_BYTES / 8, |window| usize::try_from(window * BYTES_PER_TOKEN / 10).unwrap_or(0));
        let full = self.session.lock_history(transcript);
        for _ in 0..COMPACTION_ATTEMPTS {
            self.status(StepState::Compacting, "summarising the conversation".to_owned(), None);
            let text = head_and_tail(&full, limit.max(MIN_TRANSCRIPT_BYTES), 0);
            let prompt =
                Prompt::text(format!("Summarise this conversation.\n\n<conversation>\n{text}\n</conversation>"));
            let history = History::fold(&[LogEntry::new(0, Entry::Prompt(prompt))]);
            let parts = RequestParts {
                settings: &settings,
                instructions: COMPACTION_PROMPT,
                tools: &[],
                max_output_tokens: SUMMARY_TOKENS,
                cache_key: "",
            };
            let request = self.request(build_request(&history, &parts), RequestReason::Compaction, &settings);
            let end = {
                // The text of a summary is no answer: surfaces see its request, and the summary when it is complete.
                let emit = |kind| match kind {
                    crate::event::LiveEventKind::TextDelta { .. } => {}
                    kind => self.emit(kind),
                };
                exchange(self.session.host(), self.interrupt, request, &emit).await
            };
            match end {
                ExchangeEnd::Answered(answer) => {
                    self.count_usage(&settings, answer.response());
                    return self.store_summary(settings.dialect, &settings.model, &answer, kept_bytes);
                }
                ExchangeEnd::Overflow { .. } => limit /= 2,
                ExchangeEnd::Interrupted(_) => return Err(InvocationEnd::Interrupted),
                ExchangeEnd::Cancelled => return Err(InvocationEnd::Cancelled),
                ExchangeEnd::BrokenOff { message, .. } => {
                    let hint = "send a prompt to try again".to_owned();
                    return Err(InvocationEnd::Failed { message: format!("the compaction failed: {message}"), hint });
                }
                ExchangeEnd::Failed { message, hint } => {
                    return Err(InvocationEnd::Failed { message: format!("the compaction failed: {message}"), hint });
                }
            }
        }
        let message = "the conversation does not fit into the context window, not even for a summary".to_owned();
        let hint = "choose a model with a larger context window, or start a new session".to_owned();
        Err(InvocationEnd::Failed { message, hint })
    }

    fn store_summary(
        &mut self,
        dialect: Api,
        model: &str,
        answer: &crate::model::ReceivedAnswer,
        kept_bytes: usize,
    ) -> Result<(), InvocationEnd> {
        let message = AssistantMessage::from_response(dialect, model, answer.response(), answer.request);
        let texts: Vec<&str> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                AssistantBlock::Text { text, .. } => Some(text.trim()),
                _ => None,
            })
            .collect();
        let summary = texts.join("\n");
        if summary.is_empty() {
            let message = "the compaction failed: the model gave no summary".to_owned();
            return Err(InvocationEnd::Failed { message, hint: "send a prompt to try again".to_owned() });
        }
        // After an overflow the kept items must not be the cause of the next one.
        let kept_bytes = if self.overflows > 1 { 0 } else { kept_bytes };
        let kept = self.session.lock_history(|history| kept_items(history, kept_bytes));
        self.session.append(Entry::Compacted { summary, kept, request: answer.request })?;
        self.totals.context_tokens = 0;
        self.totals.last_body_bytes = 0;
        Ok(())
    }
}

/// Returns the calls whose results can be pruned, and the size of the results.
fn prunable(history: &History) -> (Vec<String>, usize) {
    let mut calls = Vec::new();
    let (mut bytes, mut seen) = (0, 0);
    for item in history.items().iter().rev() {
        let HistoryItem::Assistant { results, .. } = item else { continue };
        for result in results.iter().rev().flatten() {
            seen += 1;
            if seen > KEPT_RESULTS && result.text.len() >= MIN_PRUNED_BYTES && !history.is_pruned(&result.call) {
                bytes += result.text.len();
                calls.push(result.call.clone());
            }
        }
    }
    calls.reverse();
    (calls, bytes)
}

/// Returns the number of last items that stay beside a summary: prompts without an answer, and items of this total size.
fn kept_items(history: &History, max_bytes: usize) -> usize {
    let trailing = history.items().iter().rev().take_while(|item| matches!(item, HistoryItem::User(_))).count();
    let mut total = 0;
    let mut kept = 0;
    for item in history.items().iter().rev() {
        total += match item {
            HistoryItem::User(user) if kept < trailing && user.source != UserSource::Summary => 0,
            HistoryItem::User(user) => user.prompt.text.len(),
            HistoryItem::Assistant { message, results } => {
                let arguments: usize = message.calls().map(|call| call.arguments.len()).sum();
                arguments + results.iter().flatten().map(|result| result.text.len()).sum::<usize>() + 1
            }
        };
        if total > max_bytes {
            break;
        }
        kept += 1;
    }
    // A summary of all but the first item gains nothing.
    kept.min(history.items().len().saturating_sub(1))
}

/// Writes a conversation as text.
fn transcript(history: &History) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for item in history.items() {
        match item {
            HistoryItem::User(user) => {
                for file in &user.prompt.files {
                    let _ = writeln!(text, "User attached {}.", file.path);
                }
                let author = if user.source == UserSource::Summary { "Earlier summary" } else { "User" };
                let _ = writeln!(text, "{author}: {}\n", user.prompt.text);
            }
            HistoryItem::Assistant { message, results } => {
                for block in &message.blocks {
                    if let AssistantBlock::Text { text: said, .. } = block {
                        let _ = writeln!(text, "Agent: {said}\n");
                    }
                }
                for (call, result) in message.calls().zip(results) {
                    let arguments = head_and_tail(&call.arguments, TRANSCRIPT_RESULT_BYTES, 0);
                    let _ = writeln!(text, "Agent calls {}: {arguments}", call.name);
                    let result = result.as_ref().map_or("cancelled", |result| result.text.as_str());
                    let _ = writeln!(text, "Result: {}\n", head_and_tail(result, TRANSCRIPT_RESULT_BYTES, 0));
                }
            }
        }
    }
    text
}
