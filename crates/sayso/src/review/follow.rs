//! `sayso review --follow`: stays, and shows each change as it comes.
//!
//! What a person types and what happens in the stream come by one channel, so that a question ends by itself when somebody else
//! answers it.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal as _, Read};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use futures::future::{Either, select};
use sayso_api::client::{Client, Extent, Patience, Role, Shown, View, Watched};
use sayso_api::proto;
use sayso_api::proto::oneof::event::Kind;
use sayso_api::proto::oneof::request_event::Step;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Reviewing;
use crate::cli::ReviewArguments;
use crate::engine::{Connected, runtime};
use crate::failure::Failure;
use crate::output::say;
use crate::propose::ask::{Questions, Typed};
use crate::session;
use crate::state::State;
use crate::terminal::Terminal;

/// Something that a reviewer hears.
enum Heard {
    /// What was typed.
    Line(String),
    /// A change came, or shows something else.
    Came(u64),
    /// A change no longer waits.
    Over(u64),
    /// It is over.
    End(End),
}

/// Why nothing more is heard.
enum End {
    /// Nobody types any more, or this process is told to stop.
    Left,
    /// The stream cannot be followed.
    Lost(Failure),
}

/// All that is heard, and what is to be done about it.
struct Mailbox {
    heard: Receiver<Heard>,
    /// What waits to be shown.
    waiting: VecDeque<u64>,
    /// What is asked about.
    asked: u64,
    ended: Option<End>,
}

impl Mailbox {
    /// What is typed in answer to a question; `None` if nobody answers it here.
    fn answer(&mut self) -> Option<String> {
        loop {
            match self.hear()? {
                Heard::Line(line) => return Some(line),
                Heard::Over(change) if change == self.asked => return None,
                _ => {}
            }
        }
    }

    /// The next thing to be heard; `None` at the end.
    fn hear(&mut self) -> Option<Heard> {
        if self.ended.is_some() {
            return None;
        }
        let heard = self.heard.recv().unwrap_or(Heard::End(End::Left));
        match heard {
            Heard::End(why) => {
                self.ended = Some(why);
                return None;
            }
            Heard::Came(change) if !self.waiting.contains(&change) => self.waiting.push_back(change),
            Heard::Over(change) => self.waiting.retain(|waits| *waits != change),
            Heard::Came(_) | Heard::Line(_) => {}
        }
        Some(heard)
    }
}

/// What is typed, as questions read it.
struct Answers {
    mailbox: Arc<Mutex<Mailbox>>,
    line: Vec<u8>,
    at: usize,
}

impl BufRead for Answers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.line.len() {
            self.line = lock(&self.mailbox).answer().map_or_else(Vec::new, String::into_bytes);
            self.at = 0;
        }
        Ok(self.line.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.at = (self.at + amount).min(self.line.len());
    }
}

impl Read for Answers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

fn lock(mailbox: &Mutex<Mailbox>) -> MutexGuard<'_, Mailbox> {
    // What is in it is never half changed.
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn run(state: &State, arguments: &ReviewArguments) -> Result<ExitCode, Failure> {
    state.tell_where();
    let connected = Connected::to(state)?;
    let client = connected.client();
    // Followed from here on, before what waits is listed: nothing falls between.
    let status = connected.block(client.status(Extent::Counts))?;
    let (tell, heard) = channel();
    let following = Following::start(&connected, status.last_event, tell.clone())?;
    let session = session::meant_or_given(&connected, arguments.session.as_deref())?;
    let pending = connected.block(client.list_pending(session.as_deref(), View::Nothing))?;
    let waiting = pending.iter().map(|progress| progress.record.change).collect();
    let mailbox = Arc::new(Mutex::new(Mailbox { heard, waiting, asked: 0, ended: None }));
    listen(tell)?;
    let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
    let answers = Answers { mailbox: Arc::clone(&mailbox), line: Vec::new(), at: 0 };
    let typed = if io::stdin().is_terminal() { Typed::Visibly } else { Typed::Elsewhere };
    let mut questions = Questions::over(Box::new(answers), typed, terminal);
    let mut reviewing = Reviewing::new(state, &connected, arguments);
    say("Shows what waits as it comes; Ctrl-C ends it.");
    super::name_requests(status.requests_waiting);
    while let Some(change) = next(&mailbox) {
        if let Some(session) = &session {
            let progress = connected.block(client.get_change(change, View::Nothing, Shown::Proposed))?;
            // One that began meanwhile may be known by its beginning only.
            if !progress.record.origin.session.is_some_and(|of| of.starts_with(session.as_str())) {
                continue;
            }
        }
        reviewing.one(change, Some(&mut questions))?;
        lock(&mailbox).asked = 0;
    }
    drop(following);
    match lock(&mailbox).ended.take() {
        Some(End::Lost(failure)) => Err(failure),
        Some(End::Left) | None => Ok(ExitCode::SUCCESS),
    }
}

/// The next change to be shown; `None` at the end.
fn next(mailbox: &Mutex<Mailbox>) -> Option<u64> {
    let mut mailbox = lock(mailbox);
    loop {
        if mailbox.ended.is_some() {
            return None;
        }
        if let Some(change) = mailbox.waiting.pop_front() {
            mailbox.asked = change;
            return Some(change);
        }
        mailbox.hear()?;
    }
}

/// Hears what is typed, and when to stop.
fn listen(tell: Sender<Heard>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::bad_input("signals cannot be waited for").why(&error))?;
    let stop = tell.clone();
    std::thread::spawn(move || {
        for _ in &mut signals {
            let _ = stop.send(Heard::End(End::Left));
        }
    });
    std::thread::spawn(move || {
        let mut lines = io::stdin().lock();
        loop {
            let mut line = String::new();
            let heard = match lines.read_line(&mut line) {
                Ok(1..) => Heard::Line(line),
                Ok(0) | Err(_) => Heard::End(End::Left),
            };
            let ends = matches!(heard, Heard::End(_));
            if tell.send(heard).is_err() || ends {
                return;
            }
        }
    });
    Ok(())
}

/// Follows the stream for as long as it is there.
struct Following {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    fn start(connected: &Connected, after: u64, tell: Sender<Heard>) -> Result<Self, Failure> {
        let (stop, stopped) = oneshot::channel();
        let (runtime, client) = (runtime()?, connected.finding().client());
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                // Either is the end, and it is known which from whether anybody listens still.
                match select(Box::pin(follow(client, after, &tell)), stopped).await {
                    Either::Left((failure, _)) => drop(tell.send(Heard::End(End::Lost(failure)))),
                    Either::Right(_) => {}
                }
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

/// Tells of changes that come and go, until that is no longer possible.
async fn follow(client: Client, after: u64, tell: &Sender<Heard>) -> Failure {
    let mut watch = client.watch(after, Role::Surface, Patience::Always);
    loop {
        match watch.next().await {
            Ok(Watched::Heartbeat { .. }) => {}
            Ok(Watched::Event(event)) => {
                if let Some(request) = paused(&event) {
                    say(&format!(
                        "Request {request} waits: `sayso request show {request}`, `sayso request resume {request}`."
                    ));
                }
                if let Some(heard) = heard(&event) {
                    // Whoever listened is about to stop this, too.
                    let _ = tell.send(heard);
                }
            }
            Err(error) => return error.into(),
        }
    }
}

/// The request to a model that waits from here on. It is not asked about here.
fn paused(event: &proto::Event) -> Option<u64> {
    match event.kind.as_ref()? {
        Kind::Request(event) if matches!(event.step, Some(Step::Paused(_))) => Some(event.request),
        _ => None,
    }
}

fn heard(event: &proto::Event) -> Option<Heard> {
    Some(match event.kind.as_ref()? {
        Kind::Proposed(proposed) => Heard::Came(proposed.change),
        Kind::Decided(decided) => Heard::Over(decided.change),
        Kind::Ended(ended) => Heard::Over(ended.change),
        _ => return None,
    })
}
