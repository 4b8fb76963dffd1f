//! The list of pending changes with their previews.

use sayso_api::proto::{self, PreviewView};

use crate::caller::Peer;
use crate::change_details::{self, PreviewOf};
use crate::failure::Failure;
use crate::host::{Host, now};
use crate::service::{view_of, withhold};

/// Bytes of previews in a list, after which the remaining changes come without.
const MAX_PREVIEW_BYTES: usize = 16 << 20;

pub(super) fn list(
    host: &Host,
    peer: Option<Peer>,
    request: &proto::ListPendingRequest,
) -> Result<Vec<proto::ChangeDetails>, Failure> {
    host.finish_abandoned()?;
    host.gate.tick(now())?;
    let mut view = view_of(request.view);
    let (mut pending, mut size) = (Vec::new(), 0);
    for change in host.gate.pending_changes()? {
        let details = host.gate.read(|history| {
            let record = history.change(change)?;
            let is_requested = request.session.is_none() || record.origin.session == request.session;
            if is_requested {
                change_details::of(history, change, view, PreviewOf::Proposed).map(Some)
            } else {
                Ok(None)
            }
        })?;
        if let Some(mut details) = details {
            withhold(host, peer, &mut details);
            size += buffa::Message::encoded_len(&details) as usize;
            pending.push(details);
            if size > MAX_PREVIEW_BYTES {
                view = PreviewView::Unspecified;
            }
        }
    }
    Ok(pending)
}
