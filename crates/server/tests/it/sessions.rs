//! Resolution of abbreviated session ids.

use sayso_api::client::NewSession;
use sayso_api::error::ErrorData;
use sayso_review::ErrorKind;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_resolves_by_start_end_or_whole_id() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.proposal_client();
    for session in ["alpha-1", "alpha-2", "beta-2", "beta"] {
        client.start_session(NewSession { session: session.to_owned(), ..NewSession::default() }).await.unwrap();
    }
    for (given, session) in [("alpha-1", "alpha-1"), ("-1", "alpha-1"), ("beta-", "beta-2"), ("beta", "beta")] {
        assert_eq!(client.resolve_session(given).await.unwrap(), session, "{given}");
    }
    let several = client.resolve_session("alpha").await.unwrap_err();
    assert_eq!(several.kind(), ErrorKind::InvalidArgs, "{several}");
    let matches = vec!["alpha-1".to_owned(), "alpha-2".to_owned()];
    let data = ErrorData::AmbiguousSession { given: "alpha".to_owned(), matches, count: 2 };
    assert_eq!(several.data(), Some(&data));
    let none = client.resolve_session("gamma").await.unwrap_err();
    assert!(matches!(none.data(), Some(ErrorData::AmbiguousSession { count: 0, .. })), "{none:?}");
    let empty = client.resolve_session("").await.unwrap_err();
    assert!(matches!(empty.data(), Some(ErrorData::InvalidField { field, .. }) if field == "given"), "{empty:?}");
}
