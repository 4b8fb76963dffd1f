//! Byte identity: the upstream receives the bytes that the agent sent.

use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use sayso_proxy::interceptor::{ApplyScope, Edit, EditTarget};
use sayso_proxy::{Pause, PauseRule};
use sayso_review::{RequestMode, RequestStatus};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use sayso_wire::{ContentKind, Editable, ModelRequest, RequestHead, RequestPurpose, Section, SectionId};

use crate::scene::{Scene, body, settings, text_path, turn};

/// A request of the corpus.
struct Example {
    name: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn corpus() -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/corpus/requests");
    let mut examples = Vec::new();
    for dialect in std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        for file in std::fs::read_dir(dialect.path()).unwrap().flatten() {
            let bytes = std::fs::read(file.path()).unwrap();
            let blank = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
            let head = String::from_utf8(bytes[..blank].to_vec()).unwrap();
            let mut lines = head.lines();
            let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
            let headers = lines.filter_map(|line| line.split_once(':'));
            let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
            examples.push(Example {
                name: file.path().display().to_string(),
                path,
                headers: headers.filter(|(name, _)| name != "host" && name != "content-length").collect(),
                body: bytes[blank + 2..].to_vec(),
            });
        }
    }
    assert!(examples.len() >= 30, "where is the corpus?");
    examples
}

fn encoded(encoding: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    match encoding {
        None => bytes.to_vec(),
        Some("gzip") => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        Some("br") => {
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &*bytes, &mut out, &brotli::enc::BrotliEncoderParams::default()).unwrap();
            out
        }
        Some("zstd") => zstd::encode_all(bytes, 1).unwrap(),
        Some(other) => panic!("{other}"),
    }
}

/// Sends the corpus in every encoding, and compares the received bytes.
async fn assert_corpus_is_identical(scene: &Scene) {
    for example in corpus() {
        for encoding in [None, Some("gzip"), Some("br"), Some("zstd")] {
            let sent = encoded(encoding, &example.body);
            let mut request = Request::post(scene.url(&format!("anthropic{}", example.path)));
            for (name, value) in &example.headers {
                request = request.header(name, value);
            }
            if let Some(encoding) = encoding {
                request = request.header("content-encoding", encoding);
            }
            let before = scene.model.received().len();
            let response = scene.send(request.body(Full::from(sent.clone())).unwrap()).await;
            let _ = body(response).await;
            let received = scene.model.received();
            let got = received.last().filter(|_| received.len() == before + 1).expect("one request");
            assert_eq!(got.raw, sent, "{} {encoding:?}", example.name);
            assert_eq!(got.target, example.path, "{}", example.name);
            assert_eq!(got.header("content-encoding"), encoding, "{}", example.name);
            for (name, value) in &example.headers {
                assert_eq!(got.header(&name.to_lowercase()), Some(value.as_str()), "{}: {name}", example.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_corpus_is_byte_identical() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    assert!(scene.interceptor.is_passthrough());
    assert_corpus_is_identical(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admitted_corpus_is_byte_identical() {
    let never = PauseRule { name: "never".to_owned(), pause: Pause::No, ..PauseRule::default() };
    let settings = sayso_proxy::Settings { rules: vec![never], ..settings() };
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    assert_corpus_is_identical(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn single_edit_changes_one_span() {
    for api in Api::ALL {
        for encoding in [None, Some("gzip"), Some("br"), Some("zstd")] {
            let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
            scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
            let came = turn(api, "before").to_string();
            let mut request = scene.request(api, &turn(api, "before"));
            *request.body_mut() = Full::from(Bytes::from(encoded(encoding, came.as_bytes())));
            if let Some(encoding) = encoding {
                request.headers_mut().insert("content-encoding", encoding.parse().unwrap());
            }
            let (id, sent) = scene.paused(request).await;
            scene.set(id, text_path(api), "after \"it\"");
            scene.resume(id);
            assert!(body(sent.answer().await).await.contains("hello"));
            let got = scene.model.received().pop().unwrap();
            let wanted = came.replace("before", "after \\\"it\\\"");
            assert_eq!(String::from_utf8_lossy(&got.raw), wanted, "{api:?} {encoding:?}");
            assert_eq!(got.header("content-encoding"), None);
            assert_eq!(got.header("content-length"), Some(wanted.len().to_string().as_str()));
            assert_eq!(scene.status(id), RequestStatus::Answered);
            let record = scene.interceptor.record(id).unwrap();
            let kept = |body| String::from_utf8(scene.gate.read(|history| history.body(body)).unwrap()).unwrap();
            assert_eq!(kept(&record.received.body), came);
            assert_eq!(kept(record.sent.as_ref().unwrap()), wanted);
        }
    }
}

/// The first editable text of a known request.
fn editable(example: &Example) -> Option<SectionId> {
    let head = RequestHead { path: example.path.clone(), headers: example.headers.clone() };
    let request = ModelRequest::new("1", head, example.body.clone());
    request.purpose().filter(|purpose| *purpose != RequestPurpose::CountTokens)?;
    let texts = |section: &&Section| {
        section.editable == Editable::Yes && section.content == ContentKind::Text && section.id.tag.is_none()
    };
    request.sections().find(|section| texts(section) && section.leaf.is_some()).map(|section| section.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn single_edit_changes_one_string_in_corpus() {
    const NEW: &str = "EDITED, and nothing else";
    let always = PauseRule { name: "always".to_owned(), ..PauseRule::default() };
    let settings = sayso_proxy::Settings { rules: vec![always], ..settings() };
    let mut edited = 0;
    for example in corpus() {
        let Some(section) = editable(&example) else { continue };
        let scene = Scene::new(settings.clone(), ModelServer::start([])).await;
        let mut request = Request::post(scene.url(&format!("anthropic{}", example.path)));
        for (name, value) in example.headers.iter().filter(|(name, _)| name != "content-encoding") {
            request = request.header(name, value);
        }
        let (id, sent) = scene.paused(request.body(Full::from(example.body.clone())).unwrap()).await;
        let edit = Edit::Set { at: EditTarget::Section(section), value: NEW.to_owned() };
        scene
            .interceptor
            .edit(id, &edit, ApplyScope::ThisRequest, 1)
            .unwrap_or_else(|error| panic!("{}: {error}", example.name));
        scene.resume(id);
        let _ = body(sent.answer().await).await;
        let (came, got) = (&example.body, scene.model.received().pop().unwrap().raw);
        let at = memmem(&got, NEW.as_bytes()).unwrap_or_else(|| panic!("{}", example.name));
        let after = got.len() - at - NEW.len();
        assert_eq!(got[..at], came[..at], "{}", example.name);
        assert_eq!(got[at + NEW.len()..], came[came.len() - after..], "{}", example.name);
        // The replaced bytes are the complete content of one string.
        let before = std::str::from_utf8(&came[at - 1..=came.len() - after]).unwrap();
        assert!(serde_json::from_str::<String>(before).is_ok(), "{}: {before}", example.name);
        edited += 1;
    }
    assert!(edited >= 25, "of {edited} only");
}

fn memmem(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_unedited_corpus_is_byte_identical() {
    for api in Api::ALL {
        for encoding in [None, Some("gzip"), Some("br"), Some("zstd")] {
            let scene = Scene::new(settings(), ModelServer::start([])).await;
            scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
            let plain = turn(api, "hi").to_string();
            let bytes = encoded(encoding, plain.as_bytes());
            let mut request = scene.request(api, &turn(api, "hi"));
            *request.body_mut() = Full::from(bytes.clone());
            if let Some(encoding) = encoding {
                request.headers_mut().insert("content-encoding", encoding.parse().unwrap());
            }
            let (id, sent) = scene.paused(request).await;
            assert!(scene.interceptor.view(id, |looked| looked.request.original()[..] == *plain.as_bytes()).unwrap());
            scene.resume(id);
            assert_eq!(sent.answer().await.status(), 200);
            let got = scene.model.received().pop().unwrap();
            assert_eq!((&got.raw[..], got.header("content-encoding")), (&bytes[..], encoding), "{api:?} {encoding:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn opaque_request_is_forwarded_untouched() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let request = Request::get(scene.url("openai/v1/models?limit=3")).header("x-own", "1");
    let response = scene.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(response.status(), 200);
    let got = scene.model.received().pop().unwrap();
    assert_eq!((got.method.as_str(), got.target.as_str()), ("GET", "/v1/models?limit=3"));
    assert_eq!(got.header("x-own"), Some("1"));
    assert_eq!(scene.story(), [""; 0]);
}
