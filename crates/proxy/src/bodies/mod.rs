//! Request bodies: captured while they are forwarded, stored as deltas and chunks.
//!
//! An agent sends its whole history with every request. A body of a megabyte usually repeats all but a few kilobytes of the
//! previous one, so most bytes are neither copied, hashed nor written a second time.
//!
//! # From the wire to the journal
//!
//! 1. [`request_tap`](crate::http) wraps each frame of the body in a [`RecordedChunk`] and forwards it. The frame is a
//!    reference-counted slice; forwarding copies nothing.
//! 2. hyper drops the frame once it is written to the upstream's socket. The drop hands the bytes to the [`BodyRecorder`] of the
//!    request. HTTP/2 drops frames out of order, so the recorder puts them back in order.
//! 3. The [`DeltaEncoder`] compares the bytes with a base and copies only the bytes that differ. The result is a [`BodyDelta`]:
//!    a common prefix, new bytes, and often a common suffix (tool definitions follow the messages). The base is the previous body of
//!    the same conversation, or the newest body of any session that shares the first 4 KiB: a resumed or forked conversation gets a
//!    new session id. [`BodyCache`] holds the bases: the last body of up to 256 conversations, 64 MiB in all.
//! 4. The recorder thread redacts the body and splits it into chunks of at most 64 KiB ([`UnchunkedBody::chunk`]). Chunks that lie
//!    inside the common prefix or suffix keep the hash of the base's chunk and are stored already. The journal stores the others
//!    under their content hash, so equal chunks of different bodies are stored once.
//!
//! # Batches
//!
//! Comparing on the forwarding thread would delay the upstream's answer, and waking a thread costs more than the comparison of a
//! small body. Dropped frames therefore wait in the recorder's queue (`recorder::queue`):
//!
//! - The recorder thread takes the queue every 20 ms, or at once when an entry with [`Flush::Immediate`](crate::recorder::Flush)
//!   is pushed.
//! - If 2 MiB are queued and a response has started, the response tap wakes the recorder thread: the agent reads, and the
//!   forwarding thread is idle.
//! - If more than 4 MiB are queued in all, or 2 MiB of one body, the forwarding thread compares inline. This bounds memory.
//!
//! The journal entry of the response must follow the entry of its request. A [`RecordBarrier`](crate::recorder::RecordBarrier) holds
//! the response's entry back until the body was recorded.
//!
//! # Redaction
//!
//! [`BodyCache`] keeps exact bytes, because deltas are computed against them. Everything that is stored is masked first: credentials
//! are overwritten with a filler of the same length, so offsets stay valid. Where the masked spans of base and body differ, the
//! shared range shrinks to the part in which both are masked alike ([`cache`]). The masked values of the last 512 bodies stay in
//! memory ([`ExactValues`]) for replays; they are never written and are lost when the engine stops.

mod cache;
mod delta;
mod recorder;
mod redaction;

pub(crate) use cache::{BodyCache, UnchunkedBody};
pub(crate) use delta::{BodyDelta, DeltaEncoder};
pub(crate) use recorder::{BodyRecorder, CaptureMode, OnRecorded, RecordedChunk};
pub(crate) use redaction::{ExactValues, contains_credential};
pub use redaction::{is_credential_path, redacted_paths};

/// Tells a body that was received completely from one that broke off or could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyExtent {
    Complete,
    Truncated,
}
