//! Reference model of the engine: a few maps, the files of [`crate::model_files`], and no journal.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::Ruling;

use crate::model_files::{File, FileId, SLOTS, Wish, merge};

pub(crate) type Id = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Permitted,
    Applied,
    Undone(Id),
    Denied,
    Stale,
    Cancelled,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Wish(FileId, Wish),
    Command,
    Rebase,
    Review(Vec<Id>),
    Undo(Vec<Id>),
    Redo(Vec<Id>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Gate,
    Agent,
}

/// Preview of a file: its state before and, if the change is possible, after.
pub(crate) type Shown = BTreeMap<FileId, (File, Option<File>)>;

#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) why: Why,
    pub(crate) by: By,
    pub(crate) session: Option<usize>,
    turn: usize,
    ruling: Option<Ruling>,
    person: bool,
    pub(crate) status: Status,
    deadline: Option<i64>,
    pub(crate) shown: Shown,
    /// Applied or permitted steps.
    pub(crate) steps: BTreeMap<FileId, (File, File)>,
    pub(crate) without: Vec<Id>,
    reviewed: bool,
    /// Order of the application, and of the last change of status.
    happened: u64,
    since: u64,
    /// The tree when a command was permitted, with the effects of other changes since.
    before: BTreeMap<FileId, File>,
    /// File states between the effects of other changes.
    early: BTreeMap<FileId, (File, File)>,
    /// The tree at the time of the submission.
    seen: BTreeMap<FileId, File>,
    /// Changes of the same files that were pending then.
    after: Vec<Id>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    Approve,
    Deny,
    /// Approves the hunks whose bits are set, in each file.
    Hunks(u8),
}

/// Reason why a verdict is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    TooLate,
    Impossible,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) known: bool,
    pub(crate) unread: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) why: Why,
    pub(crate) by: By,
    pub(crate) session: usize,
    pub(crate) turn: usize,
    pub(crate) ruling: Ruling,
    pub(crate) deadline: Option<i64>,
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) tree: BTreeMap<FileId, File>,
    pub(crate) changes: BTreeMap<Id, Change>,
    pub(crate) sessions: BTreeMap<usize, Session>,
    /// Change of the last step.
    pub(crate) touched: BTreeSet<Id>,
    clock: u64,
}

impl Reference {
    pub(crate) fn new(tree: impl IntoIterator<Item = File>) -> Self {
        Self { tree: tree.into_iter().enumerate().collect(), ..Self::default() }
    }

    pub(crate) fn pending(&self) -> Vec<Id> {
        self.with(Status::Pending)
    }

    pub(crate) fn with(&self, status: Status) -> Vec<Id> {
        self.changes.iter().filter(|(_, change)| change.status == status).map(|(id, _)| *id).collect()
    }

    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn change(&mut self, id: Id) -> &mut Change {
        self.touched.insert(id);
        self.changes.get_mut(&id).unwrap()
    }

    fn set(&mut self, id: Id, status: Status) {
        let now = self.now();
        let change = self.change(id);
        (change.status, change.since) = (status, now);
    }

    fn add(&mut self, asked: Asked, shown: Shown) -> Id {
        let id = self.changes.len() as Id + 1;
        let Asked { why, by, session, turn, ruling, deadline } = asked;
        let change = Change {
            why,
            by,
            session: Some(session),
            turn,
            ruling: Some(ruling),
            person: false,
            status: Status::Pending,
            deadline,
            shown,
            steps: BTreeMap::new(),
            without: Vec::new(),
            reviewed: false,
            happened: 0,
            since: 0,
            before: BTreeMap::new(),
            early: BTreeMap::new(),
            seen: self.tree.clone(),
            after: Vec::new(),
        };
        self.changes.insert(id, change);
        self.touched.insert(id);
        id
    }

    /// Creates a change without an intent.
    fn add_own(&mut self, why: Why, like: Option<Id>, shown: Shown) -> Id {
        let asked = Asked { why, by: By::Gate, session: 0, turn: 0, ruling: Ruling::Ask, deadline: None };
        let id = self.add(asked, shown);
        let (session, turn, by) = match like.map(|like| &self.changes[&like]) {
            Some(like) => (like.session, like.turn, like.by),
            None => (None, 0, By::Gate),
        };
        let change = self.change(id);
        (change.session, change.turn, change.by, change.ruling) = (session, turn, by, None);
        id
    }

    /// Computes the preview of a pending change. Later effects of others on its files are kept where it does not
    /// overwrite them.
    fn look_again(&self, id: Id, why: &Why) -> Shown {
        let Why::Wish(file, Wish::Write(slots)) = why else { return self.look(why) };
        let change = &self.changes[&id];
        let mut seen = change.seen[file];
        for earlier in change.after.iter().map(|earlier| &self.changes[earlier]) {
            if matches!(earlier.status, Status::Applied | Status::Undone(_))
                && let Some((_, after)) = earlier.steps.get(file)
            {
                seen = *after;
            }
        }
        let (Some(seen), Some(now)) = (seen, self.tree[file]) else { return self.look(why) };
        let mut merged = *slots;
        for slot in 0..SLOTS {
            if slots[slot] == seen[slot] {
                merged[slot] = now[slot];
            }
        }
        [(*file, (Some(now), Some(Some(merged))))].into()
    }

    fn look(&self, why: &Why) -> Shown {
        match why {
            Why::Wish(file, wish) => [(*file, (self.tree[file], wish.preview(self.tree[file])))].into(),
            _ => Shown::new(),
        }
    }

    pub(crate) fn submit(&mut self, asked: Asked) -> Id {
        let shown = self.look(&asked.why);
        let possible = shown.values().all(|(_, after)| after.is_some());
        let others = self.pending();
        let is_about = |id: &&Id| self.changes[id].shown.keys().any(|file| shown.contains_key(file));
        let after: Vec<Id> = others.iter().filter(is_about).copied().collect();
        let after_others = !after.is_empty();
        let ruling = asked.ruling;
        let id = self.add(asked, shown);
        self.change(id).after = after;
        match ruling {
            Ruling::Deny => self.set(id, Status::Denied),
            _ if !possible && !after_others => self.set(id, Status::Failed),
            Ruling::Ask => {}
            _ if !possible => {}
            _ => {
                self.decide(id, Choice::Approve).unwrap();
                self.change(id).person = false;
            }
        }
        if self.changes[&id].status != Status::Pending {
            self.change(id).deadline = None;
        }
        id
    }

    /// Returns the accepted part of a file, which may be empty.
    fn taken(choice: Choice, place: usize, (before, after): (File, File)) -> Option<File> {
        let mask = match choice {
            Choice::Approve => return Some(after),
            Choice::Deny => return None,
            Choice::Hunks(mask) => mask.rotate_right(place as u32),
        };
        let mut hunk = 0;
        let mut chosen = || {
            hunk += 1;
            mask & (1 << (hunk - 1)) != 0
        };
        let (Some(mut slots), Some(new)) = (before, after) else {
            return (before != after && chosen()).then_some(after);
        };
        let mut any = false;
        for slot in (0..SLOTS).filter(|&slot| slots[slot] != new[slot]).collect::<Vec<_>>() {
            if chosen() {
                slots[slot] = new[slot];
                any = true;
            }
        }
        any.then_some(Some(slots))
    }

    /// Carries out a verdict on the present preview.
    pub(crate) fn decide(&mut self, id: Id, choice: Choice) -> Result<(), Refused> {
        let change = self.changes.get(&id).filter(|change| change.status == Status::Pending);
        let change = change.ok_or(Refused::TooLate)?.clone();
        let deny = matches!(choice, Choice::Deny);
        if change.why == Why::Command {
            self.set(id, if deny { Status::Denied } else { Status::Permitted });
            // Effects that happened while it was pending are not its own.
            self.change(id).before = self.tree.clone();
            self.change(id).early.clear();
            return Ok(());
        }
        if !deny && change.shown.values().any(|(_, after)| after.is_none()) {
            return Err(Refused::Impossible);
        }
        let review = matches!(change.why, Why::Review(_));
        let mut steps = BTreeMap::new();
        let mut approved = change.shown.is_empty() && !deny;
        for (place, (&file, &(before, after))) in change.shown.iter().enumerate() {
            // An impossible change has no accepted part.
            let taken = after.and_then(|after| Self::taken(choice, place, (before, after)));
            approved |= taken.is_some();
            match (review, taken) {
                (true, taken) => _ = steps.insert(file, (after.unwrap(), taken.unwrap_or(before))),
                (false, Some(taken)) => _ = steps.insert(file, (before, taken)),
                (false, None) => {}
            }
        }
        steps.retain(|_, (before, after)| before != after);
        self.change(id).person = true;
        if steps.is_empty() {
            self.set(id, if approved { Status::Applied } else { Status::Denied });
            if approved {
                self.effects(id);
            }
        } else if steps.iter().any(|(file, (before, _))| self.tree[file] != *before) {
            self.stale(id, &steps);
            return Ok(());
        } else if change.by == By::Agent {
            self.set(id, Status::Permitted);
            self.change(id).steps = steps;
        } else {
            for (file, (_, after)) in &steps {
                self.tree.insert(*file, *after);
            }
            self.happen(id, steps);
            self.set(id, Status::Applied);
            self.effects(id);
            if let (true, Some(session)) = (review, change.session) {
                let session = self.sessions.entry(session).or_default();
                (session.known, session.unread) = (true, session.unread + 1);
            }
        }
        self.over(id);
        Ok(())
    }

    /// Recorded effects of other changes are not effects of running commands.
    fn happen(&mut self, id: Id, steps: BTreeMap<FileId, (File, File)>) {
        for running in self.changes.values_mut().filter(|change| change.why == Why::Command) {
            for (file, (before, after)) in &steps {
                match running.before.insert(*file, *after) {
                    Some(known) if known != *before => _ = running.early.insert(*file, (known, *before)),
                    _ => {}
                }
            }
        }
        let now = self.now();
        let change = self.change(id);
        (change.steps, change.happened) = (steps, now);
    }

    fn effects(&mut self, id: Id) {
        match self.changes[&id].why.clone() {
            Why::Undo(of) => of.iter().for_each(|of| self.set(*of, Status::Undone(id))),
            Why::Redo(of) => of.iter().for_each(|of| self.set(*of, Status::Applied)),
            Why::Review(of) => of.iter().for_each(|of| self.change(*of).reviewed = true),
            _ => {}
        }
    }

    /// Ends a pending change, and previews its dependents again.
    fn over(&mut self, id: Id) {
        let ended = self.changes[&id].clone();
        let happened = matches!(ended.status, Status::Applied | Status::Permitted);
        for later in self.pending().into_iter().filter(|later| *later > id) {
            if ended.shown.keys().any(|file| self.changes[&later].shown.contains_key(file)) && self.refresh(later) {
                self.change(later).without.extend((!happened).then_some(id));
            }
        }
    }

    fn refresh(&mut self, id: Id) -> bool {
        let why = self.changes[&id].why.clone();
        if !matches!(why, Why::Wish(..)) {
            return false;
        }
        self.change(id).shown = self.look_again(id, &why);
        true
    }

    fn stale(&mut self, id: Id, steps: &BTreeMap<FileId, (File, File)>) {
        self.set(id, Status::Stale);
        self.over(id);
        let (why, shown) = if let Why::Review(of) = self.changes[&id].why.clone() {
            let shown = self.net(&of);
            (Why::Review(of), shown)
        } else {
            let both = |(file, (before, after)): (&FileId, &(File, File))| {
                let now = self.tree[file];
                (*file, (now, merge(*before, now, *after)))
            };
            (Why::Rebase, steps.iter().map(both).collect())
        };
        let (deadline, ruling) = (self.changes[&id].deadline, self.changes[&id].ruling);
        let next = self.add_own(why, Some(id), shown);
        let next = self.change(next);
        (next.deadline, next.ruling) = (deadline, ruling);
    }

    pub(crate) fn withdraw(&mut self, id: Id) -> Result<(), Refused> {
        if self.changes.get(&id).is_none_or(|change| change.status != Status::Pending) {
            return Err(Refused::TooLate);
        }
        self.set(id, Status::Cancelled);
        self.over(id);
        Ok(())
    }

    /// Ends a permitted change with the present tree.
    pub(crate) fn finish(&mut self, id: Id) -> Result<(), Refused> {
        let change =
            self.changes.get(&id).filter(|change| change.status == Status::Permitted).ok_or(Refused::TooLate)?;
        let mut steps: BTreeMap<FileId, (File, File)> = match change.why {
            Why::Command => change.before.iter().map(|(file, before)| (*file, (*before, self.tree[file]))).collect(),
            _ => change.steps.iter().map(|(file, (before, _))| (*file, (*before, self.tree[file]))).collect(),
        };
        steps.retain(|_, (before, after)| before != after);
        for (file, early) in change.early.clone() {
            steps.entry(file).or_insert(early);
        }
        let wanted = !matches!(change.why, Why::Command) && !change.steps.is_empty();
        self.change(id).steps.clear();
        if wanted && steps.is_empty() {
            self.set(id, Status::Failed);
            return Ok(());
        }
        if !steps.is_empty() {
            self.happen(id, steps);
        }
        self.set(id, Status::Applied);
        Ok(())
    }

    /// `true` if the deadline of a pending change has passed.
    pub(crate) fn is_due(&self, id: Id, now: i64) -> bool {
        let change = self.changes.get(&id).filter(|change| change.status == Status::Pending);
        change.and_then(|change| change.deadline).is_some_and(|deadline| deadline <= now)
    }

    pub(crate) fn expire(&mut self, id: Id) {
        self.set(id, Status::Denied);
        self.over(id);
    }

    pub(crate) fn next_deadline(&self) -> Option<i64> {
        self.pending().iter().filter_map(|id| self.changes[id].deadline).min()
    }

    /// Expires changes at their deadlines, and returns them.
    pub(crate) fn tick(&mut self, now: i64) -> Vec<Id> {
        let due: Vec<Id> = self.pending().into_iter().filter(|id| self.is_due(*id, now)).collect();
        for id in &due {
            self.expire(*id);
        }
        for id in self.pending() {
            self.refresh(id);
        }
        due
    }

    pub(crate) fn end_session(&mut self, session: usize) -> Result<(), Refused> {
        if !self.sessions.get(&session).is_some_and(|session| session.known) {
            return Err(Refused::Impossible);
        }
        for id in self.pending() {
            let change = &self.changes[&id];
            if change.session == Some(session) && !matches!(change.why, Why::Review(_)) {
                self.withdraw(id)?;
            }
        }
        Ok(())
    }

    /// Returns the pending review, if any.
    pub(crate) fn end_turn(&mut self, session: usize, turn: usize) -> Option<Id> {
        self.sessions.entry(session).or_default().known = true;
        let open = |change: &Change| (change.session, change.turn) == (Some(session), turn) && is_open(change);
        let of: Vec<Id> = self.changes.iter().filter(|(_, change)| open(change)).map(|(id, _)| *id).collect();
        let first = *of.first()?;
        let shown = self.net(&of);
        // The pending review is kept unless its changes differ.
        for id in self.pending() {
            let change = &self.changes[&id];
            let Why::Review(other) = &change.why else { continue };
            if (change.session, change.turn) == (Some(session), turn) {
                if *other == of && change.shown == shown {
                    return Some(id);
                }
                self.withdraw(id).unwrap();
            }
        }
        let nothing = shown.is_empty();
        let id = self.add_own(Why::Review(of), Some(first), shown);
        self.change(id).by = By::Gate;
        if nothing {
            self.decide(id, Choice::Approve).unwrap();
        }
        (!nothing).then_some(id)
    }

    /// Returns the net effect of some changes, with all others counted as given.
    fn net(&self, of: &[Id]) -> Shown {
        let mut happened: Vec<(&Id, &Change)> =
            self.changes.range(of[0]..).filter(|(_, change)| change.happened > 0).collect();
        happened.sort_by_key(|(_, change)| change.happened);
        let mut shown = Shown::new();
        for (&file, &now) in &self.tree {
            let steps = happened.iter().filter_map(|(id, change)| Some((of.contains(id), *change.steps.get(&file)?)));
            let mut steps = steps.skip_while(|(open, _)| !open).peekable();
            let Some(&(_, (first, _))) = steps.peek() else { continue };
            let (mut given, mut last) = (first, first);
            let carry = |from, to, given| if from == to { given } else { merge(from, given, to).unwrap_or(given) };
            for (open, (before, after)) in steps {
                given = carry(last, before, given);
                if !open {
                    given = carry(before, after, given);
                }
                last = after;
            }
            given = carry(last, now, given);
            if given != now {
                shown.insert(file, (given, Some(now)));
            }
        }
        shown
    }

    /// Undoes the last possible change, or a named one.
    pub(crate) fn undo(&mut self, target: Option<Id>) -> Result<(), Refused> {
        let original = |change: &Change| !matches!(change.why, Why::Undo(_) | Why::Redo(_));
        let can = |change: &&Change| original(change) && change.status == Status::Applied && change.happened > 0;
        let last = || self.changes.iter().filter(|(_, change)| can(change)).max_by_key(|(_, change)| change.since);
        let id = target.or_else(|| last().map(|(id, _)| *id)).ok_or(Refused::Impossible)?;
        self.changes.get(&id).filter(can).ok_or(Refused::Impossible)?;
        self.reverse(id, Why::Undo(vec![id]))
    }

    pub(crate) fn redo(&mut self) -> Result<(), Refused> {
        let stands = |id: Id, of: &[Id]| of.iter().all(|of| self.changes[of].status == Status::Undone(id));
        let last = self.changes.iter().rev().find_map(|(id, change)| match &change.why {
            Why::Undo(of) if change.status == Status::Applied && stands(*id, of) => Some((*id, of.clone())),
            _ => None,
        });
        let (undo, of) = last.ok_or(Refused::Impossible)?;
        self.reverse(undo, Why::Redo(of))
    }

    fn reverse(&mut self, id: Id, why: Why) -> Result<(), Refused> {
        let steps = self.changes[&id].steps.clone();
        if steps.iter().any(|(file, (_, after))| self.tree[file] != *after) {
            return Err(Refused::Impossible);
        }
        let shown = steps.iter().map(|(file, (before, after))| (*file, (*after, Some(*before)))).collect();
        let id = self.add_own(why, None, shown);
        self.decide(id, Choice::Approve)?;
        // A review ends with the last of its changes.
        for id in self.pending() {
            if matches!(&self.changes[&id].why, Why::Review(of) if !of.iter().any(|of| is_open(&self.changes[of]))) {
                self.withdraw(id)?;
            }
        }
        Ok(())
    }
}

fn is_open(change: &Change) -> bool {
    change.ruling == Some(Ruling::Later)
        && change.status == Status::Applied
        && !(change.person || change.reviewed || change.steps.is_empty())
}
