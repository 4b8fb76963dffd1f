//! Persisted names of journal events. `journal-format-3.jsonl` has one event body per line, as format 3 writes it.
//!
//! A renamed field, tag or variant changes a line and fails a test here. If the change is intended, raise the format number in
//! `crates/journal/src/schema.rs`, rename the fixture, and write it with `UPDATE_FIXTURES=1`.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::redact::Redaction;
use sayso_review::{
    AgentEntry, AgentEntryKind, Answer, ApplyRecord, BodyRecord, Bytes, CardLine, CardLineKind, Cause, CommandPreview,
    Comment, CommentSide, ContentHash, Decider, EditKind, Event, EventBody, FileAnswer, FileMode, FileRecord,
    Fingerprint, FreeReason, Handover, HunkId, InlineCard, ModeSet, Note, Obstacle, Operation, Origin, Outcome,
    OutsideFile, OutsidePath, OverrideReport, OverridesSet, PauseReason, Performer, Problem, RecordedStep,
    RefreshReason, RequestAnswer, RequestEnd, RequestEvent, RequestMode, RequestReceived, RequestStep, Resumer, Rule,
    Ruling, RulingRecord, SkippedEdit, Snapshot, SubagentMark, Subject, Surface, SurfaceKind, Tier, TokenUsage,
    ToolPreview, TurnEditReport, Uncaptured, UpstreamRetry, Verdict, ViewEvent, WsPath,
};
use serde_json::json;

use crate::path;

const FIXTURE: &str = "tests/journal-format-3.jsonl";

fn fixture() -> String {
    std::fs::read_to_string(FIXTURE).unwrap()
}

#[test]
fn events_serialize_as_in_fixture() {
    let written: String = examples().iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(FIXTURE, &written).unwrap();
    }
    for (line, (written, expected)) in written.lines().zip(fixture().lines()).enumerate() {
        assert_eq!(written, expected, "line {}", line + 1);
    }
    assert_eq!(written.lines().count(), fixture().lines().count());
}

#[test]
fn fixture_events_survive_rewriting() {
    for line in fixture().lines() {
        let EventBody::Known(event) = EventBody::decode(line.as_bytes()) else { panic!("unknown event: {line}") };
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
}

#[test]
fn fixture_covers_every_event_kind() {
    let kinds: BTreeSet<&str> = examples().iter().map(kind).collect();
    let missing: Vec<_> = KINDS.iter().filter(|kind| !kinds.contains(*kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(kinds.len(), KINDS.len());
}

const KINDS: [&str; 37] = [
    "proposed",
    "refreshed",
    "decided",
    "applying",
    "permitted",
    "observed",
    "reviewed",
    "ended",
    "undone",
    "redone",
    "recovered",
    "session started",
    "session resumed",
    "session ended",
    "turn started",
    "turn ended",
    "rule added",
    "message queued",
    "message delivered",
    "delivered",
    "snapshot captured",
    "snapshot correlated",
    "snapshots freed",
    "request received",
    "request paused",
    "request edited",
    "request resumed",
    "request sent",
    "request retried",
    "request answered",
    "request ended",
    "request mode",
    "overrides",
    "request viewed",
    "hunks seen",
    "read through",
    "agent",
];

/// Names the kind of an event. A new variant does not compile here: add it, its name to [`KINDS`], and an example.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::Proposed { .. } => "proposed",
        Event::Refreshed { .. } => "refreshed",
        Event::Decided { .. } => "decided",
        Event::Applying { .. } => "applying",
        Event::Permitted { .. } => "permitted",
        Event::Observed { .. } => "observed",
        Event::Reviewed { .. } => "reviewed",
        Event::Ended { .. } => "ended",
        Event::Undone { .. } => "undone",
        Event::Redone { .. } => "redone",
        Event::Recovered { .. } => "recovered",
        Event::SessionStarted { .. } => "session started",
        Event::SessionResumed { .. } => "session resumed",
        Event::SessionEnded { .. } => "session ended",
        Event::TurnStarted { .. } => "turn started",
        Event::TurnEnded { .. } => "turn ended",
        Event::RuleAdded { .. } => "rule added",
        Event::MessageQueued { .. } => "message queued",
        Event::MessageDelivered { .. } => "message delivered",
        Event::Delivered { .. } => "delivered",
        Event::SnapshotCaptured(_) => "snapshot captured",
        Event::SnapshotCorrelated { .. } => "snapshot correlated",
        Event::SnapshotsFreed { .. } => "snapshots freed",
        Event::Request(RequestEvent { step, .. }) => match step {
            RequestStep::Received(_) => "request received",
            RequestStep::Paused { .. } => "request paused",
            RequestStep::Edited { .. } => "request edited",
            RequestStep::Resumed { .. } => "request resumed",
            RequestStep::Sent { .. } => "request sent",
            RequestStep::UpstreamRetry(_) => "request retried",
            RequestStep::Answered(_) => "request answered",
            RequestStep::Ended { .. } => "request ended",
        },
        Event::RequestMode(_) => "request mode",
        Event::Overrides(_) => "overrides",
        Event::RequestViewed(_) => "request viewed",
        Event::HunksSeen { .. } => "hunks seen",
        Event::ReadThrough { .. } => "read through",
        Event::Agent(_) => "agent",
    }
}

fn hash() -> ContentHash {
    ContentHash::of(b"x")
}

fn session() -> String {
    "session".to_owned()
}

fn origin() -> Origin {
    let (agent, turn, call) = (Some("agent".to_owned()), Some("turn".to_owned()), Some("call".to_owned()));
    Origin { agent, session: Some(session()), turn, call }
}

fn file_print() -> Fingerprint {
    Fingerprint::File { hash: hash(), size: 1, mode: FileMode::new(0o644) }
}

fn step(name: &str, before: Fingerprint, after: Fingerprint) -> RecordedStep {
    RecordedStep { path: path(name), before, after }
}

fn apply_record() -> ApplyRecord {
    let link = Fingerprint::Link { target: "a".to_owned() };
    ApplyRecord {
        token: "token".to_owned(),
        steps: vec![step("a", Fingerprint::Absent, file_print()), step("b", link, Fingerprint::Absent)],
        directories: vec![path("d")],
        emptied: vec![path("e")],
    }
}

fn outside_path() -> OutsidePath {
    OutsidePath::parse("/etc/hosts").unwrap()
}

fn agent_entry(kind: AgentEntryKind, content: serde_json::Value, blob: Option<ContentHash>) -> Event {
    Event::Agent(AgentEntry { session: "s".to_owned(), kind, version: 1, content, blob })
}

fn examples() -> Vec<Event> {
    let mut events = change_examples();
    events.extend(verdict_examples());
    events.extend(outcome_examples());
    events.extend(session_examples());
    events.extend(request_examples());
    events
}

fn file_records() -> Vec<FileRecord> {
    let record = |operation, problem, settled| FileRecord {
        path: path("a"),
        location: path("b"),
        operation,
        before: Fingerprint::Absent,
        after: file_print(),
        added: 1,
        removed: 2,
        notes: vec![Note::Ci, Note::Symlink { leads_to: "b".to_owned() }],
        problem,
        settled,
        card: None,
    };
    let lines = [CardLineKind::Add, CardLineKind::Remove, CardLineKind::Context];
    let lines = lines.map(|kind| CardLine { kind, text: "text".to_owned() });
    let card = Some(InlineCard { lines: lines.into(), truncated: true, total_lines: 4 });
    vec![
        record(Operation::Create, Some(Problem::Exists), false),
        record(Operation::Update, Some(Problem::Blocked(Obstacle::TooLarge { limit: 1 })), true),
        FileRecord { card, ..record(Operation::Delete, None, false) },
        record(Operation::Rename { from: path("c") }, None, false),
    ]
}

fn change_examples() -> Vec<Event> {
    let command = "rm -r build && make > out.txt";
    let description = Some("Builds.".to_owned());
    let preview = Box::new(CommandPreview::of(command, &WsPath::root(), "/workspace"));
    let command = Subject::Command { command: command.to_owned(), directory: path("d"), description, preview };
    let arguments = json!({ "file_path": "a", "old_string": "x", "new_string": "y" });
    let preview = Box::new(ToolPreview::of("Edit", &arguments, None));
    let tool = Subject::Tool { name: "Edit".to_owned(), arguments, preview };
    let ruling = |ruling| {
        let (rule, reason) = ("rule".to_owned(), Some("reason".to_owned()));
        Some(RulingRecord { ruling, rule, reason, outside: vec![outside_path()] })
    };
    let proposed = |change, cause, subject, ruled, performer| Event::Proposed {
        change,
        origin: origin(),
        cause,
        files: file_records(),
        preview: hash(),
        subject,
        ruling: ruled,
        performer,
        intent: Some(hash()),
        deadline: Some(1),
        predecessors: vec![1],
    };
    let undo = Cause::Undo { changes: vec![1], paths: vec![path("a")] };
    let redo = Cause::Redo { changes: vec![1], paths: vec![path("a")] };
    let review = Cause::Review { changes: vec![1], turn: "turn".to_owned() };
    let files = file_records;
    let refreshed = |reason| Event::Refreshed { change: 1, files: files(), preview: hash(), reason };
    let uncaptured = Uncaptured { path: "a".to_owned(), reason: "reason".to_owned() };
    let outside = vec![OutsideFile { path: outside_path(), before: Some(hash()) }];
    let expected = vec![step("a", Fingerprint::Absent, file_print())];
    vec![
        proposed(1, Cause::Proposal, Subject::Files, ruling(Ruling::Allow), Performer::Gate),
        proposed(2, undo, command, ruling(Ruling::Later), Performer::Agent),
        proposed(3, redo, tool, ruling(Ruling::Ask), Performer::Agent),
        proposed(4, review, Subject::Files, ruling(Ruling::Deny), Performer::Gate),
        proposed(5, Cause::Restore { snapshot: 1 }, Subject::Files, None, Performer::Gate),
        proposed(6, Cause::Rebase { original: 1 }, Subject::Files, None, Performer::Gate),
        refreshed(RefreshReason::FilesChanged),
        refreshed(RefreshReason::PredecessorApplied { predecessor: 1 }),
        refreshed(RefreshReason::PredecessorDropped { predecessor: 1 }),
        Event::Applying { change: 1, record: apply_record(), note: None },
        Event::Applying { change: 1, record: apply_record(), note: Some("note".to_owned()) },
        Event::Permitted { change: 1, expected, outside, editor: None },
        Event::Permitted { change: 1, expected: Vec::new(), outside: Vec::new(), editor: Some("editor".to_owned()) },
        Event::Observed {
            change: 1,
            record: apply_record(),
            differing_files: vec![path("a")],
            uncaptured: vec![uncaptured],
        },
        Event::Reviewed { change: 1, by: 2 },
        Event::Undone { change: 1, by: 2, paths: vec![path("a")] },
        Event::Redone { change: 1, by: 2, paths: vec![path("a")] },
        Event::Recovered { change: 1, finished: true, skipped_files: vec![path("a")], rescued_files: vec![path("b")] },
    ]
}

fn verdict_examples() -> Vec<Event> {
    let reason = || Some("reason".to_owned());
    let hunk = |hunk, part| HunkId { hunk, part };
    let file_answers = [
        FileAnswer::Approve,
        FileAnswer::Hunks { hunks: BTreeSet::from([hunk(1, None), hunk(2, Some(3))]) },
        FileAnswer::EditedText { text: "text".to_owned() },
        FileAnswer::EditedBytes { bytes: Bytes::new(b"\xff".to_vec()) },
        FileAnswer::Deny { reason: reason() },
    ];
    let files: BTreeMap<WsPath, FileAnswer> =
        ["a", "b", "c", "d", "e"].into_iter().map(path).zip(file_answers).collect();
    let answers = [
        Answer::Approve,
        Answer::Files { files, reason: reason() },
        Answer::Command { command: "make".to_owned() },
        Answer::Arguments { arguments: json!({ "a": 1 }) },
        Answer::Deny { reason: reason() },
    ];
    let comment = |side| Comment { path: path("a"), line: 1, side, text: "text".to_owned() };
    let decided = |(answer, by)| {
        let comments = vec![comment(CommentSide::Current), comment(CommentSide::Proposed)];
        let verdict = Verdict { preview: hash(), answer, comments, message: None, by };
        Event::Decided { change: 1, verdict, agent_message: "message".to_owned() }
    };
    let deciders = [Decider::PERSON, Decider::Policy { rule: "rule".to_owned() }];
    answers.into_iter().zip(deciders.into_iter().cycle()).map(decided).collect()
}

fn outcome_examples() -> Vec<Event> {
    let outcomes = [
        Outcome::Applied,
        Outcome::Sent,
        Outcome::Ran { exit_code: Some(1), note: Some("note".to_owned()) },
        Outcome::Denied,
        Outcome::Stale { files: vec![path("a")] },
        Outcome::Cancelled,
        Outcome::Failed { reason: "reason".to_owned() },
    ];
    let ended = |outcome| Event::Ended { change: 1, outcome, agent_message: Some("message".to_owned()) };
    outcomes.map(ended).into()
}

fn session_examples() -> Vec<Event> {
    let text = |text: &str| Some(text.to_owned());
    let mut rule = Rule::new(Ruling::Allow);
    (rule.name, rule.reason, rule.agent) = (text("name"), text("reason"), text("agent"));
    (rule.write, rule.run) = (vec!["**".to_owned()], vec!["make".to_owned()]);
    let captured = |tier| {
        Event::SnapshotCaptured(Snapshot {
            snapshot: 1,
            path: path("a"),
            location: path("b"),
            state: file_print(),
            tool: "Edit".to_owned(),
            tier,
            call: text("call"),
            session: Some(session()),
        })
    };
    let freed = |reason| Event::SnapshotsFreed { snapshots: vec![1], reason };
    vec![
        Event::SessionStarted {
            session: session(),
            agent: text("agent"),
            location: text("/workspace"),
            parent: text("parent"),
        },
        Event::SessionResumed { session: session() },
        Event::SessionEnded { session: session() },
        Event::TurnStarted { session: session(), turn: "turn".to_owned() },
        Event::TurnEnded { session: session(), turn: "turn".to_owned() },
        Event::RuleAdded { session: session(), rule },
        Event::MessageQueued { session: session(), change: Some(1), call: text("call"), text: "text".to_owned() },
        Event::MessageDelivered { session: session(), change: Some(1), message: 2 },
        Event::Delivered { session: session(), through: 2 },
        captured(Tier::Answer),
        captured(Tier::Hook),
        captured(Tier::Start),
        Event::SnapshotCorrelated { snapshot: 1, call: "call".to_owned(), session: Some(session()) },
        freed(FreeReason::Replaced),
        freed(FreeReason::CallEnded),
        freed(FreeReason::SessionEnded),
        freed(FreeReason::Restarted),
    ]
}

fn body() -> BodyRecord {
    let redaction = Redaction { start: 1, size: 2, name: "github_token".to_owned() };
    BodyRecord { size: 1, chunks: vec![hash()], truncated: true, redacted: 1, redactions: vec![redaction] }
}

fn override_report() -> OverrideReport {
    let applied = || vec!["messages.0".to_owned()];
    let skipped = || vec![SkippedEdit { path: "system".to_owned(), reason: Some("reason".to_owned()) }];
    let turn = Some(TurnEditReport { from: 1, applied: applied(), dropped: skipped() });
    OverrideReport { applied: applied(), skipped: skipped(), turn }
}

fn request_examples() -> Vec<Event> {
    let mut events: Vec<Event> =
        request_steps().into_iter().map(|step| Event::Request(RequestEvent { request: 1, step })).collect();
    for mode in [RequestMode::Off, RequestMode::InterceptAlways, RequestMode::AutoOverride] {
        let (session, mode) = (Some(session()), Some(mode));
        events.push(Event::RequestMode(ModeSet { session, mode, pause_next: true, capture_next: true }));
    }
    let scope = "workspace".to_owned();
    events.push(Event::Overrides(OverridesSet { scope, session: Some(session()), count: 1, from: Some(1) }));
    let views =
        [ViewEvent::Diff { request: 1, edits: 2 }, ViewEvent::Monitor { through: 1 }, ViewEvent::Trimmed { runs: 1 }];
    events.extend(views.map(Event::RequestViewed));
    events.extend(seen_examples());
    events
}

fn seen_examples() -> Vec<Event> {
    let by = Decider::Person { surface: Some(Surface::new(SurfaceKind::CommandLine, "name")) };
    let verdict = Verdict { preview: hash(), answer: Answer::Approve, comments: Vec::new(), message: None, by };
    vec![
        Event::Decided { change: 1, verdict, agent_message: "message".to_owned() },
        Event::HunksSeen { change: 1, path: path("a"), file: hash(), hunks: vec![1, 2] },
        Event::ReadThrough { through: 1 },
        agent_entry(AgentEntryKind::Log, json!({"text": "a"}), None),
        agent_entry(AgentEntryKind::Settings, json!(null), Some(hash())),
        agent_entry(AgentEntryKind::Todos, json!([]), None),
        agent_entry(AgentEntryKind::Cleared, json!(null), None),
    ]
}

fn request_steps() -> Vec<RequestStep> {
    let text = |text: &str| Some(text.to_owned());
    let received = RequestReceived {
        origin: origin(),
        upstream: "anthropic".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        api: text("anthropic"),
        model: text("model"),
        subagent: Some(SubagentMark { id: text("id"), parent: text("parent") }),
        body: body(),
        encoding: text("gzip"),
        headers: vec![("name".to_owned(), "value".to_owned())],
        replay_of: Some(1),
        server: text("https://example.com"),
    };
    let handover = Handover {
        identity: "identity".to_owned(),
        save_on_resume: true,
        patch: Some(body()),
        with_overrides: Some(body()),
        overrides: override_report(),
    };
    let usage =
        TokenUsage { input: Some(1), output: Some(2), cache_read: Some(3), cache_written: Some(4), reasoning: Some(5) };
    let answer = RequestAnswer {
        status: 200,
        body: body(),
        content_type: text("application/json"),
        usage,
        finish: text("end_turn"),
        problem: text("problem"),
        error: text("error"),
        first_byte_ms: 1,
        total_ms: 2,
        retries: 3,
    };
    let retry = UpstreamRetry { attempts: 1, status: Some(429), message: "message".to_owned(), next_attempt_ms: 2 };
    let paused = |pause| RequestStep::Paused {
        pause,
        deadline: Some(1),
        inherits: Some(1),
        handover: Some(Box::new(handover.clone())),
    };
    let mut steps = vec![RequestStep::Received(Box::new(received))];
    steps.extend([PauseReason::EveryTurn, PauseReason::NextTurn, PauseReason::Capture].map(paused));
    steps.extend([PauseReason::Rule { rule: "rule".to_owned() }, PauseReason::Retry].map(paused));
    let edits = [
        EditKind::Set,
        EditKind::Delete,
        EditKind::Restore,
        EditKind::Append,
        EditKind::Shrink,
        EditKind::Repair,
        EditKind::Patch,
        EditKind::Pin,
        EditKind::Undo,
        EditKind::Redo,
        EditKind::Reset,
    ];
    steps.extend(edits.map(|edit| RequestStep::Edited {
        version: 1,
        path: "messages.0".to_owned(),
        edit,
        patch: Some(body()),
    }));
    steps.extend([Resumer::Person, Resumer::Retry].map(|by| RequestStep::Resumed { by }));
    steps.push(RequestStep::Sent { body: Some(body()), patch: Some(body()), overrides: override_report() });
    steps.push(RequestStep::UpstreamRetry(retry));
    steps.push(RequestStep::Answered(Box::new(answer)));
    let message = || "message".to_owned();
    let ends = [
        RequestEnd::Canceled,
        RequestEnd::CanceledBefore,
        RequestEnd::ModeDisabled,
        RequestEnd::SessionDisposed,
        RequestEnd::Superseded { by: 1 },
        RequestEnd::ClientGone,
        RequestEnd::EngineStopped,
        RequestEnd::Denied { message: message() },
        RequestEnd::Failed { message: message() },
    ];
    steps.extend(ends.map(|end| RequestStep::Ended { end, edited: Some(body()) }));
    steps
}
