//! Steps of clients, agents, people and time.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use sayso_review::Ruling;

use crate::model_files::{FILES, File, FileId, SLOTS};
use crate::model_reference::{By, Choice, Id};

const CLIENTS: usize = 3;
const SESSIONS: usize = 3;

/// Selection of a change.
#[derive(Clone, Debug)]
pub(crate) enum Pick {
    Change(Id),
    /// A pending change.
    Waiting(Index),
    /// Any change, or one that does not exist.
    Any(Index),
}

#[derive(Clone, Debug)]
pub(crate) enum Intention {
    Write([char; SLOTS]),
    /// Edit of the present content.
    Edit(usize, char),
    /// Edit of the result of the last pending change.
    Follow(usize, char),
    Delete,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Submit {
        session: usize,
        file: FileId,
        intention: Intention,
        by: By,
        deadline: Option<i64>,
    },
    Run {
        session: usize,
        ruling: Ruling,
        deadline: Option<i64>,
    },
    Look {
        client: usize,
        pick: Pick,
    },
    /// Decides on the preview that the client last read, or on the present one.
    Decide {
        client: usize,
        pick: Pick,
        choice: Choice,
    },
    Withdraw {
        pick: Pick,
    },
    /// Ends a permitted change, with or without its effects.
    Finish {
        pick: Pick,
        obeys: bool,
    },
    Write {
        file: FileId,
        to: File,
    },
    Advance {
        by: i64,
    },
    Tick {
        by: i64,
    },
    StartSession {
        session: usize,
    },
    EndSession {
        session: usize,
    },
    StartTurn {
        session: usize,
    },
    EndTurn {
        session: usize,
    },
    TakeMessages {
        session: usize,
    },
    Undo {
        pick: Option<Pick>,
    },
    Redo,
    List,
    Restart {
        politely: bool,
    },
    Follow {
        after: Index,
    },
    Leave {
        follower: Index,
    },
    Read {
        follower: Index,
        events: usize,
    },
}

fn value() -> impl Strategy<Value = char> {
    prop::sample::select(vec!['a', 'b', 'c', 'd'])
}

fn slots() -> impl Strategy<Value = [char; SLOTS]> {
    [value(), value(), value()]
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        5 => any::<Index>().prop_map(Pick::Waiting),
        1 => any::<Index>().prop_map(Pick::Any),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (session, file, client) = (0..SESSIONS, 0..FILES.len(), 0..CLIENTS);
    let deadline = || option::weighted(0.3, 1..40i64);
    let intention = prop_oneof![
        2 => slots().prop_map(Intention::Write),
        3 => (0..SLOTS, value()).prop_map(|(slot, new)| Intention::Edit(slot, new)),
        2 => (0..SLOTS, value()).prop_map(|(slot, new)| Intention::Follow(slot, new)),
        1 => Just(Intention::Delete),
    ];
    let by = prop_oneof![4 => Just(By::Gate), 1 => Just(By::Agent)];
    let submit = (session.clone(), file.clone(), intention, by, deadline())
        .prop_map(|(session, file, intention, by, deadline)| Step::Submit { session, file, intention, by, deadline });
    let ruling = prop::sample::select(vec![Ruling::Ask, Ruling::Allow, Ruling::Deny]);
    let run = (session.clone(), ruling, deadline()).prop_map(|(session, ruling, deadline)| Step::Run {
        session,
        ruling,
        deadline,
    });
    let choice =
        prop_oneof![3 => Just(Choice::Approve), 1 => Just(Choice::Deny), 2 => any::<u8>().prop_map(Choice::Hunks)];
    let decide =
        (client.clone(), pick(), choice).prop_map(|(client, pick, choice)| Step::Decide { client, pick, choice });
    let write = (file, option::weighted(0.85, slots())).prop_map(|(file, to)| Step::Write { file, to });
    let step = prop_oneof![
        14 => submit,
        2 => run,
        3 => (client, pick()).prop_map(|(client, pick)| Step::Look { client, pick }),
        14 => decide,
        1 => pick().prop_map(|pick| Step::Withdraw { pick }),
        4 => (pick(), any::<bool>()).prop_map(|(pick, obeys)| Step::Finish { pick, obeys }),
        4 => write,
        1 => (1..20i64).prop_map(|by| Step::Advance { by }),
        3 => (0..20i64).prop_map(|by| Step::Tick { by }),
        1 => session.clone().prop_map(|session| Step::StartSession { session }),
        1 => session.clone().prop_map(|session| Step::EndSession { session }),
        1 => session.clone().prop_map(|session| Step::StartTurn { session }),
        4 => session.clone().prop_map(|session| Step::EndTurn { session }),
        1 => session.prop_map(|session| Step::TakeMessages { session }),
        3 => option::weighted(0.3, pick()).prop_map(|pick| Step::Undo { pick }),
        2 => Just(Step::Redo),
        1 => Just(Step::List),
        2 => any::<bool>().prop_map(|politely| Step::Restart { politely }),
        2 => any::<Index>().prop_map(|after| Step::Follow { after }),
        1 => any::<Index>().prop_map(|follower| Step::Leave { follower }),
        4 => (any::<Index>(), 0..30usize).prop_map(|(follower, events)| Step::Read { follower, events }),
    ];
    vec(step, 1..60)
}
