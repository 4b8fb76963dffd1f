//! The output of a dry run.

use sayso_review::{DryRunEnd, DryRunOutput};

use super::BadMessage;
use super::field::{enumeration, unspecified};
use crate::proto;
use crate::proto::dry_run_response::End;

impl From<&DryRunOutput> for proto::DryRunResponse {
    fn from(output: &DryRunOutput) -> Self {
        let (end, code, reason) = match &output.end {
            DryRunEnd::Exited { code } => (End::Exited, *code, ""),
            DryRunEnd::Signalled { signal } => (End::Signalled, *signal, ""),
            DryRunEnd::TimedOut => (End::TimedOut, 0, ""),
            DryRunEnd::NotStarted { reason } => (End::NotStarted, 0, reason.as_str()),
        };
        Self {
            output: output.output.clone(),
            errors: output.errors.clone(),
            end: end.into(),
            code,
            reason: reason.to_owned(),
            truncated: output.is_truncated,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::DryRunResponse> for DryRunOutput {
    type Error = BadMessage;

    fn try_from(response: proto::DryRunResponse) -> Result<Self, BadMessage> {
        let end = match enumeration::<_, End>(response.end, "end")? {
            End::Unspecified => return Err(unspecified().within("end")),
            End::Exited => DryRunEnd::Exited { code: response.code },
            End::Signalled => DryRunEnd::Signalled { signal: response.code },
            End::TimedOut => DryRunEnd::TimedOut,
            End::NotStarted => DryRunEnd::NotStarted { reason: response.reason },
        };
        Ok(Self { output: response.output, errors: response.errors, end, is_truncated: response.truncated })
    }
}
