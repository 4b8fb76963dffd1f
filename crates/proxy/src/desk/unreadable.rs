//! A request that cannot be read: its body is compressed in a way that is not known, or broken.

use std::sync::Arc;

use sayso_review::{RequestEnd, RequestMode, RequestStep, Ruling, SavedEdits as SavedOutcome};
use sayso_wire::stream::Api;

use super::passed::no_body;
use super::{Arrived, Came, Desk, Keeps, Outgoing, Taken, Whose, lock};
use crate::log::Haste;
use crate::settings::{Keep, Pause};

impl Desk {
    /// Takes in a request that cannot be read. It ends here if it might be one that is to wait, or that policy denies; else the
    /// upstream says what is wrong with it.
    pub(crate) fn unreadable(self: &Arc<Self>, came: Came, api: Api, problem: &str, now: i64) -> Arrived {
        let request = self.number();
        let settings = self.settings();
        let named = Whose::by_head(&came.run, &came.head);
        let session = named.as_ref().map(|whose| whose.session.clone());
        let whose = named
            .unwrap_or_else(|| Whose::by_glance(&came.run, &came.head, came.key.as_deref(), &mut Taken::default()));
        self.met(request, &whose, &came, &Taken::default(), &settings, now);
        let encoding = came.encoding.as_deref().unwrap_or_default();
        let problem = format!("content-encoding `{encoding}`: {problem}");
        let ends = match self.ruled(&whose, &came.upstream) {
            Some((Ruling::Deny, message)) => Some(message),
            _ => self.unseen(&came, &whose, session.as_deref(), &problem),
        };
        let see = |haste, whose: Whose, came: Came| {
            self.see(request, whose, came, Some(api), no_body, (haste, None), []);
        };
        if let Some(message) = ends {
            see(Haste::Now, whose, came);
            let why = RequestEnd::Denied { message };
            self.log.step(request, RequestStep::Ended { why: why.clone(), edited: None }, Haste::Now);
            return Arrived::Refuse { request, api: Some(api), why };
        }
        let keeps = if settings.keep == Keep::All { Keeps::Yes } else { Keeps::No };
        if keeps == Keeps::Yes {
            see(Haste::Soon, whose.clone(), came);
            self.sent(request, SavedOutcome::default());
        }
        Arrived::Send(Outgoing { api: Some(api), whose, body: None, unanswered: self.unanswered(request, keeps) })
    }

    /// Why a request that nobody could look at ends here, if it does: it might be one that is to wait.
    pub(super) fn unseen(&self, came: &Came, whose: &Whose, session: Option<&str>, problem: &str) -> Option<String> {
        let remedy = match self.ruled(whose, &came.upstream) {
            Some((Ruling::Ask, rule)) => format!("take {rule} out of your policy"),
            _ if self.settings().rules.iter().any(|rule| rule.pause == Pause::Yes) => {
                "take the rules that pause out of [request]".to_owned()
            }
            _ if self.may_wait(session) => "have requests sent as they come: `sayso request mode normal`".to_owned(),
            _ => return None,
        };
        let uncompressed = if came.encoding.is_some() { "send it without compression, or " } else { "" };
        Some(format!(
            "sayso cannot read this request ({problem}), so that nobody could look at it; {uncompressed}{remedy}"
        ))
    }

    /// Whether a turn of a session waits; of any, if it is not known which.
    fn may_wait(&self, session: Option<&str>) -> bool {
        let state = lock(&self.state);
        let Some(session) = session else { return !state.modes.is_quiet() };
        let effective = state.modes.effective(Some(session));
        effective.mode != RequestMode::Off || effective.pause_next || effective.capture_next
    }
}
