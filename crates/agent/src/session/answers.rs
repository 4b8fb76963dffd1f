//! Answers in the log: ids of calls, and answers that did not reach their end.

use std::collections::BTreeSet;

use super::invocation::{InvocationEnd, InvocationRun, NextStep};
use crate::log::{AssistantBlock, AssistantMessage, Completeness, Entry, History, HistoryItem};
use crate::model::ReceivedAnswer;
use crate::settings::Settings;

/// Number of answers in a row that may break off or reach the output limit.
const MAX_UNFINISHED: u32 = 3;

/// The last item of a conversation.
enum LastItem {
    None,
    /// A prompt, or calls with their results.
    Open,
    Answer(String),
    PartialAnswer,
}

impl InvocationRun<'_> {
    /// `true` if the model has to answer. Without a new prompt, a complete answer at the end of the conversation leaves no work.
    pub(super) fn has_open_request(&mut self) -> Result<bool, InvocationEnd> {
        let last = self.session.lock_history(|history| match history.items().last() {
            None => LastItem::None,
            Some(HistoryItem::User(_)) => LastItem::Open,
            Some(HistoryItem::Assistant { message, .. }) if message.calls().next().is_some() => LastItem::Open,
            Some(HistoryItem::Assistant { message, .. }) => match message.completeness {
                Completeness::Complete => LastItem::Answer(message.last_text().to_owned()),
                Completeness::Partial => LastItem::PartialAnswer,
            },
        });
        match last {
            LastItem::None => Ok(false),
            LastItem::Open => Ok(true),
            LastItem::Answer(text) => {
                self.last_text = text;
                Ok(false)
            }
            LastItem::PartialAnswer => {
                self.session.append(Entry::Notice { text: "Go on where your last answer ended.".to_owned() })?;
                Ok(true)
            }
        }
    }

    /// Appends a message that lets the model finish its answer.
    pub(super) fn ask_to_continue(&mut self, text: &str) -> Result<NextStep, InvocationEnd> {
        self.unfinished += 1;
        if self.unfinished > MAX_UNFINISHED {
            let message = format!("{MAX_UNFINISHED} answers in a row did not reach their end");
            let hint = "send a prompt to go on, or choose another model".to_owned();
            return Err(InvocationEnd::Failed { message, hint });
        }
        self.session.append(Entry::Notice { text: text.to_owned() })?;
        Ok(NextStep::Continue)
    }

    /// Stores an answer, with an id for each call that is unique in the session.
    pub(super) fn record_answer(
        &mut self,
        settings: &Settings,
        answer: &ReceivedAnswer,
    ) -> Result<AssistantMessage, InvocationEnd> {
        let mut message =
            AssistantMessage::from_response(settings.dialect, &settings.model, answer.response(), answer.request);
        self.session.lock_history(|history| message.choose_call_ids(history));
        if !message.last_text().is_empty() {
            message.last_text().clone_into(&mut self.last_text);
        }
        if !message.blocks.is_empty() {
            self.session.append(Entry::Assistant(message.clone()))?;
        }
        Ok(message)
    }
}

impl AssistantMessage {
    /// Replaces ids of calls that are missing or were used before.
    fn choose_call_ids(&mut self, history: &History) {
        let mut used: BTreeSet<String> = BTreeSet::new();
        let mut next = history.call_count();
        for block in &mut self.blocks {
            let AssistantBlock::ToolCall(call) = block else { continue };
            if call.id.is_empty() || history.knows_call(&call.id) || used.contains(&call.id) {
                loop {
                    next += 1;
                    call.id = crate::dialect::own_call_id(next);
                    if !history.knows_call(&call.id) && !used.contains(&call.id) {
                        break;
                    }
                }
            }
            used.insert(call.id.clone());
        }
    }
}
