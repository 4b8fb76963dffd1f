//! What a chunk of Chat Completions has, of what matters.

use std::borrow::Cow;

use super::super::event::Usage;
use super::super::scan::{Broken, Scan, members};

#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) model: Cow<'a, str>,
    pub(super) choice: Choice<'a>,
    /// What there is beyond the first choice.
    pub(super) more: Vec<Choice<'a>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<&'a str>,
    pub(super) known: bool,
}

#[derive(Default)]
pub(super) struct Choice<'a> {
    pub(super) number: u64,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) refusal: Option<Cow<'a, str>>,
    pub(super) thinking: Option<Cow<'a, str>>,
    pub(super) finish: Option<Cow<'a, str>>,
    pub(super) calls: Vec<CallPart<'a>>,
}

#[derive(Default)]
pub(super) struct CallPart<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) piece: Cow<'a, str>,
    pub(super) custom: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn parse(data: &'a str) -> Result<Self, Broken> {
        let mut parts = Self::default();
        members(data, |key, scan| {
            match key {
                "id" => parts.id = scan.string()?.unwrap_or_default(),
                "model" => parts.model = scan.string()?.unwrap_or_default(),
                "choices" => {
                    parts.known = true;
                    let mut place = 0;
                    scan.elements(&mut |scan| {
                        let choice = Choice::parse(scan, place)?;
                        place += 1;
                        if choice.number == 0 {
                            parts.choice = choice;
                        } else {
                            parts.more.push(choice);
                        }
                        Ok(())
                    })?;
                }
                "usage" => parts.usage = usage(scan)?,
                "error" => parts.error = Some(scan.raw()?).filter(|raw| *raw != "null"),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

fn usage(scan: &mut Scan<'_>) -> Result<Option<Usage>, Broken> {
    let mut usage = Usage::default();
    scan.members(&mut |key, scan| {
        match key {
            "prompt_tokens" => usage.input = scan.number()?,
            "completion_tokens" => usage.output = scan.number()?,
            "prompt_tokens_details" | "completion_tokens_details" => scan.members(&mut |key, scan| {
                match key {
                    "cached_tokens" => usage.cache_read = scan.number()?,
                    "reasoning_tokens" => usage.reasoning = scan.number()?,
                    _ => scan.skip()?,
                }
                Ok(())
            })?,
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    Ok(Some(usage).filter(|usage| *usage != Usage::default()))
}

impl<'a> Choice<'a> {
    fn parse(scan: &mut Scan<'a>, place: u64) -> Result<Self, Broken> {
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
                            choice.calls.push(CallPart::parse(scan)?);
                            Ok(())
                        })?,
                        "function_call" => choice.calls.extend(CallPart::legacy(scan)?),
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

/// The index of the one call that there was before there could be several.
const LEGACY: u64 = u32::MAX as u64;

impl<'a> CallPart<'a> {
    pub(super) fn parse(scan: &mut Scan<'a>) -> Result<Self, Broken> {
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

    /// The one call of an answer in the form without an id; `null` is none.
    fn legacy(scan: &mut Scan<'a>) -> Result<Option<Self>, Broken> {
        let mut part = Self { index: Some(LEGACY), ..Self::default() };
        part.function(scan)?;
        Ok((!part.name.is_empty() || !part.piece.is_empty()).then_some(part))
    }

    fn function(&mut self, scan: &mut Scan<'a>) -> Result<(), Broken> {
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

/// The type or code, and the message, of an error object.
pub(in crate::stream) fn error_parts(raw: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), Broken> {
    let (mut kind, mut code, mut message) = (None, None, Cow::default());
    members(raw, |key, scan| {
        match key {
            "type" => kind = scan.string()?,
            "code" => code = scan.string()?,
            "message" => message = scan.string()?.unwrap_or_default(),
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    Ok((code.or(kind).unwrap_or_default(), message))
}
