//! Errors keep kind, message, hint and data across the wire.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use connectrpc::{ConnectError, ErrorCode, ErrorDetail};
use proptest::option;
use proptest::prelude::*;
use sayso_api::convert::BadMessage;
use sayso_api::error::{DETAIL, ErrorData, RemoteError, to_connect, to_connect_with};
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

fn data() -> impl Strategy<Value = ErrorData> {
    let texts = arbitrary::texts;
    prop_oneof![
        (arbitrary::text(), texts()).prop_map(|(path, similar)| ErrorData::PathNotFound { path, similar }),
        (arbitrary::text(), arbitrary::text()).prop_map(|(field, reason)| ErrorData::InvalidField { field, reason }),
        (arbitrary::text(), texts(), any::<u64>()).prop_map(|(given, matches, count)| ErrorData::AmbiguousSession {
            given,
            matches,
            count
        }),
    ]
}

/// The table in `error.proto`, from which authors of clients work.
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
fn error_kinds_map_to_documented_codes() {
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
    fn error_round_trips(message in arbitrary::text(), hint in arbitrary::maybe(), data in option::of(data())) {
        for (kind, code) in KINDS {
            let expected =
                RemoteError { kind, code, message: message.clone(), hint: hint.clone(), data: data.clone() };
            let error = match data.clone() {
                Some(data) => to_connect_with(kind, message.clone(), hint.clone(), data),
                None => to_connect(kind, message.clone(), hint.clone()),
            };
            prop_assert_eq!(RemoteError::from(error.clone()), expected.clone());
            // The JSON form of Connect.
            let json: ConnectError = serde_json::from_slice(&error.to_json()).unwrap();
            prop_assert_eq!(RemoteError::from(json), expected.clone());
            // The type URL of gRPC.
            let mut named = error.clone();
            named.details[0].type_url = format!("type.googleapis.com/{DETAIL}");
            prop_assert_eq!(RemoteError::from(named), expected.clone());
            // Base64 with padding.
            let mut padded = error;
            let value = padded.details[0].value.take().unwrap();
            prop_assert!(!value.contains('='));
            padded.details[0].value = Some(format!("{value}{}", "=".repeat((4 - value.len() % 4) % 4)));
            prop_assert_eq!(RemoteError::from(padded), expected);
        }
    }

    #[test]
    fn undecodable_detail_never_panics(value in option::of("[A-Za-z0-9+/=]{0,20}")) {
        let detail = ErrorDetail { type_url: DETAIL.to_owned(), value, debug: None };
        let error = ConnectError::new(ErrorCode::NotFound, "not found").with_detail(detail);
        let _ = RemoteError::from(error);
    }
}

#[test]
fn error_without_detail_takes_kind_from_code() {
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
        assert_eq!(error, RemoteError { kind, code, message: "why".to_owned(), hint: None, data: None });
    }
}

#[test]
fn error_without_message_names_code() {
    let mut error = ConnectError::new(ErrorCode::Unavailable, "");
    assert!(RemoteError::from(error.clone()).message.contains("unavailable"));
    error.message = None;
    assert!(RemoteError::from(error).to_string().contains("unavailable"));
}

#[test]
fn foreign_or_newer_detail_is_ignored() {
    let newer = proto::ErrorDetail { kind: buffa::EnumValue::from(99), ..Default::default() };
    let others = [
        ErrorDetail::from_message("google.rpc.RetryInfo", &proto::ErrorDetail::default()),
        ErrorDetail::from_message(DETAIL, &newer),
        ErrorDetail { type_url: DETAIL.to_owned(), value: Some(STANDARD.encode([0xff])), debug: None },
    ];
    for detail in others {
        let error = ConnectError::new(ErrorCode::NotFound, "not found").with_detail(detail);
        let error = RemoteError::from(error);
        assert_eq!((error.kind(), error.message.as_str(), error.hint()), (ErrorKind::InvalidArgs, "not found", None));
    }
}

#[test]
fn bad_message_becomes_invalid_args_with_field() {
    let error = RemoteError::from(ConnectError::from(BadMessage::new("verdict.answer", "it is missing")));
    assert_eq!(error.kind, ErrorKind::InvalidArgs);
    assert!(error.message.contains("verdict.answer") && error.hint.is_some());
    let data = ErrorData::InvalidField { field: "verdict.answer".to_owned(), reason: "it is missing".to_owned() };
    assert_eq!(error.data, Some(data));
}
