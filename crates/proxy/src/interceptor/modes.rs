//! Request modes: one for all sessions, and one for each session with its own.

use std::collections::BTreeMap;

use sayso_review::{ModeSet, RequestMode};

/// The setting of one session, or of all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Setting {
    mode: Option<RequestMode>,
    pause_next: bool,
    capture_next: bool,
}

/// The mode and flags that apply to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveMode {
    pub mode: RequestMode,
    /// `true` if the next turn is held, once.
    pub pause_next: bool,
    /// `true` if the next turn is held, and its edits are saved on resume.
    pub capture_next: bool,
}

/// A flag for the next turn only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneShot {
    /// Holds the turn.
    Pause,
    /// Holds the turn, and saves its edits on resume.
    Capture,
}

/// All modes of a workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Modes {
    all: Setting,
    /// Applies until a mode is set for all sessions.
    fallback: RequestMode,
    sessions: BTreeMap<String, Setting>,
}

impl Modes {
    /// Restores the modes from the journal.
    pub(super) fn new(sets: Vec<ModeSet>) -> Self {
        let mut modes = Self::default();
        for ModeSet { session, mode, pause_next, capture_next } in sets {
            let setting = Setting { mode, pause_next, capture_next };
            // A default setting marks a session that lost its own mode.
            if session.is_none() || setting != Setting::default() {
                *modes.of_mut(session.as_deref()) = setting;
            }
        }
        modes
    }

    pub(super) fn or(self, fallback: RequestMode) -> Self {
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

    /// The mode of a session, or of sessions without their own.
    pub(super) fn effective(&self, session: Option<&str>) -> EffectiveMode {
        let own = self.of(session);
        EffectiveMode {
            mode: own.mode.or(self.all.mode).unwrap_or(self.fallback),
            pause_next: own.pause_next || self.all.pause_next,
            capture_next: own.capture_next || self.all.capture_next,
        }
    }

    pub(super) fn has_own(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|own| own.mode.is_some())
    }

    /// `true` if no mode or flag concerns any request.
    pub(super) fn is_passthrough(&self) -> bool {
        let is_unarmed = |setting: &Setting| !setting.pause_next && !setting.capture_next;
        let own = |setting: &Setting| setting.mode.unwrap_or_default() == RequestMode::Off && is_unarmed(setting);
        let all = self.all.mode.unwrap_or(self.fallback) == RequestMode::Off && is_unarmed(&self.all);
        all && self.sessions.values().all(own)
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = &String> {
        self.sessions.keys()
    }

    /// Sets a mode; `None` removes the session's own. The one-shot flags survive only a change to a mode that inspects requests.
    pub(super) fn set(&mut self, session: Option<&str>, mode: Option<RequestMode>) -> ModeSet {
        let own = self.of_mut(session);
        *own = match mode {
            Some(RequestMode::InterceptAlways | RequestMode::AutoOverride) => Setting { mode, ..*own },
            Some(RequestMode::Off) | None => Setting { mode, ..Setting::default() },
        };
        self.record(session)
    }

    pub(super) fn arm(&mut self, session: Option<&str>, once: OneShot) -> ModeSet {
        let own = self.of_mut(session);
        match once {
            OneShot::Pause => own.pause_next = true,
            OneShot::Capture => own.capture_next = true,
        }
        self.record(session)
    }

    /// Clears a flag after it was used; the session's own flag first, then that of all sessions.
    pub(super) fn disarm(&mut self, session: &str, once: OneShot) -> Option<ModeSet> {
        for of in [Some(session), None] {
            if self.of(of) == Setting::default() {
                continue;
            }
            let own = self.of_mut(of);
            let flag = match once {
                OneShot::Pause => &mut own.pause_next,
                OneShot::Capture => &mut own.capture_next,
            };
            if std::mem::take(flag) {
                return Some(self.record(of));
            }
        }
        None
    }

    /// Removes the setting of an ended session. `None` if it had none.
    pub(super) fn remove_session(&mut self, session: &str) -> Option<ModeSet> {
        self.sessions.remove(session)?;
        Some(self.record(Some(session)))
    }

    fn record(&mut self, session: Option<&str>) -> ModeSet {
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
    fn session_without_mode_uses_mode_of_all() {
        let mut modes = Modes::default();
        assert!(modes.is_passthrough());
        modes.set(None, Some(RequestMode::InterceptAlways));
        modes.set(Some("s"), Some(RequestMode::Off));
        assert_eq!(modes.effective(Some("s")).mode, RequestMode::Off);
        assert_eq!(modes.effective(Some("t")).mode, RequestMode::InterceptAlways);
        modes.set(Some("s"), None);
        assert_eq!(modes.effective(Some("s")).mode, RequestMode::InterceptAlways);
        assert!(!modes.is_passthrough());
    }

    #[test]
    fn one_shot_pause_is_cleared_by_disarm() {
        let mut modes = Modes::default();
        modes.arm(None, OneShot::Pause);
        assert!(modes.effective(Some("s")).pause_next);
        assert_eq!(modes.disarm("s", OneShot::Pause).map(|set| set.pause_next), Some(false));
        assert_eq!(modes.disarm("s", OneShot::Pause), None);
        assert!(modes.is_passthrough());
    }

    #[test]
    fn recorded_modes_restore_settings() {
        let mut modes = Modes::default();
        let sets = vec![modes.set(None, Some(RequestMode::AutoOverride)), modes.arm(Some("s"), OneShot::Capture)];
        let again = Modes::new(sets);
        assert_eq!(again.effective(Some("s")), modes.effective(Some("s")));
        assert!(again.effective(Some("s")).capture_next && !again.effective(None).capture_next);
    }
}
