//! How requests are treated: in all sessions, and in those that have a mode of their own.

use std::collections::BTreeMap;

use sayso_review::{ModeSet, RequestMode};

/// What was set for a session, or for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    mode: Option<RequestMode>,
    pause_next: bool,
    capture_next: bool,
}

/// What counts for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The mode.
    pub mode: RequestMode,
    /// Whether the next turn waits, once.
    pub pause_next: bool,
    /// Whether the next turn waits so that its edits are saved.
    pub capture_next: bool,
}

/// Which flag is up for the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Once {
    /// Pause it.
    Pause,
    /// Pause it, and save its edits.
    Capture,
}

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modes {
    all: Setting,
    /// The mode where none was ever set.
    fallback: RequestMode,
    sessions: BTreeMap<String, Setting>,
}

impl Modes {
    /// As they were last said.
    pub(crate) fn new(sets: Vec<ModeSet>) -> Self {
        let mut modes = Self::default();
        for ModeSet { session, mode, pause_next, capture_next } in sets {
            let setting = Setting { mode, pause_next, capture_next };
            // Of a session that goes with all others there is nothing to know.
            if session.is_none() || setting != Setting::default() {
                *modes.of_mut(session.as_deref()) = setting;
            }
        }
        modes
    }

    /// The same with another mode where none was ever set.
    pub(crate) fn or(self, fallback: RequestMode) -> Self {
        Self { fallback, ..self }
    }

    fn of(&self, session: Option<&str>) -> Setting {
        match session {
            None => self.all,
            Some(session) => self.sessions.get(session).copied().unwrap_or_default(),
        }
    }

    fn of_mut(&mut self, session: Option<&str>) -> &mut Setting {
        match session {
            None => &mut self.all,
            Some(session) => self.sessions.entry(session.to_owned()).or_default(),
        }
    }

    /// What counts for a session; for those without a setting of their own, if none is named.
    pub(crate) fn effective(&self, session: Option<&str>) -> Effective {
        let own = self.of(session);
        Effective {
            mode: own.mode.or(self.all.mode).unwrap_or(self.fallback),
            pause_next: own.pause_next || self.all.pause_next,
            capture_next: own.capture_next || self.all.capture_next,
        }
    }

    /// Whether a session has a mode of its own.
    pub(crate) fn has_own(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|own| own.mode.is_some())
    }

    /// Whether every request is sent as it comes, and nobody needs to look at it.
    pub(crate) fn is_quiet(&self) -> bool {
        let calm = |setting: &Setting| !setting.pause_next && !setting.capture_next;
        let own = |setting: &Setting| setting.mode.unwrap_or_default() == RequestMode::Off && calm(setting);
        let all = self.all.mode.unwrap_or(self.fallback) == RequestMode::Off && calm(&self.all);
        all && self.sessions.values().all(own)
    }

    /// The sessions that have a setting of their own.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &String> {
        self.sessions.keys()
    }

    /// Sets a mode; `None` for a session that is to go with all others. What was to happen in the next turn still is, if it is
    /// one in which requests are not sent normally.
    pub(crate) fn set(&mut self, session: Option<&str>, mode: Option<RequestMode>) -> ModeSet {
        let own = self.of_mut(session);
        *own = match mode {
            Some(RequestMode::InterceptAlways | RequestMode::AutoOverride) => Setting { mode, ..*own },
            Some(RequestMode::Off) | None => Setting { mode, ..Setting::default() },
        };
        self.recorded(session)
    }

    /// Has the next turn wait.
    pub(crate) fn arm(&mut self, session: Option<&str>, once: Once) -> ModeSet {
        let own = self.of_mut(session);
        match once {
            Once::Pause => own.pause_next = true,
            Once::Capture => own.capture_next = true,
        }
        self.recorded(session)
    }

    /// The next turn has come: whoever asked for it to wait has what they wanted.
    pub(crate) fn disarm(&mut self, session: &str, once: Once) -> Option<ModeSet> {
        for of in [Some(session), None] {
            if self.of(of) == Setting::default() {
                continue;
            }
            let own = self.of_mut(of);
            let flag = match once {
                Once::Pause => &mut own.pause_next,
                Once::Capture => &mut own.capture_next,
            };
            if std::mem::take(flag) {
                return Some(self.recorded(of));
            }
        }
        None
    }

    /// Forgets a session that is over, if anything is known of it.
    pub(crate) fn forget(&mut self, session: &str) -> Option<ModeSet> {
        self.sessions.remove(session)?;
        Some(self.recorded(Some(session)))
    }

    fn recorded(&mut self, session: Option<&str>) -> ModeSet {
        let Setting { mode, pause_next, capture_next } = self.of(session);
        if let Some(session) = session
            && self.of(Some(session)) == Setting::default()
        {
            self.sessions.remove(session);
        }
        ModeSet { session: session.map(str::to_owned), mode, pause_next, capture_next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_its_own_mode_or_that_of_all() {
        let mut modes = Modes::default();
        assert!(modes.is_quiet());
        modes.set(None, Some(RequestMode::InterceptAlways));
        modes.set(Some("s"), Some(RequestMode::Off));
        assert_eq!(modes.effective(Some("s")).mode, RequestMode::Off);
        assert_eq!(modes.effective(Some("t")).mode, RequestMode::InterceptAlways);
        modes.set(Some("s"), None);
        assert_eq!(modes.effective(Some("s")).mode, RequestMode::InterceptAlways);
        assert!(!modes.is_quiet());
    }

    #[test]
    fn the_next_turn_waits_once() {
        let mut modes = Modes::default();
        modes.arm(None, Once::Pause);
        assert!(modes.effective(Some("s")).pause_next);
        assert_eq!(modes.disarm("s", Once::Pause).map(|set| set.pause_next), Some(false));
        assert_eq!(modes.disarm("s", Once::Pause), None);
        assert!(modes.is_quiet());
    }

    #[test]
    fn what_was_set_is_read_again() {
        let mut modes = Modes::default();
        let sets = vec![modes.set(None, Some(RequestMode::AutoOverride)), modes.arm(Some("s"), Once::Capture)];
        let again = Modes::new(sets);
        assert_eq!(again.effective(Some("s")), modes.effective(Some("s")));
        assert!(again.effective(Some("s")).capture_next && !again.effective(None).capture_next);
    }
}
