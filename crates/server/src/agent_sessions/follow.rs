//! Paused requests of the built-in agent, shown as waiting in their session.

use std::collections::BTreeMap;
use std::sync::Arc;

use sayso_review::{BUILT_IN_AGENT, Event, EventBody, RequestEvent, RequestId, RequestStep};

use super::{WaitingFor, WaitingGuard};
use crate::host::Host;

/// Requests of the agent that are remembered until they are sent.
const MAX_REQUESTS: usize = 1_000;

/// Follows the journal until the engine stops.
pub(crate) async fn follow(host: Arc<Host>) {
    let mut subscription = host.gate.subscribe(host.gate.last_event());
    // Sessions of requests that are not sent yet.
    let mut sessions: BTreeMap<RequestId, String> = BTreeMap::new();
    let mut waiting: BTreeMap<RequestId, WaitingGuard> = BTreeMap::new();
    loop {
        if crate::service::stream::catch_up(&mut subscription).await.is_err() {
            return;
        }
        let Ok(Some(event)) = subscription.next().await else { return };
        let EventBody::Known(Event::Request(RequestEvent { request, step })) = &event.body else { continue };
        match step {
            RequestStep::Received(received) if received.origin.agent.as_deref() == Some(BUILT_IN_AGENT) => {
                if let Some(session) = &received.origin.session {
                    sessions.insert(*request, session.clone());
                    while sessions.len() > MAX_REQUESTS {
                        sessions.pop_first();
                    }
                }
            }
            RequestStep::Paused { .. } => {
                let live = sessions.get(request).and_then(|session| host.agent_sessions.find_live(session));
                if let Some(live) = live {
                    waiting.insert(*request, live.wait_for(&live.invocation(), WaitingFor::Request(*request)));
                }
            }
            RequestStep::Resumed { .. } | RequestStep::Sent { .. } => drop(waiting.remove(request)),
            RequestStep::Answered(_) | RequestStep::Ended { .. } => {
                waiting.remove(request);
                sessions.remove(request);
            }
            _ => {}
        }
    }
}
