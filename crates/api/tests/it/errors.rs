//! Every kind of error has one code, and whoever calls gets the kind, the message and the hint back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use connectrpc::{ConnectError, ErrorCode, ErrorDetail};
use proptest::prelude::*;
use sayso_api::convert::BadMessage;
use sayso_api::error::{DETAIL, RemoteError, to_connect};
use sayso_api::proto;
use sayso_review::ErrorKind;

use crate::arbitrary;

const KINDS: [(ErrorKind, ErrorCode); 8] = [
    (ErrorKind::InvalidArgs, ErrorCode::InvalidArgument),
    (ErrorKind::ToolDenied, ErrorCode::PermissionDenied),
    (ErrorKind::FsDenied, ErrorCode::PermissionDenied),
    (ErrorKind::ToolFailed, ErrorCode::Unknown),
    (ErrorKind::Stale, ErrorCode::Aborted),
    (ErrorKind::Conflict, ErrorCode::FailedPrecondition),
    (ErrorKind::Unavailable, ErrorCode::Unavailable),
    (ErrorKind::Internal, ErrorCode::Internal),
];

/// The table in `error.proto`, which is what people write clients from.
fn documented() -> Vec<(String, String)> {
    include_str!("../../../../proto/sayso/v1/error.proto")
        .lines()
        .filter_map(|line| line.strip_prefix("//   "))
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| words.len() == 2)
        .map(|words| (words[0].to_lowercase(), words[1].clone()))
        .collect()
}

#[test]
fn every_kind_has_the_code_that_the_protocol_documents() {
    let table = documented();
    assert_eq!(table.len(), KINDS.len(), "{table:?}");
    for (kind, code) in KINDS {
        assert_eq!(to_connect(kind, String::new(), None).code, code);
        assert!(table.contains(&(kind.name().to_owned(), code.as_str().to_owned())), "{kind}");
        assert_eq!(ErrorKind::try_from(proto::ErrorKind::from(kind)), Ok(kind));
    }
    assert!(ErrorKind::try_from(proto::ErrorKind::Unspecified).is_err());
}

proptest! {
    #[test]
    fn whoever_calls_gets_the_error_back(message in arbitrary::text(), hint in arbitrary::maybe()) {
        for (kind, code) in KINDS {
            let expected = RemoteError { kind, code, message: message.clone(), hint: hint.clone() };
            let error = to_connect(kind, message.clone(), hint.clone());
            prop_assert_eq!(RemoteError::from(error.clone()), expected.clone());
            // As Connect sends it.
            let json: ConnectError = serde_json::from_slice(&error.to_json()).unwrap();
            prop_assert_eq!(RemoteError::from(json), expected.clone());
            // As gRPC names it.
            let mut named = error.clone();
            named.details[0].type_url = format!("type.googleapis.com/{DETAIL}");
            prop_assert_eq!(RemoteError::from(named), expected.clone());
            // As clients that pad write it.
            let mut padded = error;
            let value = padded.details[0].value.take().unwrap();
            prop_assert!(!value.contains('='));
            padded.details[0].value = Some(format!("{value}{}", "=".repeat((4 - value.len() % 4) % 4)));
            prop_assert_eq!(RemoteError::from(padded), expected);
        }
    }

    #[test]
    fn a_detail_that_is_not_understood_leaves_the_code(value in proptest::option::of("[A-Za-z0-9+/=]{0,20}")) {
        let detail = ErrorDetail { type_url: DETAIL.to_owned(), value, debug: None };
        let error = ConnectError::new(ErrorCode::NotFound, "no such thing").with_detail(detail);
        // Whatever it says, it does not panic; where it says nothing, the code counts.
        let _ = RemoteError::from(error);
    }
}

#[test]
fn an_error_with_a_code_alone_is_of_the_kind_that_its_code_says() {
    let table = [
        (ErrorCode::Unauthenticated, ErrorKind::ToolDenied),
        (ErrorCode::PermissionDenied, ErrorKind::ToolDenied),
        (ErrorCode::Unavailable, ErrorKind::Unavailable),
        (ErrorCode::Canceled, ErrorKind::Unavailable),
        (ErrorCode::DeadlineExceeded, ErrorKind::Unavailable),
        (ErrorCode::ResourceExhausted, ErrorKind::Unavailable),
        (ErrorCode::NotFound, ErrorKind::InvalidArgs),
        (ErrorCode::Unimplemented, ErrorKind::InvalidArgs),
        (ErrorCode::InvalidArgument, ErrorKind::InvalidArgs),
        (ErrorCode::Unknown, ErrorKind::Internal),
        (ErrorCode::AlreadyExists, ErrorKind::Internal),
        (ErrorCode::FailedPrecondition, ErrorKind::Internal),
        (ErrorCode::Aborted, ErrorKind::Internal),
        (ErrorCode::OutOfRange, ErrorKind::Internal),
        (ErrorCode::Internal, ErrorKind::Internal),
        (ErrorCode::DataLoss, ErrorKind::Internal),
    ];
    for (code, kind) in table {
        let error = RemoteError::from(ConnectError::new(code, "why"));
        assert_eq!(error, RemoteError { kind, code, message: "why".to_owned(), hint: None });
    }
}

#[test]
fn an_error_always_says_something() {
    let mut error = ConnectError::new(ErrorCode::Unavailable, "");
    assert!(RemoteError::from(error.clone()).message.contains("unavailable"));
    error.message = None;
    assert!(RemoteError::from(error).to_string().contains("unavailable"));
}

#[test]
fn a_detail_of_somebody_else_or_of_a_newer_version_leaves_the_code() {
    let newer = proto::ErrorDetail { kind: buffa::EnumValue::from(99), ..Default::default() };
    let others = [
        ErrorDetail::from_message("google.rpc.RetryInfo", &proto::ErrorDetail::default()),
        ErrorDetail::from_message(DETAIL, &newer),
        ErrorDetail { type_url: DETAIL.to_owned(), value: Some(STANDARD.encode([0xff])), debug: None },
    ];
    for detail in others {
        let error = ConnectError::new(ErrorCode::NotFound, "no such thing").with_detail(detail);
        let error = RemoteError::from(error);
        assert_eq!(
            (error.kind(), error.message.as_str(), error.hint()),
            (ErrorKind::InvalidArgs, "no such thing", None)
        );
    }
}

#[test]
fn a_message_that_is_not_understood_is_the_callers_mistake() {
    let error = RemoteError::from(ConnectError::from(BadMessage::new("verdict.answer", "it is missing")));
    assert_eq!(error.kind, ErrorKind::InvalidArgs);
    assert!(error.message.contains("verdict.answer") && error.hint.is_some());
}
