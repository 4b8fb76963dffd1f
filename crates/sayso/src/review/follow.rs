//! `sayso review --follow`: shows each change when it arrives.
//!
//! A question has two ends: a typed line, or another reviewer's decision. One poll waits for both, so that a question ends by itself
//! when others answer it.

use std::cell::RefCell;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use futures::future::{Either, select};
use rustix::event::{PollFd, PollFlags, poll};
use sayso_api::client::{Client, PreviewDetail, PreviewOf, RetryBudget, Role, StatusDetail, Watched};
use sayso_present::change::policy_decision_text;
use sayso_present::file_review::Leave;
use sayso_present::inbox::{Inbox, InboxEvent, InboxTracker, held_requests, needs_person};
use sayso_review::{ChangeId, ChangeRecord, ChangeStatus, Decider, Event, EventBody};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use super::Reviewer;
use crate::cli::ReviewArguments;
use crate::engine::{EngineConnection, runtime};
use crate::error::CliError;
use crate::output::{Output, say};
use crate::pending::{Pending, settled};
use crate::propose::prompt::Prompter;
use crate::session;
use crate::signals::{TERMINATION_SIGNALS, handler_error};
use crate::terminal::{self, Terminal};
use crate::typing::{AnswerSource, Typing};
use crate::workspace_location::WorkspaceLocation;

/// A message from another thread.
enum FollowMessage {
    Inbox(InboxEvent),
    End(FollowEnd),
}

/// The reason why following ends.
enum FollowEnd {
    /// Input ended, or a signal arrived.
    Closed,
    /// The stream failed.
    Failed(CliError),
}

/// Sends messages to the reviewer, and wakes its poll.
struct MessageSender {
    messages: Sender<FollowMessage>,
    wake: UnixStream,
}

impl MessageSender {
    fn send(&self, message: FollowMessage) {
        // Without a receiver, this thread is about to end as well. A full wake buffer wakes, too.
        let _ = self.messages.send(message);
        let _ = (&self.wake).write(&[0]);
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { messages: self.messages.clone(), wake: self.wake.try_clone()? })
    }
}

/// Typed lines, messages and the inbox that they fill.
struct Mailbox {
    typing: Typing,
    messages: Receiver<FollowMessage>,
    /// Readable after a message.
    woken: UnixStream,
    inbox: Inbox,
    end: Option<FollowEnd>,
}

impl Mailbox {
    fn new() -> io::Result<(Self, MessageSender)> {
        let (sender, messages) = channel();
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let mailbox = Self { typing: Typing::stdin(), messages, woken, inbox: Inbox::default(), end: None };
        Ok((mailbox, MessageSender { messages: sender, wake }))
    }

    /// Waits for typed input or a message.
    fn wait(&mut self) -> io::Result<()> {
        let mut ready =
            [PollFd::new(&self.woken, PollFlags::IN), PollFd::from_borrowed_fd(self.typing.fd(), PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            polled => polled?,
        };
        let [has_message, has_input] = ready.map(|fd| !fd.revents().is_empty());
        if has_input {
            self.typing.fill()?;
            if self.typing.is_over() {
                self.end.get_or_insert(FollowEnd::Closed);
            }
        }
        if has_message {
            while matches!(self.woken.read(&mut [0; 64]), Ok(1..)) {}
            self.receive();
        }
        Ok(())
    }

    /// Applies all messages.
    fn receive(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                FollowMessage::Inbox(event) => self.inbox.apply(event),
                FollowMessage::End(end) => {
                    self.end.get_or_insert(end);
                }
            }
        }
    }
}

/// Typed answers. Input ends for a question whose change others have decided.
struct FollowedAnswers(Rc<RefCell<Mailbox>>);

impl AnswerSource for FollowedAnswers {
    fn discard(&mut self) {
        self.0.borrow_mut().typing.discard();
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut mailbox = self.0.borrow_mut();
        mailbox.receive();
        loop {
            if mailbox.inbox.current().is_none() {
                return Ok(None);
            }
            if let Some(line) = mailbox.typing.read_line() {
                return Ok(Some(line));
            }
            if mailbox.end.is_some() {
                return Ok(None);
            }
            mailbox.wait()?;
        }
    }
}

pub(super) fn run(location: &WorkspaceLocation, arguments: &ReviewArguments) -> Result<ExitCode, CliError> {
    location.announce();
    let engine = EngineConnection::open(location)?;
    let client = engine.client();
    let last_event = engine.block(client.status(StatusDetail::Counts))?.last_event;
    let failed = |error: io::Error| CliError::io("cannot wait for the terminal", &error);
    let (mailbox, sender) = Mailbox::new().map_err(failed)?;
    let session = session::find_or_given(&engine, arguments.session.as_deref())?;
    let list = super::list_inbox(&engine, None)?;
    // Reported before the follower reports further ones.
    say("Shows what waits as it comes; Ctrl-C ends it.");
    super::report_held_requests(held_requests(&list));
    let tracker = InboxTracker::new(session.clone(), &list);
    let follower = Follower::start(&engine, last_event, tracker, sender.try_clone().map_err(failed)?)?;
    end_at_signals(sender)?;
    let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
    let is_echoed = mailbox.typing.is_echoed();
    let mailbox = Rc::new(RefCell::new(mailbox));
    let mut prompter = Prompter::new(Box::new(FollowedAnswers(Rc::clone(&mailbox))), is_echoed, terminal);
    let mut reviewer = Reviewer::new(location, &engine, arguments);
    while let Some(change) = next_change(&mailbox).map_err(failed)? {
        let details = client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed);
        let record = engine.block(details)?.record;
        if !session.as_deref().is_none_or(|session| is_in_session(&record, session)) {
            continue;
        }
        if record.status != ChangeStatus::Pending || !needs_person(&record) {
            report_policy_decision(&settled(&engine, change)?, terminal)?;
            continue;
        }
        let leave = reviewer.review(Pending::get(&engine, change)?, Some(&mut prompter))?;
        mailbox.borrow_mut().inbox.skip();
        match leave {
            None => {}
            Some(Leave::Quit) => break,
            Some(Leave::Later | Leave::Back) => say(&format!("Change {change} waits: `sayso review {change}`.")),
        }
    }
    drop(follower);
    match mailbox.borrow_mut().end.take() {
        Some(FollowEnd::Failed(error)) => Err(error),
        Some(FollowEnd::Closed) | None => Ok(ExitCode::SUCCESS),
    }
}

/// `true` if a change belongs to a session. A session that did not exist yet may be named by the start of its id.
fn is_in_session(record: &ChangeRecord, session: &str) -> bool {
    record.origin.session.as_ref().is_some_and(|of| of.starts_with(session))
}

/// Reports a rule's decision in one line. A person's decision elsewhere is not reported.
fn report_policy_decision(record: &ChangeRecord, terminal: Terminal) -> Result<(), CliError> {
    let Some(text) = policy_decision_text(record) else { return Ok(()) };
    let mut output = Output::stdout();
    output.styled(&text, terminal)?;
    output.finish()
}

/// Waits for the next change. `None` at the end.
fn next_change(mailbox: &RefCell<Mailbox>) -> io::Result<Option<u64>> {
    let mut mailbox = mailbox.borrow_mut();
    loop {
        mailbox.receive();
        if mailbox.end.is_some() {
            return Ok(None);
        }
        if let Some(change) = mailbox.inbox.next_change() {
            return Ok(Some(change));
        }
        mailbox.wait()?;
    }
}

fn end_at_signals(sender: MessageSender) -> Result<(), CliError> {
    let mut signals = Signals::new(TERMINATION_SIGNALS).map_err(|error| handler_error(&error))?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            // Ctrl-C in an editor is for the editor.
            if !(signal == SIGINT && terminal::is_lent()) {
                sender.send(FollowMessage::End(FollowEnd::Closed));
            }
        }
    });
    Ok(())
}

/// A thread that follows the inbox and the event stream.
struct Follower {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    fn start(
        engine: &EngineConnection,
        after: u64,
        tracker: InboxTracker,
        sender: MessageSender,
    ) -> Result<Self, CliError> {
        let (stop, stopped) = oneshot::channel();
        let (runtime, client) = (runtime()?, engine.locator().client());
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                match select(Box::pin(follow(client, after, tracker, &sender)), stopped).await {
                    Either::Left((error, _)) => sender.send(FollowMessage::End(FollowEnd::Failed(error))),
                    Either::Right(_) => {}
                }
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends what is new in the inbox, and what rules decide, until a stream fails.
async fn follow(client: Client, after: u64, mut tracker: InboxTracker, sender: &MessageSender) -> CliError {
    let mut inbox = client.watch_inbox(None, RetryBudget::Unlimited);
    // Attaches this surface as well.
    let mut events = client.watch(after, Role::Surface, RetryBudget::Unlimited);
    loop {
        tokio::select! {
            update = inbox.next() => match update {
                Ok(update) => tracker.apply(&update, inbox.list()).into_iter().for_each(|event| report(event, sender)),
                Err(error) => return error.into(),
            },
            event = events.next() => match event {
                Ok(watched) => {
                    if let Some(change) = ruled_change(&watched).filter(|change| !tracker.has_listed(*change)) {
                        sender.send(FollowMessage::Inbox(InboxEvent::Arrived(change)));
                    }
                }
                Err(error) => return error.into(),
            },
        }
    }
}

fn report(event: InboxEvent, sender: &MessageSender) {
    match event {
        InboxEvent::RequestHeld(request) => {
            say(&format!("Request {request} waits: `sayso request show {request}`, `sayso request resume {request}`."));
        }
        event => sender.send(FollowMessage::Inbox(event)),
    }
}

/// Returns the change that a rule has decided.
fn ruled_change(watched: &Watched) -> Option<ChangeId> {
    let Watched::Event(recorded) = watched else { return None };
    match &recorded.body {
        EventBody::Known(Event::Decided { change, verdict, .. }) if matches!(verdict.by, Decider::Policy { .. }) => {
            Some(*change)
        }
        _ => None,
    }
}
