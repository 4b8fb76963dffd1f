//! `sayso review --follow`: stays, and shows each change as it comes.
//!
//! What a person types and what happens in the stream are waited for together, so that a question ends by itself when somebody else
//! answers it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use futures::future::{Either, select};
use rustix::event::{PollFd, PollFlags, poll};
use sayso_api::client::{Client, Extent, Patience, Role, Shown, View, Watched};
use sayso_api::proto;
use sayso_api::proto::oneof::event::Kind;
use sayso_api::proto::oneof::request_event::Step;
use sayso_review::{Cause, ChangeRecord, ChangeStatus, Decider, Ruling};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Reviewing;
use crate::cli::ReviewArguments;
use crate::diff::style::Styles;
use crate::engine::{Connected, runtime};
use crate::failure::Failure;
use crate::history;
use crate::output::{Output, say};
use crate::pending::{Pending, settled};
use crate::propose::ask::{Leaving, Questions};
use crate::session;
use crate::state::State;
use crate::terminal::{self, Terminal};
use crate::typing::{Answers, Typing};
use crate::visible::visible;

/// Something that a reviewer hears.
enum Heard {
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

/// Tells the reviewer something, from another thread.
struct Teller {
    tell: Sender<Heard>,
    /// Written to, so that whoever waits for what is typed wakes up.
    wake: UnixStream,
}

impl Teller {
    fn tell(&self, heard: Heard) {
        // Whoever listened is about to stop this, too. A full buffer wakes as well.
        let _ = self.tell.send(heard);
        let _ = (&self.wake).write(&[0]);
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { tell: self.tell.clone(), wake: self.wake.try_clone()? })
    }
}

/// All that is heard and typed, and what is to be done about it.
struct Mailbox {
    typing: Typing,
    heard: Receiver<Heard>,
    woken: UnixStream,
    /// What waits to be shown.
    waiting: VecDeque<u64>,
    /// What is asked about, while it waits.
    asked: Option<u64>,
    ended: Option<End>,
}

impl Mailbox {
    /// What is heard, with whoever tells it.
    fn new() -> io::Result<(Self, Teller)> {
        let (tell, heard) = channel();
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (waiting, asked, ended) = (VecDeque::new(), None, None);
        Ok((Self { typing: Typing::stdin(), heard, woken, waiting, asked, ended }, Teller { tell, wake }))
    }

    /// Waits until something is typed or heard.
    fn wait(&mut self) -> io::Result<()> {
        let mut ready =
            [PollFd::new(&self.woken, PollFlags::IN), PollFd::from_borrowed_fd(self.typing.fd(), PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            polled => polled?,
        };
        let [heard, typed] = ready.map(|fd| !fd.revents().is_empty());
        if typed {
            self.typing.fill()?;
            if self.typing.is_over() {
                self.ended.get_or_insert(End::Left);
            }
        }
        if heard {
            while matches!(self.woken.read(&mut [0; 64]), Ok(1..)) {}
            self.hear();
        }
        Ok(())
    }

    /// Takes in all that was told so far.
    fn hear(&mut self) {
        while let Ok(heard) = self.heard.try_recv() {
            match heard {
                Heard::End(why) => {
                    self.ended.get_or_insert(why);
                }
                Heard::Came(change) if !self.waiting.contains(&change) => self.waiting.push_back(change),
                Heard::Came(_) => {}
                Heard::Over(change) => {
                    self.waiting.retain(|waits| *waits != change);
                    self.asked = self.asked.filter(|asked| *asked != change);
                }
            }
        }
    }
}

/// Answers to questions about what waits: a question ends by itself when somebody else decides.
struct Reviewer(Rc<RefCell<Mailbox>>);

impl Answers for Reviewer {
    fn discard(&mut self) {
        self.0.borrow_mut().typing.discard();
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut mailbox = self.0.borrow_mut();
        mailbox.hear();
        loop {
            if mailbox.asked.is_none() {
                return Ok(None);
            }
            if let Some(line) = mailbox.typing.read_line() {
                return Ok(Some(line));
            }
            if mailbox.ended.is_some() {
                return Ok(None);
            }
            mailbox.wait()?;
        }
    }
}

pub(super) fn run(state: &State, arguments: &ReviewArguments) -> Result<ExitCode, Failure> {
    state.tell_where();
    let connected = Connected::to(state)?;
    let client = connected.client();
    // Followed from here on, before what waits is listed: nothing falls between.
    let status = connected.block(client.status(Extent::Counts))?;
    let failed = |error: io::Error| Failure::bad_input("the terminal cannot be waited for").why(&error);
    let (mut mailbox, teller) = Mailbox::new().map_err(failed)?;
    let following = Following::start(&connected, status.last_event, teller.try_clone().map_err(failed)?)?;
    stop_at_signals(teller)?;
    let session = session::meant_or_given(&connected, arguments.session.as_deref())?;
    let pending = connected.block(client.list_pending(session.as_deref(), View::Nothing))?;
    mailbox.waiting = pending.iter().map(|progress| progress.record.change).collect();
    let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
    let echoed = mailbox.typing.is_echoed();
    let mailbox = Rc::new(RefCell::new(mailbox));
    let mut questions = Questions::over(Box::new(Reviewer(Rc::clone(&mailbox))), echoed, terminal);
    let mut reviewing = Reviewing::new(state, &connected, arguments);
    say("Shows what waits as it comes; Ctrl-C ends it.");
    super::name_requests(status.requests_waiting);
    while let Some(change) = next(&mailbox).map_err(failed)? {
        let record = connected.block(client.get_change(change, View::Nothing, Shown::Proposed))?.record;
        // One that began meanwhile may be known by its beginning only.
        let is_meant =
            |session: &String| record.origin.session.as_ref().is_some_and(|of| of.starts_with(session.as_str()));
        if !session.as_ref().is_none_or(is_meant) {
            continue;
        }
        if record.status != ChangeStatus::Pending || !is_asked_about(&record) {
            tell_of_rule(&settled(&connected, change)?, terminal)?;
            continue;
        }
        let left = reviewing.one(Pending::get(&connected, change)?, Some(&mut questions))?;
        mailbox.borrow_mut().asked = None;
        match left {
            None => {}
            Some(Leaving::Quit) => break,
            Some(Leaving::Later | Leaving::Back) => say(&format!("Change {change} waits: `sayso review {change}`.")),
        }
    }
    drop(following);
    match mailbox.borrow_mut().ended.take() {
        Some(End::Lost(failure)) => Err(failure),
        Some(End::Left) | None => Ok(ExitCode::SUCCESS),
    }
}

/// Whether somebody is to decide about a change that waits. What a rule lets through waits only until that is done, or for another change
/// of the same files; what a person takes back, or puts back, they decided themselves.
fn is_asked_about(record: &ChangeRecord) -> bool {
    let own = matches!(record.cause, Cause::Undo { .. } | Cause::Redo { .. } | Cause::Restore { .. });
    let ruled = record.ruled.as_ref().is_some_and(|ruled| ruled.ruling != Ruling::Ask);
    !own && (!ruled || !record.after.is_empty())
}

/// Names what a rule decided, in one line. Nothing is said of what a person decided elsewhere before it was shown here.
fn tell_of_rule(record: &ChangeRecord, terminal: Terminal) -> Result<(), Failure> {
    let Some(Decider::Policy { rule }) = record.verdict.as_ref().map(|verdict| &verdict.by) else { return Ok(()) };
    let styles = Styles::of(terminal);
    let mut line = String::new();
    let (change, status, summary) = (record.change, &record.status, history::summary(record));
    styles.paint(&mut line, styles.number, &format!("Change {change} is {status} by {}: {summary}\n", visible(rule)));
    let mut output = Output::stdout();
    output.write(line.as_bytes())?;
    output.finish()
}

/// The next change to be shown; `None` at the end.
fn next(mailbox: &RefCell<Mailbox>) -> io::Result<Option<u64>> {
    let mut mailbox = mailbox.borrow_mut();
    loop {
        mailbox.hear();
        if mailbox.ended.is_some() {
            return Ok(None);
        }
        if let Some(change) = mailbox.waiting.pop_front() {
            mailbox.asked = Some(change);
            return Ok(Some(change));
        }
        mailbox.wait()?;
    }
}

/// Ends the review when this process is told to stop.
fn stop_at_signals(teller: Teller) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::bad_input("signals cannot be waited for").why(&error))?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            // Ctrl-C in an editor is meant for the editor.
            if !(signal == SIGINT && terminal::is_lent()) {
                teller.tell(Heard::End(End::Left));
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
    fn start(connected: &Connected, after: u64, teller: Teller) -> Result<Self, Failure> {
        let (stop, stopped) = oneshot::channel();
        let (runtime, client) = (runtime()?, connected.finding().client());
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                // Either is the end, and it is known which from whether anybody listens still.
                match select(Box::pin(follow(client, after, &teller)), stopped).await {
                    Either::Left((failure, _)) => teller.tell(Heard::End(End::Lost(failure))),
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
async fn follow(client: Client, after: u64, teller: &Teller) -> Failure {
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
                    teller.tell(heard);
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
