//! Execution of tool calls.

use sayso_tools::{Step, ToolOutput};
use serde_json::Value;

use super::invocation::{InvocationEnd, InvocationRun, means_continue, means_stop};
use super::prompts::image_data;
use super::repeats::Repetition;
use crate::dialect::{APPLY_PATCH_NAME, CANCELLED_RESULT};
use crate::event::{LiveEventKind, StepState};
use crate::host::{ActionResult, CallOrigin, SurfaceAnswer, SurfaceRequest, ToolRequest};
use crate::log::{AssistantMessage, Entry, ImageData, RecordedResult, ToolCallBlock};
use crate::proposed::ProposedSet;
use crate::todo::{TodoChange, TodoWriter};

/// Maximum length of a summary, in characters.
const MAX_SUMMARY_CHARS: usize = 120;
/// Arguments that name the target of a call, by priority.
const TARGET_ARGUMENTS: [&str; 10] =
    ["path", "file_path", "command", "pattern", "url", "description", "question", "query", "session", "prompt"];

/// The result of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct CallResult {
    pub(super) text: String,
    pub(super) is_error: bool,
    pub(super) images: Vec<ImageData>,
    pub(super) change: Option<u64>,
}

impl CallResult {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, ..Self::default() }
    }
}

impl From<ToolOutput> for CallResult {
    fn from(output: ToolOutput) -> Self {
        Self { images: image_data(&output.images), text: output.text, is_error: output.is_error, change: None }
    }
}

impl From<ActionResult> for CallResult {
    fn from(result: ActionResult) -> Self {
        Self { text: result.message, is_error: result.outcome.is_error(), images: Vec::new(), change: result.change }
    }
}

impl InvocationRun<'_> {
    /// Executes the calls of a message in order, and records each result.
    pub(super) async fn execute_calls(&mut self, message: &AssistantMessage) -> Result<(), InvocationEnd> {
        for call in message.calls() {
            if self.interrupt.is_triggered() {
                return Err(InvocationEnd::Interrupted);
            }
            let tool = tool_name(&call.name);
            let arguments_json = call.value().map_or_else(|_| call.arguments.clone(), |value| value.to_string());
            self.emit(LiveEventKind::ToolCall {
                call: call.id.clone(),
                tool: tool.to_owned(),
                summary: summary(tool, &arguments_json),
                arguments_json,
            });
            let started_ms = self.session.host().now_ms();
            let origin = CallOrigin {
                session: self.session.id().to_owned(),
                parent: self.session.identity().parent.clone(),
                invocation: self.invocation.to_owned(),
                call: call.id.clone(),
                tool: tool.to_owned(),
                reason: message.last_text().trim().to_owned(),
                scenario: self.session.settings().scenario,
            };
            let result = self.execute(&origin, call).await;
            let (result, end) = match result {
                Ok(result) => (result, None),
                Err(end @ InvocationEnd::Unrecorded(_)) => return Err(end),
                Err(end) => (CallResult::error(CANCELLED_RESULT), Some(end)),
            };
            self.session.append(Entry::Result(RecordedResult {
                call: call.id.clone(),
                text: result.text.clone(),
                is_error: result.is_error,
                images: result.images,
                change: result.change,
            }))?;
            let duration_ms = self.session.host().now_ms().saturating_sub(started_ms);
            self.emit(LiveEventKind::ToolResult {
                call: call.id.clone(),
                tool: tool.to_owned(),
                text: result.text,
                is_error: result.is_error,
                change: result.change,
                duration_ms: u64::try_from(duration_ms).unwrap_or(0),
            });
            if let Some(end) = end {
                return Err(end);
            }
        }
        Ok(())
    }

    async fn execute(&mut self, origin: &CallOrigin, call: &ToolCallBlock) -> Result<CallResult, InvocationEnd> {
        if !self.tools.iter().any(|tool| tool.name == origin.tool) {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            let text = format!("there is no tool `{}`. Use one of {}.", call.name, names.join(", "));
            return Ok(CallResult::error(text));
        }
        let arguments = match call.value() {
            Ok(arguments) => arguments,
            Err(error) => {
                let text = format!("the arguments of `{}` are not JSON: {error}. Repeat the call.", call.name);
                return Ok(CallResult::error(text));
            }
        };
        if let Some(result) = self.check_repetition(origin, call).await? {
            return Ok(result);
        }
        if origin.tool == "ProposeChanges" && self.has_proposed {
            let text = "ProposeChanges was called already, and it can be called once for each prompt. Nothing more was \
                        proposed. Conclude with a summary of the proposed changes.";
            return Ok(CallResult::error(text));
        }
        let prepared = self.session.host().prepare(origin, &arguments);
        let step = match self.interrupt.or_interrupted(prepared).await {
            None => return Err(InvocationEnd::Interrupted),
            Some(Err(error)) => return Ok(ToolOutput::from(error).into()),
            Some(Ok(step)) => step,
        };
        self.status(StepState::RunningTool, summary(&origin.tool, &arguments.to_string()), None);
        self.perform(origin, step, &arguments).await
    }

    /// Asks if the model makes the same call again and again. Returns the result if the call is not executed.
    async fn check_repetition(
        &mut self,
        origin: &CallOrigin,
        call: &ToolCallBlock,
    ) -> Result<Option<CallResult>, InvocationEnd> {
        // Waiting for a background command repeats its call on purpose.
        let is_poll = call.value().is_ok_and(|value| value.get("session").is_some());
        if is_poll {
            return Ok(None);
        }
        let repetition = self.repeats.count(&origin.tool, &call.arguments);
        if repetition == Repetition::None {
            return Ok(None);
        }
        let question = format!(
            "The agent calls {} with the same arguments for the third time in a row. Continue? Any other answer is told to the agent.",
            origin.tool
        );
        let options = vec!["Continue".to_owned(), "Stop".to_owned()];
        match self.ask(SurfaceRequest::Question { question, options }).await? {
            SurfaceAnswer::Text(answer) if means_continue(&answer) => {
                self.repeats.reset();
                Ok(None)
            }
            SurfaceAnswer::Text(answer) if means_stop(&answer) => Err(InvocationEnd::Interrupted),
            SurfaceAnswer::Text(answer) => {
                self.repeats.reset();
                Ok(Some(CallResult::error(format!("The user stopped this repeated call: {answer}"))))
            }
            _ if repetition == Repetition::Fail => Err(InvocationEnd::Failed {
                message: format!("the model repeats the same call of {}", origin.tool),
                hint: "rephrase the task, or choose another model".to_owned(),
            }),
            _ => Ok(Some(CallResult::error(
                "This is the same call with the same arguments as before, and it was not executed again. Its result will not change. \
                 Do something else, or finish and say what is missing.",
            ))),
        }
    }

    async fn perform(
        &mut self,
        origin: &CallOrigin,
        step: Step,
        arguments: &Value,
    ) -> Result<CallResult, InvocationEnd> {
        let host = self.session.host();
        match step {
            Step::Done(output) if origin.tool == "Read" => self.read_through_editor(output, arguments).await,
            Step::Done(output) => Ok(output.into()),
            Step::ChangeFiles(step) => {
                let notes = step.notes_text();
                let proposed = step.proposed.as_deref().map(ProposedSet::from);
                let change = host.change_files(origin, step);
                let result = self.interrupt.or_interrupted(change).await.ok_or(InvocationEnd::Interrupted)?;
                Ok(match proposed {
                    Some(proposed) if !result.outcome.is_error() => self.report_proposal(proposed, result.change),
                    _ => {
                        let mut result = CallResult::from(result);
                        result.text = format!("{notes}{}", result.text);
                        result
                    }
                })
            }
            Step::RunCommand(step) => self.run_command(origin, step).await,
            Step::ContinueCommand(step) => {
                let command = host.continue_command(origin, step, self.output_sink(&origin.call));
                let result = self.interrupt.or_interrupted(command).await.ok_or(InvocationEnd::Interrupted)?;
                Ok(super::commands::command_text(result))
            }
            Step::Fetch(step) => self.call_tool(origin, ToolRequest::Fetch(step)).await,
            Step::CallMcp { server, tool, arguments } => {
                self.call_tool(origin, ToolRequest::Mcp { server, tool, arguments }).await
            }
            Step::WriteTodos(writes) => {
                let change = TodoChange { writes, order: Vec::new() };
                match self.session.write_todos_as(change, TodoWriter::Agent) {
                    Ok(_) => Ok(CallResult::text(self.todo_text())),
                    Err(super::WriteTodosError::Invalid(error)) => {
                        Ok(CallResult::error(format!("{error}. The list is:\n{}", self.todo_text())))
                    }
                    Err(super::WriteTodosError::Record(error)) => Err(error.into()),
                }
            }
            Step::ReadTodos => Ok(CallResult::text(self.todo_text())),
            Step::Ask(question) => {
                let request = SurfaceRequest::Question { question: question.question, options: question.options };
                Ok(match self.ask(request).await? {
                    SurfaceAnswer::Text(answer) => CallResult::text(format!("The user answers: {answer}")),
                    SurfaceAnswer::TimedOut => CallResult::error(
                        "The user did not answer in time. Decide yourself and say so, or finish with the question.",
                    ),
                    _ => CallResult::error(
                        "No user is attached who could answer. Decide yourself and say so, or finish with the question.",
                    ),
                })
            }
            Step::Delegate(delegation) => self.delegate(origin, delegation).await,
        }
    }

    async fn call_tool(&self, origin: &CallOrigin, request: ToolRequest) -> Result<CallResult, InvocationEnd> {
        let call = self.session.host().call_tool(origin, request);
        let result = self.interrupt.or_interrupted(call).await.ok_or(InvocationEnd::Interrupted)?;
        Ok(result.into())
    }

    fn report_proposal(&mut self, proposed: ProposedSet, change: Option<u64>) -> CallResult {
        self.has_proposed = true;
        let text = proposed.to_json();
        self.emit(LiveEventKind::ProposedChanges { changes: proposed, change });
        CallResult { text, is_error: false, images: Vec::new(), change }
    }

    fn todo_text(&self) -> String {
        self.session.lock_history(|history| history.todos().text())
    }
}

/// Returns the name of a tool by the name that the model calls.
fn tool_name(called: &str) -> &str {
    if called == APPLY_PATCH_NAME { "ApplyPatch" } else { called }
}

/// Describes a call in one line.
fn summary(tool: &str, arguments_json: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments_json).unwrap_or(Value::Null);
    let target = TARGET_ARGUMENTS.iter().find_map(|name| arguments.get(name)?.as_str());
    let line = target.and_then(|target| target.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
    let mut text: String = format!("{tool} {}", line.trim()).trim_end().chars().take(MAX_SUMMARY_CHARS).collect();
    if line.chars().count() > MAX_SUMMARY_CHARS {
        text.push('…');
    }
    text
}
