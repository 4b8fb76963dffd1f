//! Bodies, without their bytes.

use sayso_review::BodyRecord;
use sayso_review::redact::Redaction;

use crate::proto;

impl From<&BodyRecord> for proto::BodySize {
    /// Leaves out the chunks: they name blobs that only the engine can read.
    fn from(body: &BodyRecord) -> Self {
        let redactions = body.redactions.iter().map(|redaction| proto::Redaction {
            start: redaction.start as u64,
            size: redaction.size as u64,
            name: redaction.name.clone(),
            ..Default::default()
        });
        let (redacted, redactions) = (body.redacted, redactions.collect());
        Self { size: body.size, truncated: body.truncated, redacted, redactions, ..Default::default() }
    }
}

impl From<proto::BodySize> for BodyRecord {
    fn from(body: proto::BodySize) -> Self {
        let redactions = body.redactions.into_iter().map(|redaction| Redaction {
            start: usize::try_from(redaction.start).unwrap_or(usize::MAX),
            size: usize::try_from(redaction.size).unwrap_or(usize::MAX),
            name: redaction.name,
        });
        let (redacted, redactions) = (body.redacted, redactions.collect());
        Self { size: body.size, chunks: Vec::new(), truncated: body.truncated, redacted, redactions }
    }
}
