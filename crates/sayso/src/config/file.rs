//! One configuration file.

use std::collections::BTreeMap;
use std::time::Duration;

use sayso_review::{Defaults, Rule};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::agent::{AgentTable, McpTables, check_servers};
use super::request::{RequestTable, UpstreamTable};
use crate::error::CliError;

/// A configuration file. Unknown keys are errors, because a misspelt rule would have no effect.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) policy: Defaults,
    #[serde(default)]
    pub(super) rule: Vec<Rule>,
    #[serde(default)]
    pub(super) snapshot: SnapshotTable,
    #[serde(default)]
    pub(super) branch: BranchTable,
    #[serde(default)]
    pub(super) notify: NotifyTable,
    #[serde(default)]
    pub(super) decide: DecideTable,
    #[serde(default)]
    pub(super) hook: HookTable,
    #[serde(default)]
    pub(super) request: RequestTable,
    #[serde(default)]
    pub(super) upstream: BTreeMap<String, UpstreamTable>,
    #[serde(default)]
    pub(super) agent: AgentTable,
    #[serde(default)]
    pub(super) mcp_servers: McpTables,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotTable {
    pub(super) max_file_size: Option<Size>,
    pub(super) quota: Option<Size>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BranchTable {
    pub(super) prefix: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotifyTable {
    pub(super) command: Option<Words>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideTable {
    pub(super) deadline: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HookTable {
    pub(super) on_failure: Option<OnFailure>,
}

/// The fate of a call if a hook cannot reach the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnFailure {
    /// Deny it.
    Deny,
    /// Let the agent ask its own user.
    Ask,
    /// Let the agent proceed as without sayso.
    Allow,
}

impl OnFailure {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

impl File {
    /// Reads a file. `name` is for errors.
    pub(super) fn parse(bytes: &[u8], name: &str) -> Result<Self, CliError> {
        let bad = |line: Option<usize>, reason: String| {
            let at = line.map_or(String::new(), |line| format!(", line {line}"));
            CliError::invalid_input(format!("cannot read {name}{at}"))
                .because(reason)
                .hint("correct it: until then no rule is used, because the unreadable one may deny")
        };
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).matches('\n').count() + 1;
            bad(Some(line), "it is not UTF-8".to_owned())
        })?;
        let file: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            bad(line, error.message().to_owned())
        })?;
        check_servers(&file.mcp_servers, name)?;
        Ok(file)
    }
}

/// A number of bytes: 64000000, "64 MB" or "64 MiB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

/// A length of time: "90 s", "10 min", "1 h".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(pub(super) Duration);

/// A program and its arguments: a list, or a text that is split at blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(pub(super) Vec<String>);

/// Reads a number and a unit.
fn with_unit<T>(text: &str, units: &[(&str, T)]) -> Option<(u64, T)>
where
    T: Copy,
{
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, unit) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    Some((number.parse().ok()?, *unit))
}

impl Size {
    fn parse(text: &str) -> Option<Self> {
        const UNITS: [(&str, u64); 8] = [
            ("", 1),
            ("B", 1),
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        let (number, unit) = with_unit(text, &UNITS)?;
        number.checked_mul(unit).map(Self)
    }
}

impl Span {
    fn parse(text: &str) -> Option<Self> {
        const UNITS: [(&str, u64); 9] = [
            ("ms", 1),
            ("s", 1_000),
            ("sec", 1_000),
            ("second", 1_000),
            ("seconds", 1_000),
            ("min", 60_000),
            ("minutes", 60_000),
            ("h", 3_600_000),
            ("hours", 3_600_000),
        ];
        let (number, unit) = with_unit(text, &UNITS)?;
        let span = number.checked_mul(unit).filter(|milliseconds| *milliseconds > 0);
        span.map(|milliseconds| Self(Duration::from_millis(milliseconds)))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Size;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of bytes, such as \"64 MB\"")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Size, E> {
                u64::try_from(number).map(Size).map_err(|_| E::custom(format!("{number} is not a number of bytes")))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                Size::parse(text)
                    .ok_or_else(|| E::custom(format!("`{text}` is not a number of bytes, such as \"64 MB\"")))
            }
        }
        deserializer.deserialize_any(Bytes)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a length of time, such as \"10 min\"")))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            List(Vec<String>),
        }
        let words = match Form::deserialize(deserializer)? {
            Form::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Form::List(words) => words,
        };
        if words.is_empty() {
            return Err(D::Error::custom("a command has at least one word"));
        }
        Ok(Self(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_accept_usual_units() {
        let size = |text| Size::parse(text).map(|size| size.0);
        assert_eq!(size("64 MB"), Some(64_000_000));
        assert_eq!(size("64mib"), Some(64 << 20));
        assert_eq!(size("10"), Some(10));
        assert_eq!([size("MB"), size("-1"), size("1.5 GB"), size("99999999999 GB"), size("")], [None; 5]);
        let span = |text| Span::parse(text).map(|span| span.0.as_secs());
        assert_eq!([span("90 s"), span("10 min"), span("2h")], [Some(90), Some(600), Some(7200)]);
        assert_eq!([span("10"), span("0 s"), span("soon")], [None; 3]);
    }
}
