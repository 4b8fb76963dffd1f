//! Runs each step on the engine and on the reference, and compares all observable state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sayso_gate::{
    ChangeRecord, ChangeStatus, DecisionResult, Gate, GateError, History, NewSession, NextEvent, NoNotify, Reversal,
    Rules, Submission, SubmitResult, Subscription,
};
use sayso_journal::Reader;
use sayso_review::{
    Answer, ContentHash, Decider, Event, EventBody, FileAnswer, Fingerprint, HunkId, IfChanged, Intent, Origin,
    Performer, Proposal, Recorded, Rule, Ruling, Target, Verdict, VerdictError,
};

use crate::model_files::{FILES, File, FileId, SLOTS, Wish, line, text};
use crate::model_reference::{Asked, By, Choice, Id, Reference, Refused, Shown, Status, Why};
use crate::model_steps::{Intention, Pick, Step};
use crate::{Scene, path, rules, writing};

pub(crate) struct Both {
    scene: Scene,
    gate: Option<Gate>,
    reader: Reader,
    reference: Reference,
    now: i64,
    turns: BTreeMap<usize, usize>,
    /// Previews that clients last read.
    looked: BTreeMap<(usize, Id), (ContentHash, Shown)>,
    /// A subscription that is always read to its end, and its events.
    first: Subscription,
    log: Vec<Arc<Recorded>>,
    followers: Vec<Subscription>,
}

fn policy() -> Rules {
    let mut all: Vec<Rule> = [("later-*", Ruling::Later), ("allow-*", Ruling::Allow), ("deny-*", Ruling::Deny)]
        .map(|(pattern, ruling)| writing(pattern, ruling))
        .into();
    for ruling in [Ruling::Allow, Ruling::Deny] {
        let mut rule = Rule::new(ruling);
        rule.run = vec![format!("make {ruling}")];
        all.push(rule);
    }
    rules(all)
}

fn name(session: usize) -> String {
    format!("session {session}")
}

fn bytes(file: File) -> Option<Vec<u8>> {
    file.map(|slots| text(&slots).into_bytes())
}

fn is(print: &Fingerprint, file: File) -> bool {
    print.hash() == bytes(file).map(|bytes| ContentHash::of(&bytes))
}

fn open(scene: &Scene) -> (Gate, Reader) {
    let gate = Gate::new(scene.engine(), policy(), Box::new(NoNotify), 1).unwrap();
    (gate, Reader::open(&scene.state.path().join("journal")).unwrap())
}

impl Both {
    pub(crate) fn new() -> Self {
        let scene = Scene::in_memory();
        let reference = Reference::new([Some(['a'; SLOTS]), None, Some(['a'; SLOTS]), None, Some(['a'; SLOTS]), None]);
        for (file, content) in &reference.tree {
            put(&scene, *file, *content);
        }
        let (gate, reader) = open(&scene);
        let first = gate.subscribe(0);
        let (turns, looked) = (BTreeMap::new(), BTreeMap::new());
        let (log, followers) = (Vec::new(), Vec::new());
        Self { scene, gate: Some(gate), reader, reference, now: 1, turns, looked, first, log, followers }
    }

    fn gate(&self) -> &Gate {
        self.gate.as_ref().unwrap()
    }

    fn record(&self, id: Id) -> ChangeRecord {
        History::new(&self.reader).change(id).unwrap()
    }

    fn pick(&self, pick: &Pick) -> Id {
        let waiting = self.reference.pending();
        match pick {
            Pick::Change(change) => *change,
            Pick::Waiting(index) if !waiting.is_empty() => *index.get(&waiting),
            Pick::Waiting(index) | Pick::Any(index) => index.index(self.reference.changes.len() + 1) as Id + 1,
        }
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Submit { session, file, intention, by, deadline } => {
                let wish = self.wish(*file, intention);
                let asked = Asked {
                    why: Why::Wish(*file, wish),
                    by: *by,
                    session: *session,
                    turn: self.turns.get(session).copied().unwrap_or(0),
                    ruling: FILES[*file].1,
                    deadline: deadline.map(|after| self.now + after),
                };
                self.submit(asked);
            }
            Step::Run { session, ruling, deadline } => self.submit(Asked {
                why: Why::Command,
                by: By::Gate,
                session: *session,
                turn: self.turns.get(session).copied().unwrap_or(0),
                ruling: *ruling,
                deadline: deadline.map(|after| self.now + after),
            }),
            Step::Look { client, pick } => {
                let id = self.pick(pick);
                match self.gate().pending_change(id) {
                    Ok(proposed) => {
                        let shown = self.reference.changes[&id].shown.clone();
                        self.looked.insert((*client, id), (proposed.hash(), shown));
                    }
                    Err(error) => assert!(is_too_late(&error), "{error}"),
                }
            }
            Step::Decide { client, pick, choice } => self.decide(*client, self.pick(pick), *choice),
            Step::Withdraw { pick } => {
                let change = self.pick(pick);
                let expected = self.reference.withdraw(change);
                agree(expected, &self.gate().withdraw(change, self.now));
            }
            Step::Finish { pick, obeys } => self.finish(pick, *obeys),
            Step::Write { file, to } => {
                put(&self.scene, *file, *to);
                self.reference.tree.insert(*file, *to);
            }
            Step::Advance { by } => self.now += by,
            Step::Tick { by } => {
                self.now += by;
                let ticked = self.gate().tick(self.now).unwrap();
                assert_eq!(ticked.expired, self.reference.tick(self.now), "what was due");
            }
            Step::Undo { pick } => self.undo(pick.as_ref()),
            Step::Redo => {
                let expected = self.reference.redo();
                let redo = Reversal::Redo { target: Target::Last, if_changed: IfChanged::Refuse };
                agree(expected, &self.gate().reverse(&redo, None, self.now));
            }
            Step::List => {
                assert_eq!(self.gate().pending_changes().unwrap(), self.reference.pending(), "what waits");
                assert_eq!(self.gate().next_deadline().unwrap(), self.reference.next_deadline(), "what is due next");
            }
            Step::Restart { politely } => self.restart(*politely),
            Step::Follow { after } => {
                let after = after.index(self.log.len() + 1) as u64;
                self.followers.push(self.gate().subscribe(after));
            }
            Step::Leave { follower } if self.followers.is_empty() => _ = follower,
            Step::Leave { follower } => _ = self.followers.remove(follower.index(self.followers.len())),
            Step::Read { follower, events } => {
                if !self.followers.is_empty() {
                    let follower = follower.index(self.followers.len());
                    read(&mut self.followers[follower], &self.log, *events);
                }
            }
            step => self.converse(step),
        }
    }

    fn converse(&mut self, step: &Step) {
        match *step {
            Step::StartSession { session } => {
                let new = NewSession { session: name(session), ..NewSession::default() };
                agree(Ok(()), &self.gate().start_session(new, self.now));
                self.reference.sessions.entry(session).or_default().known = true;
            }
            Step::EndSession { session } => {
                let expected = self.reference.end_session(session);
                let reply = self.gate().end_session(&name(session), self.now);
                assert_eq!(reply.is_ok(), expected.is_ok(), "{reply:?}");
            }
            Step::StartTurn { session } => {
                let turn = self.turns.entry(session).or_default();
                *turn += 1;
                let turn = turn.to_string();
                agree(Ok(()), &self.gate().start_turn(&name(session), &turn, self.now));
                self.reference.sessions.entry(session).or_default().known = true;
            }
            Step::EndTurn { session } => {
                let turn = self.turns.get(&session).copied().unwrap_or(0);
                let expected = self.reference.end_turn(session, turn);
                let review = self.gate().end_turn(&name(session), &turn.to_string(), self.now).unwrap();
                assert_eq!(review.map(|review| review.change), expected);
            }
            Step::TakeMessages { session } => {
                let expected = self.reference.sessions.entry(session).or_default();
                let expected = std::mem::take(&mut expected.unread);
                let messages = self.gate().take_messages(&name(session), self.now).unwrap();
                assert_eq!(messages.len(), expected, "{messages:?}");
            }
            ref other => panic!("{other:?} is taken elsewhere"),
        }
    }

    fn wish(&self, file: FileId, intention: &Intention) -> Wish {
        let pending = self.reference.pending();
        let last = pending.iter().rev().find_map(|id| self.reference.changes[id].shown.get(&file)?.1?);
        let (base, slot, new) = match *intention {
            Intention::Write(slots) => return Wish::Write(slots),
            Intention::Delete => return Wish::Delete,
            Intention::Edit(slot, new) => (self.reference.tree[&file], slot, new),
            Intention::Follow(slot, new) => (last, slot, new),
        };
        let old = base.map_or('a', |slots| slots[slot]);
        Wish::Edit { slot, old, new: if new == old { 'e' } else { new } }
    }

    fn submit(&mut self, asked: Asked) {
        let intent = if let Why::Wish(file, wish) = &asked.why {
            Intent::ChangeFiles(proposal(FILES[*file].0, *wish))
        } else {
            let command = format!("make {}", asked.ruling);
            Intent::RunCommand { command, directory: None, description: None }
        };
        let (session, turn) = (Some(name(asked.session)), Some(asked.turn.to_string()));
        let origin = Origin { agent: None, session, turn, call: None };
        let performer = if asked.by == By::Gate { Performer::Gate } else { Performer::Agent };
        let submission = Submission { performer, deadline: asked.deadline, ..Submission::new(intent, origin) };
        let submitted = self.gate().submit(submission, self.now).unwrap();
        let id = self.reference.submit(asked);
        let (proposed, status) = match &submitted {
            SubmitResult::Pending(proposed) => (proposed, Status::Pending),
            SubmitResult::Impossible { proposed, .. } => (proposed, Status::Failed),
            SubmitResult::Decided { proposed, decided } => (proposed, outcome(decided)),
        };
        assert_eq!((proposed.change, status), (id, self.reference.changes[&id].status));
    }

    fn decide(&mut self, client: usize, change: Id, choice: Choice) {
        let shown = self.reference.changes.get(&change).map(|change| change.shown.clone()).unwrap_or_default();
        // A client without a preview reads it now. If the change is not pending, it makes up a hash.
        let (preview, seen) = self.looked.remove(&(client, change)).unwrap_or_else(|| {
            let proposed = self.gate().pending_change(change);
            (proposed.map_or(ContentHash::of(b"no preview"), |proposed| proposed.hash()), shown.clone())
        });
        let verdict = Verdict {
            preview,
            answer: answer(&seen, choice),
            comments: Vec::new(),
            message: None,
            by: Decider::PERSON,
        };
        let verdict = if self.reference.changes.get(&change).is_some_and(|change| change.why == Why::Command) {
            // Commands have no hunks.
            let answer = match choice {
                Choice::Deny => Answer::Deny { reason: None },
                _ => Answer::Approve,
            };
            Verdict { answer, ..verdict }
        } else {
            verdict
        };
        let waits = self.reference.pending().contains(&change);
        let last = self.reader.last_number().unwrap();
        let reply = self.gate().decide(change, &verdict, None, self.now);
        if self.reference.is_due(change, self.now) {
            // The deadline passed without a tick.
            self.reference.expire(change);
            assert!(is_too_late(&reply.unwrap_err()), "a verdict after the deadline");
            return;
        }
        if waits && seen != shown {
            let error = reply.unwrap_err();
            assert!(matches!(error, GateError::Verdict(VerdictError::OtherPreview)), "{error}");
            assert_eq!(self.reader.last_number().unwrap(), last, "an outdated verdict changes nothing");
            return;
        }
        let expected = self.reference.decide(change, choice);
        if let (Ok(()), Ok(decided)) = (expected, &reply) {
            assert_eq!(outcome(&decided.result), self.reference.changes[&change].status, "{change}");
            // A second client is too late.
            let last = self.reader.last_number().unwrap();
            let denial = Verdict { answer: Answer::Deny { reason: None }, ..verdict };
            let late = self.gate().decide(change, &denial, None, self.now);
            assert!(is_too_late(&late.unwrap_err()), "a second winner of {change}");
            assert_eq!(self.reader.last_number().unwrap(), last, "a late verdict changes nothing");
            return;
        }
        agree(expected, &reply);
        assert_eq!(self.reader.last_number().unwrap(), last, "a late verdict changes nothing");
    }

    fn finish(&mut self, pick: &Pick, obeys: bool) {
        let permitted = self.reference.with(Status::Permitted);
        let change = match pick {
            Pick::Waiting(index) if !permitted.is_empty() => *index.get(&permitted),
            pick => self.pick(pick),
        };
        if let (true, Some(told)) = (obeys, self.reference.changes.get(&change)) {
            for (file, (_, after)) in told.steps.clone() {
                if permitted.contains(&change) {
                    put(&self.scene, file, after);
                    self.reference.tree.insert(file, after);
                }
            }
        }
        let expected = self.reference.finish(change);
        agree(expected, &self.gate().finish(change, Some(0), self.now));
    }

    fn undo(&mut self, pick: Option<&Pick>) {
        let pick = pick.map(|pick| self.pick(pick));
        // Undoing an undo is a redo, which has steps of its own.
        let original = |id: &Id| {
            self.reference.changes.get(id).is_none_or(|change| !matches!(change.why, Why::Undo(_) | Why::Redo(_)))
        };
        let change = pick.filter(original);
        let expected = self.reference.undo(change);
        let target = change.map_or(Target::Last, |change| Target::Change { change });
        let undo = Reversal::Undo { target, if_changed: IfChanged::Refuse };
        agree(expected, &self.gate().reverse(&undo, None, self.now));
    }

    fn restart(&mut self, politely: bool) {
        let last = self.reader.last_number().unwrap();
        let gate = self.gate.take().unwrap();
        if politely {
            drop(gate.close().expect("nobody else uses it"));
            for follower in &mut self.followers {
                read(follower, &self.log, usize::MAX);
                assert_eq!(follower.try_next().unwrap(), NextEvent::Ended);
            }
        } else {
            drop(gate);
        }
        let (gate, reader) = open(&self.scene);
        for follower in self.followers.iter_mut().chain([&mut self.first]) {
            *follower = gate.subscribe(follower.seen());
        }
        (self.gate, self.reader) = (Some(gate), reader);
        assert_eq!(self.reader.last_number().unwrap(), last, "a start is no event");
        self.reference.touched.extend(self.reference.changes.keys());
    }

    /// Compares all observable state.
    pub(crate) fn check(&mut self) {
        while let NextEvent::Event(event) = self.first.try_next().unwrap() {
            assert_eq!(event.number, self.log.len() as u64 + 1, "numbers are dense");
            if let EventBody::Known(event) = &event.body {
                self.reference.touched.extend(event.change());
            }
            self.log.push(event);
        }
        assert_eq!(self.log.len() as u64, self.reader.last_number().unwrap(), "who follows sees all that is recorded");
        for (file, content) in &self.reference.tree {
            let found = self.scene.read(FILES[*file].0);
            assert!(found == bytes(*content), "{} is {found:?} and not {content:?}", FILES[*file].0);
        }
        for id in std::mem::take(&mut self.reference.touched) {
            self.check_change(id);
        }
    }

    fn check_change(&self, id: Id) {
        let record = self.record(id);
        let at_hand = self.gate().read(|history| history.change(id)).unwrap();
        assert_eq!(at_hand, record, "what an engine has at hand of change {id} is what it recorded");
        let change = &self.reference.changes[&id];
        let status = match &record.status {
            ChangeStatus::Pending => Status::Pending,
            ChangeStatus::Permitted => Status::Permitted,
            ChangeStatus::Applied => Status::Applied,
            ChangeStatus::Undone { by } => Status::Undone(*by),
            ChangeStatus::Denied => Status::Denied,
            ChangeStatus::Stale => Status::Stale,
            ChangeStatus::Cancelled => Status::Cancelled,
            ChangeStatus::Failed { .. } => Status::Failed,
            ChangeStatus::Interrupted => panic!("{id} is interrupted"),
        };
        assert_eq!(status, change.status, "change {id}, {:?}", change.why);
        assert_eq!(record.origin.session, change.session.map(name), "change {id}");
        assert_eq!(record.dropped_predecessors, change.without, "change {id} counted on others");
        if status == Status::Pending {
            let mut shown = BTreeSet::new();
            for file in &record.files {
                let place = FILES.iter().position(|(name, _)| *name == file.path.as_str()).unwrap();
                let (before, after) = change.shown.get(&place).unwrap_or_else(|| panic!("{id} shows {}", file.path));
                assert!(is(&file.before, *before), "change {id} does not show {} as {before:?}", file.path);
                match after {
                    None => assert!(file.problem.is_some(), "change {id} is not possible"),
                    Some(after) => {
                        assert!(file.problem.is_none(), "change {id} is possible: {:?}", file.problem);
                        assert!(is(&file.after, *after), "change {id} does not make {} {after:?}", file.path);
                    }
                }
                shown.insert(place);
            }
            assert!(change.shown.keys().copied().eq(shown.iter().copied()), "change {id} shows {shown:?}");
        }
        let steps = match (&record.applied, status) {
            (None, Status::Permitted) => record.expected.as_slice(),
            (applied, _) => applied.as_ref().map_or(&[][..], |applied| &applied.steps),
        };
        assert_eq!(steps.len(), change.steps.len(), "what change {id} did: {steps:?} and {:?}", change.steps);
        for step in steps {
            let place = FILES.iter().position(|(name, _)| *name == step.path.as_str()).unwrap();
            let (before, after) = change.steps[&place];
            assert!(is(&step.before, before) && is(&step.after, after), "change {id} did {before:?} → {after:?}");
        }
    }

    /// Checks invariants of the whole stream.
    pub(crate) fn check_all(&mut self) {
        self.reference.touched.extend(self.reference.changes.keys());
        self.check();
        assert_eq!(self.gate().pending_changes().unwrap(), self.reference.pending(), "what waits");
        let (mut decided, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for event in &self.log {
            match &event.body {
                EventBody::Known(Event::Decided { change, .. }) => {
                    assert!(decided.insert(*change), "{change} was decided twice");
                    assert!(!ended.contains(change), "{change} was decided after its end");
                }
                EventBody::Known(Event::Ended { change, .. }) => assert!(ended.insert(*change), "{change} ended twice"),
                _ => {}
            }
        }
        for mut follower in std::mem::take(&mut self.followers) {
            read(&mut follower, &self.log, usize::MAX);
            assert_eq!(follower.seen(), self.log.len() as u64, "a follower missed the end");
        }
    }
}

/// Replaces a file by a rename, as editors do.
fn put(scene: &Scene, file: FileId, content: File) {
    let place = scene.path(FILES[file].0);
    match bytes(content) {
        None => _ = std::fs::remove_file(place),
        Some(bytes) => {
            let new = scene.state.path().join("edited");
            std::fs::write(&new, bytes).unwrap();
            std::fs::rename(new, place).unwrap();
        }
    }
}

fn read(follower: &mut Subscription, log: &[Arc<Recorded>], most: usize) {
    for _ in 0..most {
        let expected = usize::try_from(follower.seen()).unwrap();
        match follower.try_next().unwrap() {
            NextEvent::Event(event) => {
                assert!(event == log[expected], "event {} instead of {expected} + 1", event.number);
            }
            NextEvent::NotYet | NextEvent::Ended => {
                assert_eq!(expected, log.len(), "a follower was told that there is no more");
                return;
            }
        }
    }
}

fn proposal(file: &str, wish: Wish) -> Proposal {
    let json = match wish {
        Wish::Write(slots) => serde_json::json!({ "operation": "write", "path": file, "content": text(&slots) }),
        Wish::Edit { slot, old, new } => serde_json::json!({
            "operation": "edit", "path": file, "old_string": line(slot, old), "new_string": line(slot, new)
        }),
        Wish::Delete => serde_json::json!({ "operation": "delete", "path": file }),
    };
    Proposal::parse(json.to_string().as_bytes()).unwrap()
}

fn answer(shown: &Shown, choice: Choice) -> Answer {
    let mask = match choice {
        Choice::Approve => return Answer::Approve,
        Choice::Deny => return Answer::Deny { reason: None },
        Choice::Hunks(mask) => mask,
    };
    let mut files = BTreeMap::new();
    for (place, (file, (before, after))) in shown.iter().enumerate() {
        let count = match (before, after) {
            (Some(before), Some(Some(after))) => (0..SLOTS).filter(|&slot| before[slot] != after[slot]).count(),
            (before, Some(after)) => usize::from(before != after),
            (_, None) => 0,
        };
        let mask = mask.rotate_right(place as u32);
        let hunks = (1..=count).filter(|hunk| mask & (1 << (hunk - 1)) != 0).map(HunkId::whole).collect();
        files.insert(path(FILES[*file].0), FileAnswer::Hunks { hunks });
    }
    Answer::Files { files, reason: None }
}

fn outcome(decided: &DecisionResult) -> Status {
    match decided {
        DecisionResult::Applied { .. } => Status::Applied,
        DecisionResult::Permitted { .. } => Status::Permitted,
        DecisionResult::Denied { .. } => Status::Denied,
        DecisionResult::Stale { .. } => Status::Stale,
        DecisionResult::Failed { error, .. } => panic!("{error}"),
    }
}

fn is_too_late(error: &GateError) -> bool {
    matches!(error, GateError::WrongStatus { .. } | GateError::NoSuchChange(_))
}

/// Checks that the engine accepted or rejected a step like the reference.
fn agree<T: std::fmt::Debug>(expected: Result<(), Refused>, reply: &Result<T, GateError>) {
    match (expected, reply) {
        (Ok(()), Ok(_)) | (Err(Refused::Impossible), Err(_)) => {}
        (Err(Refused::TooLate), Err(error)) => assert!(is_too_late(error), "{error}"),
        _ => panic!("{expected:?} was expected, and it is {reply:?}"),
    }
}
