//! The relevant members of a Responses event.

use std::borrow::Cow;

use super::super::event::{ToolKind, Usage};
use super::super::openai::{UsageNames, usage};
use super::super::scan::{ScanError, elements, members};

const USAGE: UsageNames = UsageNames { input: "input_tokens", output: "output_tokens" };

#[derive(Default)]
pub(super) struct ResponsesEvent<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) index: Option<u32>,
    pub(super) delta: Option<Cow<'a, str>>,
    pub(super) whole: Option<Cow<'a, str>>,
    pub(super) item: &'a str,
    pub(super) response: &'a str,
    pub(super) code: Cow<'a, str>,
    pub(super) message: Cow<'a, str>,
    pub(super) error: Option<&'a str>,
}

impl<'a> ResponsesEvent<'a> {
    pub(super) fn parse(name: &'a str, data: &'a str) -> Result<Self, ScanError> {
        let mut parts = Self { kind: Cow::Borrowed(name), item: "null", response: "null", ..Self::default() };
        members(data, |key, scan| {
            match key {
                "type" => parts.kind = scan.string()?.unwrap_or_default(),
                "output_index" => parts.index = scan.number()?.map(|index| index as u32),
                "delta" => parts.delta = scan.string()?,
                "arguments" | "input" => parts.whole = scan.string()?,
                "item" => parts.item = scan.raw()?,
                "response" => parts.response = scan.raw()?,
                "code" => parts.code = scan.string()?.unwrap_or_default(),
                "message" => parts.message = scan.string()?.unwrap_or_default(),
                "error" => parts.error = Some(scan.raw()?).filter(|raw| raw.starts_with('{')),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

/// The relevant members of an item or a response.
#[derive(Default)]
pub(super) struct ResponsesObject<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) call_id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) model: Cow<'a, str>,
    pub(super) arguments: Option<Cow<'a, str>>,
    pub(super) encrypted: Option<Cow<'a, str>>,
    pub(super) texts: [&'a str; 2],
    pub(super) status: Cow<'a, str>,
    pub(super) usage: Option<Usage>,
    pub(super) incomplete: Option<Cow<'a, str>>,
    pub(super) error: Option<&'a str>,
}

impl<'a> ResponsesObject<'a> {
    pub(super) fn parse(raw: &'a str) -> Result<Self, ScanError> {
        let mut inner = Self { texts: ["[]"; 2], ..Self::default() };
        members(raw, |key, scan| {
            match key {
                "type" => inner.kind = scan.string()?.unwrap_or_default(),
                "id" => inner.id = scan.string()?.unwrap_or_default(),
                "call_id" => inner.call_id = scan.string()?.unwrap_or_default(),
                "name" => inner.name = scan.string()?.unwrap_or_default(),
                "model" => inner.model = scan.string()?.unwrap_or_default(),
                "arguments" | "input" => inner.arguments = scan.string()?,
                "encrypted_content" => inner.encrypted = scan.string()?,
                "summary" => inner.texts[0] = scan.raw()?,
                "content" => inner.texts[1] = scan.raw()?,
                "status" => inner.status = scan.string()?.unwrap_or_default(),
                "usage" => inner.usage = usage(scan, &USAGE)?,
                "incomplete_details" => scan.members(&mut |key, scan| {
                    match key {
                        "reason" => inner.incomplete = scan.string()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                "error" => inner.error = Some(scan.raw()?).filter(|raw| raw.starts_with('{')),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(inner)
    }

    /// Returns the texts of the content parts.
    pub(super) fn texts(&self) -> Result<Vec<Cow<'a, str>>, ScanError> {
        let mut texts = Vec::new();
        for list in self.texts {
            elements(list, |scan| {
                scan.members(&mut |key, scan| {
                    match key {
                        "text" | "refusal" => texts.extend(scan.string()?.filter(|text| !text.is_empty())),
                        _ => scan.skip()?,
                    }
                    Ok(())
                })
            })?;
        }
        Ok(texts)
    }

    pub(super) fn tool(&self) -> Option<ToolKind> {
        match &*self.kind {
            "function_call" => Some(ToolKind::Function),
            "custom_tool_call" => Some(ToolKind::Custom),
            _ => None,
        }
    }
}
