//! The log of a session in the journal, and what follows from its entries: turns, blocks and messages.

use sayso_agent::host::AgentMessage;
use sayso_agent::{Entry, LogEntry};
use sayso_api::proto;
use sayso_gate::{NewAgentEntry, NewSession};
use sayso_review::{AgentEntryKind, BUILT_IN_AGENT, ErrorKind};

use super::SessionHost;
use crate::agent_conversation::block_count;
use crate::agent_sessions::READS_VERSION;
use crate::failure::Failure;
use crate::host::now;

/// Appends an entry. It is durable when this returns.
pub(super) fn record(host: &SessionHost, entry: &LogEntry) -> Result<u64, Failure> {
    let session_host = host;
    let SessionHost { host, live } = session_host;
    let session = live.id.as_str();
    let content: serde_json::Value = serde_json::from_str(&entry.to_json())
        .map_err(|error| Failure::new(ErrorKind::Internal, format!("cannot encode an entry of the log: {error}")))?;
    let known = entry.known();
    // A session exists before its first entry, so that its changes and requests belong to it.
    if let Some(Entry::Started { parent, .. }) = known {
        let location = Some(host.root.to_string_lossy().into_owned());
        let agent = Some(BUILT_IN_AGENT.to_owned());
        let new = NewSession { session: session.to_owned(), agent, location, parent: parent.clone() };
        host.gate.start_session(new, now())?;
    }
    if let Some(Entry::InvocationStarted { invocation }) = known {
        live.set_invocation(invocation);
        host.gate.start_turn(session, invocation, now())?;
    }
    let new = NewAgentEntry { session, kind: AgentEntryKind::Log, version: entry.version, content: &content };
    let number = if matches!(known, Some(Entry::Result(_))) {
        record_with_reads(session_host, new)?
    } else {
        host.gate.record_agent_entries(&[new], now())?
    };
    if let Some(known) = known {
        let added = block_count(known);
        if added > 0 {
            let block = live.add_blocks(added);
            let event = proto::BlockCompleted { block, ..Default::default() };
            live.push(&live.invocation(), event.into());
        }
        if let Entry::InvocationEnded { invocation, .. } = known {
            let review = host.gate.end_turn(session, invocation, now())?;
            live.set_review(review.map(|review| review.change));
        }
    }
    Ok(number)
}

/// Appends the result of a call, and in the same transaction the reads since the last one. Returns the number of the result.
fn record_with_reads(SessionHost { host, live }: &SessionHost, result: NewAgentEntry<'_>) -> Result<u64, Failure> {
    let reads = live.new_reads();
    let content = reads.content();
    let kind = AgentEntryKind::Reads;
    let added = content.iter().map(|content| NewAgentEntry { kind, version: READS_VERSION, content, ..result });
    let entries: Vec<NewAgentEntry<'_>> = added.chain([result]).collect();
    let number = host.gate.record_agent_entries(&entries, now())?;
    live.set_recorded_reads(reads);
    Ok(number)
}

/// Takes the queued messages of a session, and records their delivery.
pub(super) fn take_messages(host: &SessionHost) -> Vec<AgentMessage> {
    let (gate, session) = (&host.host.gate, host.live.id.as_str());
    let unread = match gate.unread_messages(session) {
        Ok(unread) => unread,
        Err(error) => {
            tracing::warn!(session, %error, "cannot read the messages of a session");
            return Vec::new();
        }
    };
    let numbers: Vec<u64> = unread.iter().map(|message| message.number).collect();
    if let Err(error) = gate.acknowledge_messages(session, &numbers, now()) {
        // They are delivered again with the next request.
        tracing::warn!(session, %error, "cannot record the delivery of messages");
        return Vec::new();
    }
    unread.into_iter().map(|message| AgentMessage { change: message.change, text: message.text }).collect()
}
