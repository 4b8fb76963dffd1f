//! The relevant members of a Chat Completions chunk.

use std::borrow::Cow;

use super::super::event::Usage;
use super::super::openai::{UsageNames, usage};
use super::super::scan::{JsonCursor, ScanError, members};

const USAGE: UsageNames = UsageNames { input: "prompt_tokens", output: "completion_tokens" };

#[derive(Default)]
pub(super) struct ChatChunk<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) model: Cow<'a, str>,
    pub(super) choice: ChatChoice<'a>,
    /// Choices after the first.
    pub(super) more: Vec<ChatChoice<'a>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<&'a str>,
    pub(super) known: bool,
}

#[derive(Default)]
pub(super) struct ChatChoice<'a> {
    pub(super) number: u64,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) refusal: Option<Cow<'a, str>>,
    pub(super) thinking: Option<Cow<'a, str>>,
    pub(super) finish: Option<Cow<'a, str>>,
    pub(super) calls: Vec<ToolCallDelta<'a>>,
}

#[derive(Default)]
pub(super) struct ToolCallDelta<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) piece: Cow<'a, str>,
    pub(super) custom: bool,
}

impl<'a> ChatChunk<'a> {
    pub(super) fn parse(data: &'a str) -> Result<Self, ScanError> {
        let mut parts = Self::default();
        members(data, |key, scan| {
            match key {
                "id" => parts.id = scan.string()?.unwrap_or_default(),
                "model" => parts.model = scan.string()?.unwrap_or_default(),
                "choices" => {
                    parts.known = true;
                    let mut place = 0;
                    scan.elements(&mut |scan| {
                        let choice = ChatChoice::parse(scan, place)?;
                        place += 1;
                        if choice.number == 0 {
                            parts.choice = choice;
                        } else {
                            parts.more.push(choice);
                        }
                        Ok(())
                    })?;
                }
                "usage" => parts.usage = usage(scan, &USAGE)?,
                "error" => parts.error = Some(scan.raw()?).filter(|raw| *raw != "null"),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

impl<'a> ChatChoice<'a> {
    fn parse(scan: &mut JsonCursor<'a>, place: u64) -> Result<Self, ScanError> {
        let mut choice = Self { number: place, ..Self::default() };
        scan.members(&mut |key, scan| {
            match key {
                "index" => choice.number = scan.number()?.unwrap_or(place),
                "delta" | "message" => scan.members(&mut |key, scan| {
                    match key {
                        "content" => choice.text = scan.string()?,
                        "refusal" => choice.refusal = scan.string()?,
                        "reasoning_content" | "reasoning" => {
                            choice.thinking = scan.string()?.or(choice.thinking.take());
                        }
                        "tool_calls" => scan.elements(&mut |scan| {
                            choice.calls.push(ToolCallDelta::parse(scan)?);
                            Ok(())
                        })?,
                        "function_call" => choice.calls.extend(ToolCallDelta::legacy(scan)?),
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                "finish_reason" => choice.finish = scan.string()?,
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(choice)
    }
}

/// Index of the call in the legacy `function_call` form, which allows only one.
const LEGACY_CALL_INDEX: u64 = u32::MAX as u64;

impl<'a> ToolCallDelta<'a> {
    pub(super) fn parse(scan: &mut JsonCursor<'a>) -> Result<Self, ScanError> {
        let mut part = Self::default();
        scan.members(&mut |key, scan| {
            match key {
                "index" => part.index = scan.number()?,
                "id" => part.id = scan.string()?.unwrap_or_default(),
                "function" | "custom" => {
                    part.custom = key == "custom";
                    part.function(scan)?;
                }
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(part)
    }

    /// Reads a call in the legacy form without an id; `null` is no call.
    fn legacy(scan: &mut JsonCursor<'a>) -> Result<Option<Self>, ScanError> {
        let mut part = Self { index: Some(LEGACY_CALL_INDEX), ..Self::default() };
        part.function(scan)?;
        Ok((!part.name.is_empty() || !part.piece.is_empty()).then_some(part))
    }

    fn function(&mut self, scan: &mut JsonCursor<'a>) -> Result<(), ScanError> {
        scan.members(&mut |key, scan| {
            match key {
                "name" => self.name = scan.string()?.unwrap_or_default(),
                "arguments" | "input" => self.piece = scan.string()?.unwrap_or_default(),
                _ => scan.skip()?,
            }
            Ok(())
        })
    }
}
