//! The fold of a log: the state of a session.

use std::collections::{BTreeMap, BTreeSet};

use super::{AssistantMessage, Entry, LogEntry, Prompt, RecordedResult, ToolCallBlock};
use crate::settings::Settings;
use crate::todo::TodoItems;

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// The state of a session, computed from its log only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    items: Vec<HistoryItem>,
    settings: Option<Settings>,
    instructions: Option<String>,
    /// Scenario of the instructions. `None` if they have to be written anew.
    instructions_scenario: Option<String>,
    todos: TodoItems,
    /// Ids of calls whose results are removed from requests.
    pruned: BTreeSet<String>,
    /// Signed content of items before this index is left out, because what it was signed over has changed.
    signed_from: usize,
    /// Number of each call by its id, also of items that a compaction removed.
    call_ids: BTreeMap<String, usize>,
    running: Option<String>,
    title: String,
    completed_turns: u64,
    invocations: u64,
    fork_of: Option<u64>,
    parent: Option<String>,
    tools: Option<Vec<String>>,
}

/// An item of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryItem {
    User(UserItem),
    Assistant {
        message: AssistantMessage,
        /// Results in order of the calls; `None` until there is one.
        results: Vec<Option<RecordedResult>>,
    },
}

/// Content for the model that it did not write.
#[derive(Clone, Debug, PartialEq)]
pub struct UserItem {
    pub source: UserSource,
    pub prompt: Prompt,
}

/// The author of a user item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSource {
    Prompt,
    /// The gate, about an earlier change.
    Gate,
    /// The engine, for example after an answer broke off.
    Engine,
    /// The summary of a compaction.
    Summary,
}

impl History {
    /// Folds a log.
    pub fn fold<'e>(entries: impl IntoIterator<Item = &'e LogEntry>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.apply(entry);
        }
        history
    }

    /// Applies the next entry. Entries of a later version have no effect.
    pub fn apply(&mut self, entry: &LogEntry) {
        let Some(known) = entry.known() else { return };
        match known {
            Entry::Started { settings, fork_of, parent, tools } => {
                self.settings = Some(settings.clone());
                (self.fork_of, self.parent, self.tools) = (*fork_of, parent.clone(), tools.clone());
            }
            Entry::Instructions { scenario, text } => {
                (self.instructions, self.instructions_scenario) = (Some(text.clone()), Some(scenario.clone()));
            }
            Entry::Settings { settings } => self.settings = Some(settings.clone()),
            Entry::InvocationStarted { invocation } => {
                self.invocations += 1;
                self.running = Some(invocation.clone());
            }
            Entry::Prompt(prompt) => {
                if self.title.is_empty() {
                    self.title = one_line(&prompt.text);
                }
                self.push_user(UserSource::Prompt, prompt.clone());
            }
            Entry::Message { text, .. } => self.push_user(UserSource::Gate, Prompt::text(text)),
            Entry::Notice { text } => self.push_user(UserSource::Engine, Prompt::text(text)),
            Entry::Assistant(message) => {
                for call in message.calls() {
                    let number = self.call_ids.len() + 1;
                    self.call_ids.entry(call.id.clone()).or_insert(number);
                }
                let results = vec![None; message.calls().count()];
                self.items.push(HistoryItem::Assistant { message: message.clone(), results });
            }
            Entry::Result(result) => self.answer(result),
            Entry::Todos { writer, change } => self.todos.apply(change, *writer, entry.time_ms),
            Entry::Pruned { calls } => {
                self.pruned.extend(calls.iter().cloned());
                self.signed_from = self.items.len();
            }
            Entry::Compacted { summary, kept, .. } => {
                let removed = self.items.len().saturating_sub(*kept);
                self.items.drain(..removed);
                let prompt = Prompt::text(summary);
                self.items.insert(0, HistoryItem::User(UserItem { source: UserSource::Summary, prompt }));
                self.signed_from = self.items.len();
                // The cached prefix is gone, so the instructions may change as well.
                self.instructions_scenario = None;
            }
            Entry::LimitRaised { .. } => {}
            Entry::InvocationEnded { reason, .. } => {
                self.running = None;
                self.completed_turns += u64::from(reason.is_some());
            }
        }
    }

    fn push_user(&mut self, source: UserSource, prompt: Prompt) {
        self.items.push(HistoryItem::User(UserItem { source, prompt }));
    }

    /// Stores a result with the last open call of its id. A result without an open call has no effect.
    fn answer(&mut self, result: &RecordedResult) {
        for item in self.items.iter_mut().rev() {
            let HistoryItem::Assistant { message, results } = item else { continue };
            if let Some(at) = message.calls().position(|call| call.id == result.call) {
                results[at].get_or_insert_with(|| result.clone());
                return;
            }
        }
    }

    /// Returns the conversation from the last compaction on.
    pub fn items(&self) -> &[HistoryItem] {
        &self.items
    }

    /// Returns the current settings; `None` for an empty log.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// Returns the stored system prompt.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Returns the scenario that the stored system prompt is for. `None` if it has to be written anew.
    pub fn instructions_scenario(&self) -> Option<&str> {
        self.instructions_scenario.as_deref()
    }

    pub fn todos(&self) -> &TodoItems {
        &self.todos
    }

    /// Returns the first prompt on one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the number of invocations that ended without a failure.
    pub fn completed_turns(&self) -> u64 {
        self.completed_turns
    }

    /// Returns the number of started invocations.
    pub fn invocations(&self) -> u64 {
        self.invocations
    }

    /// Returns the invocation that has not ended.
    pub fn running(&self) -> Option<&str> {
        self.running.as_deref()
    }

    /// Returns the request whose conversation this session continues.
    pub fn fork_of(&self) -> Option<u64> {
        self.fork_of
    }

    /// Returns the session that delegated to this session.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// Returns the tools that a delegation allows.
    pub fn allowed_tools(&self) -> Option<&[String]> {
        self.tools.as_deref()
    }

    /// `true` if the result of this call is removed from requests.
    pub fn is_pruned(&self, call: &str) -> bool {
        self.pruned.contains(call)
    }

    /// `true` if signed content of the item at this index can be sent back.
    pub(crate) fn keeps_signed(&self, index: usize) -> bool {
        index >= self.signed_from
    }

    pub(crate) fn knows_call(&self, id: &str) -> bool {
        self.call_ids.contains_key(id)
    }

    /// Returns the number of a call in the session, from 1.
    pub(crate) fn call_number(&self, id: &str) -> Option<usize> {
        self.call_ids.get(id).copied()
    }

    pub(crate) fn call_count(&self) -> usize {
        self.call_ids.len()
    }

    /// Returns the calls without a result, in order.
    pub fn dangling_calls(&self) -> Vec<ToolCallBlock> {
        let mut dangling = Vec::new();
        for item in &self.items {
            if let HistoryItem::Assistant { message, results } = item {
                let open = message.calls().zip(results).filter(|(_, result)| result.is_none());
                dangling.extend(open.map(|(call, _)| call.clone()));
            }
        }
        dangling
    }
}

fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut title: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if line.chars().nth(MAX_TITLE_CHARS).is_some() {
        title.push('…');
    }
    title
}
