//! The cases of the conformance table, from our own client.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use sayso_api::client::{
    ChangeDetails, Client, ClientError, Loopback, PreviewDetail, PreviewOf, ProposeMode, Proposed, RetryBudget, Role,
    StatusDetail, Token, Watched,
};
use sayso_api::proto::Event;
use sayso_api::proto::oneof::event::Kind;
use sayso_review::{
    Answer, ChangeId, ChangeRecord, ChangeStatus, Decider, ErrorKind, FileState, IfChanged, Origin, Target, Verdict,
};
use serde_json::json;

use super::conformance::{BEFORE, Served};
use super::served::Deciding;

/// The cases that are asked of our client; others belong to others.
pub(crate) const CASES: [&str; 15] = [
    "status",
    "propose",
    "pending",
    "show",
    "decide",
    "undo",
    "large",
    "stream",
    "resume",
    "cancel",
    "error",
    "stream error",
    "deadline",
    "no token",
    "wrong token",
];
const UNKNOWN: ChangeId = 999_999;
const SOON: Duration = Duration::from_secs(20);

/// One way to reach one engine.
struct Ground<'a> {
    served: &'a Served,
    client: Client,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Tcp(Loopback),
    Socket(Deciding),
}

impl Way {
    fn client(&self, token: Option<&str>) -> Client {
        let token = token.map(|token| Token::new(token).unwrap());
        match self {
            Self::Tcp(loopback) => Client::new(Arc::new(*loopback), token),
            Self::Socket(socket) => Client::new(Arc::new(socket.clone()), token),
        }
    }
}

/// Runs the requested cases. A panic is a failure of its case only.
pub(crate) fn run(served: &Served, transport: &str, cases: &[String]) -> Vec<(String, &'static str)> {
    let way = match transport {
        "Rust TCP" => {
            let address = served.told("url").trim_start_matches("http://").parse().unwrap();
            Way::Tcp(Loopback { address })
        }
        _ => Way::Socket(Deciding(served.told("socket").into())),
    };
    // The token reads and proposes; these cases decide as well.
    let login = served.told("login");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut results = Vec::new();
    for case in cases {
        let result = if CASES.contains(&case.as_str()) {
            let ground = Ground { served, client: way.client(Some(login)), way: way.clone() };
            let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(ground.run(case))));
            ended.unwrap_or("FAIL")
        } else {
            "–"
        };
        results.push((case.clone(), result));
    }
    results
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>, code: &str) -> sayso_api::error::RemoteError {
    match result {
        Err(ClientError::Remote(error)) => {
            assert_eq!(error.code.as_str(), code, "{error}");
            error
        }
        other => panic!("{other:?}"),
    }
}

/// An unknown change is an error that says what, why and what next.
fn explains<T: std::fmt::Debug>(result: Result<T, ClientError>) {
    let error = refusal(result, "invalid_argument");
    assert_eq!(error.kind, ErrorKind::InvalidArgs);
    assert!(error.message.contains("999999"), "{error}");
    assert!(error.hint.unwrap().contains("sayso log"));
}

impl Ground<'_> {
    async fn run(&self, case: &str) -> &'static str {
        match case {
            "status" => self.status().await,
            "propose" => self.proposes().await,
            "pending" => self.pending().await,
            "show" => self.show().await,
            "decide" => self.decides().await,
            "undo" => self.undoes().await,
            "large" => self.large().await,
            "stream" => Box::pin(self.stream()).await,
            "resume" => self.resume().await,
            "cancel" => self.cancel().await,
            "error" => explains(self.client.get_change(UNKNOWN, PreviewDetail::Omitted, PreviewOf::Proposed).await),
            "stream error" => explains(self.client.await_outcome(UNKNOWN, PreviewDetail::Omitted).await),
            "deadline" => self.deadline().await,
            "no token" => self.no_token().await,
            "wrong token" => return self.wrong_token().await,
            other => panic!("{other}"),
        }
        "ok"
    }

    fn read(&self, path: &str) -> String {
        self.served.scene.read(path)
    }

    /// Proposes a change that waits.
    async fn propose(&self, path: &str, content: &str) -> ChangeDetails {
        let text = json!({"changes": [{"path": path, "operation": "write", "new_content": content}]}).to_string();
        let origin = Origin { session: Some("s–1".to_owned()), ..Origin::default() };
        let proposed = Proposed::Text(text.into_bytes());
        let progress = self.client.propose(proposed, origin, ProposeMode::Ask, PreviewDetail::Contents).await.unwrap();
        assert_eq!(progress.record.status, ChangeStatus::Pending);
        progress
    }

    async fn answer(&self, record: &ChangeRecord, answer: Answer) -> Result<ChangeRecord, ClientError> {
        let verdict =
            Verdict { preview: record.preview, answer, comments: Vec::new(), message: None, by: Decider::PERSON };
        Ok(self.client.decide(record.change, verdict, None, PreviewDetail::Omitted).await?.record)
    }

    async fn approve(&self, record: &ChangeRecord) -> ChangeRecord {
        let record = self.answer(record, Answer::Approve).await.unwrap();
        assert_eq!(record.status, ChangeStatus::Applied);
        record
    }

    async fn deny(&self, record: &ChangeRecord) {
        self.answer(record, Answer::Deny { reason: None }).await.unwrap();
    }

    async fn undo(&self, record: &ChangeRecord) {
        let target = Target::Change { change: record.change };
        self.client.undo(target, IfChanged::Refuse, None).await.unwrap();
    }

    async fn change(&self, record: &ChangeRecord) -> ChangeDetails {
        self.client.get_change(record.change, PreviewDetail::Contents, PreviewOf::Proposed).await.unwrap()
    }

    async fn status(&self) {
        let status = self.client.status(StatusDetail::Full { max_pending: 10 }).await.unwrap();
        assert_eq!(status.workspace, self.served.told("workspace"));
        assert_eq!(status.process, self.served.told["process"]);
    }

    async fn proposes(&self) {
        let content = BEFORE.replace("frog", "grüne 🐸");
        let progress = self.propose("haiku.txt", &content).await;
        let preview = progress.preview.unwrap();
        assert_eq!(preview.files()[0].path.to_string(), "haiku.txt");
        assert_eq!(preview.hash(), progress.record.preview);
        assert_eq!(self.read("haiku.txt"), BEFORE);
        self.deny(&progress.record).await;
    }

    async fn pending(&self) {
        let record = self.propose("haiku.txt", "pending\n").await.record;
        for (session, expected) in
            [(None, vec![record.change]), (Some("s–1"), vec![record.change]), (Some("x"), vec![])]
        {
            let pending = self.client.list_pending(session, PreviewDetail::Omitted).await.unwrap();
            assert_eq!(pending.iter().map(|progress| progress.record.change).collect::<Vec<_>>(), expected);
        }
        self.deny(&record).await;
    }

    async fn show(&self) {
        let proposed = self.propose("haiku.txt", "shown\n").await;
        assert_eq!(self.change(&proposed.record).await.preview, proposed.preview);
        self.deny(&proposed.record).await;
    }

    async fn decides(&self) {
        let record = self.propose("haiku.txt", "decided\n").await.record;
        let applied = self.approve(&record).await;
        assert_eq!(self.read("haiku.txt"), "decided\n");
        let again = refusal(self.answer(&record, Answer::Deny { reason: None }).await, "failed_precondition");
        assert_eq!(again.kind, ErrorKind::Conflict);
        self.undo(&applied).await;
    }

    async fn undoes(&self) {
        let record = self.propose("haiku.txt", "to be undone\n").await.record;
        let applied = self.approve(&record).await;
        self.undo(&applied).await;
        assert_eq!(self.read("haiku.txt"), BEFORE);
        assert!(matches!(self.change(&applied).await.record.status, ChangeStatus::Undone { .. }));
    }

    async fn large(&self) {
        let content = "ein großer Text 🐸\n".repeat(100_000);
        let record = self.propose("large.txt", &content).await.record;
        let applied = self.approve(&record).await;
        let preview = self.change(&applied).await.preview.unwrap();
        let FileState::File { content: after, .. } = &preview.files()[0].after else { panic!("it is a file") };
        assert!(after.bytes() == content.as_bytes());
        assert!(self.read("large.txt") == content);
        self.undo(&applied).await;
    }

    /// Follows the stream until there are so many events; the first sign is a heartbeat.
    async fn watch(&self, after: u64, count: usize, begun: impl Future<Output = ()>) -> Vec<Event> {
        let mut watch = self.client.watch(after, Role::Observer, RetryBudget::Limited(SOON));
        assert!(matches!(watch.next().await.unwrap(), Watched::Heartbeat { .. }));
        begun.await;
        let mut events = Vec::new();
        while events.len() < count {
            if let Watched::Event(event) = watch.next().await.unwrap() {
                assert_eq!(event.number, after + events.len() as u64 + 1);
                events.push(Event::from(&*event));
            }
        }
        events
    }

    async fn last_event(&self) -> u64 {
        self.client.status(StatusDetail::Counts).await.unwrap().last_event
    }

    async fn stream(&self) {
        let happens = Box::pin(async {
            let record = self.propose("haiku.txt", "streamed\n").await.record;
            let applied = self.approve(&record).await;
            self.undo(&applied).await;
        });
        let events = self.watch(self.last_event().await, 4, happens).await;
        let kinds = events.iter().map(|event| match event.kind {
            Some(Kind::Proposed(_)) => "proposed",
            Some(Kind::Decided(_)) => "decided",
            Some(Kind::Applying(_)) => "applying",
            Some(Kind::Ended(_)) => "ended",
            _ => "something else",
        });
        assert_eq!(kinds.collect::<Vec<_>>(), ["proposed", "decided", "applying", "ended"]);
    }

    async fn resume(&self) {
        let last = usize::try_from(self.last_event().await).unwrap();
        let whole = self.watch(0, last, async {}).await;
        let mut parts = self.watch(0, 7, async {}).await;
        parts.extend(self.watch(7, last - 7, async {}).await);
        assert_eq!(parts, whole);
    }

    async fn surfaces(&self) -> u32 {
        self.client.status(StatusDetail::Counts).await.unwrap().surfaces
    }

    async fn cancel(&self) {
        let before = self.surfaces().await;
        let mut watch = self.client.watch(0, Role::Surface, RetryBudget::Limited(SOON));
        watch.next().await.unwrap();
        assert_eq!(self.surfaces().await, before + 1);
        drop(watch);
        let gone = async {
            while self.surfaces().await > before {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, gone).await.unwrap();
    }

    async fn deadline(&self) {
        let record = self.propose("haiku.txt", "nobody decides\n").await.record;
        let waiting = self.client.await_outcome(record.change, PreviewDetail::Omitted);
        assert!(tokio::time::timeout(Duration::from_millis(300), waiting).await.is_err());
        assert_eq!(self.change(&record).await.record.status, ChangeStatus::Pending);
        self.deny(&record).await;
    }

    async fn no_token(&self) {
        let status = self.way.client(None).status(StatusDetail::Counts).await;
        match self.way {
            Way::Tcp(_) => drop(refusal(status, "unauthenticated")),
            // The system vouches for who calls.
            Way::Socket(_) => drop(status.unwrap()),
        }
    }

    async fn wrong_token(&self) -> &'static str {
        if matches!(self.way, Way::Socket(_)) {
            return "–";
        }
        let client = self.way.client(Some(&format!("{}x", self.served.told("token"))));
        refusal(client.status(StatusDetail::Counts).await, "unauthenticated");
        "ok"
    }
}
