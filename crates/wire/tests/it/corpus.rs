//! Requests as agents send them: their sections, and lossless forwarding.

use std::fmt::Write as _;
use std::path::PathBuf;

use sayso_wire::{Editable, ModelRequest, RequestHead};

pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) head: RequestHead,
    pub(crate) body: Vec<u8>,
}

impl Example {
    pub(crate) fn request(&self) -> ModelRequest {
        ModelRequest::new("r1", self.head.clone(), self.body.clone())
    }
}

/// Reads an example by its name, such as `anthropic/first-request`.
pub(crate) fn example(name: &str) -> Example {
    let path = folder().join(format!("{name}.http"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let blank = bytes.windows(2).position(|pair| pair == b"\n\n").expect("no empty line");
    let lines = String::from_utf8(bytes[..blank].to_vec()).expect("a head that is no text");
    let mut lines = lines.lines();
    let first = lines.next().expect("no request line");
    let mut head = RequestHead::new(first.split(' ').nth(1).expect("no path"));
    for line in lines {
        let (name, value) = line.split_once(':').expect("no header");
        head = head.with(name, value.trim());
    }
    Example { name: name.to_owned(), head, body: bytes[blank + 2..].to_vec() }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/requests")
}

/// All examples.
pub(crate) fn examples() -> Vec<Example> {
    let mut names = Vec::new();
    for dialect in std::fs::read_dir(folder()).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        for file in std::fs::read_dir(dialect.path()).unwrap().flatten() {
            let name = file.path().strip_prefix(folder()).unwrap().with_extension("");
            names.push(name.to_str().unwrap().to_owned());
        }
    }
    names.sort();
    assert!(names.len() >= 30, "where is the corpus?");
    names.iter().map(|name| example(name)).collect()
}

/// Renders the sections of a request in short form.
pub(crate) fn drawn(request: &ModelRequest) -> String {
    let mut text = String::new();
    let marks = request.identity();
    let api = request.dialect().map(|dialect| format!("{:?}", dialect.api()));
    writeln!(text, "{} · {:?}", api.as_deref().unwrap_or("unknown"), request.purpose()).unwrap();
    if let Some(why) = request.unknown_format_reason() {
        writeln!(text, "{why}").unwrap();
    }
    writeln!(
        text,
        "agent {:?}, session {:?}, turn {:?}, model {:?}, most {:?}, subagent {:?}",
        marks.agent, marks.session, marks.turn, marks.model, marks.max_output_tokens, marks.subagent
    )
    .unwrap();
    for problem in request.problems() {
        writeln!(text, "! {:?} {}", problem.kind, problem.message).unwrap();
    }
    for section in request.sections() {
        let mut depth = 0;
        let mut parent = section.parent;
        while let Some(id) = parent {
            depth += 1;
            parent = request.section(id).and_then(|section| section.parent);
        }
        let flags = match (section.editable, section.deletable) {
            (Editable::Yes, true) => "ed",
            (Editable::Yes, false) => "e-",
            (Editable::InParts, true) => ".d",
            (Editable::InParts, false) => "..",
            (Editable::No(_), true) => "-d",
            (Editable::No(_), false) => "--",
        };
        let content = request.content(section);
        let shown: String = content.chars().take(48).collect::<String>().replace('\n', "⏎").replace('\r', "␍");
        let more = if content.chars().count() > 48 { "…" } else { "" };
        writeln!(
            text,
            "{flags} {:indent$}{:?} {:?} [{}] {} = {shown}{more}",
            "",
            section.node,
            section.kind,
            section.label,
            request.raw_path(section),
            indent = depth * 2,
        )
        .unwrap();
    }
    text
}

#[test]
fn corpus_requests_project_to_sections() {
    for example in examples() {
        insta::assert_snapshot!(example.name.replace('/', "__"), drawn(&example.request()));
    }
}

#[test]
fn unedited_request_keeps_its_bytes() {
    for example in examples() {
        let request = example.request();
        assert!(!request.is_dirty(), "{}", example.name);
        assert_eq!(request.to_bytes(), example.body, "{}", example.name);
        if let Some(document) = request.document() {
            assert_eq!(document.to_bytes(), example.body, "{}", example.name);
        }
    }
}

#[test]
fn paths_resolve_to_their_targets() {
    for example in examples() {
        let request = example.request();
        let Some(document) = request.document() else { continue };
        let mut all = vec![document.root()];
        while let Some(target) = all.pop() {
            let path = document.path(target);
            assert_eq!(document.resolve(&path), Ok(target), "{}: {path}", example.name);
            assert_eq!(target.to_string().parse(), Ok(target));
            all.extend(document.children(target));
        }
    }
}

#[test]
fn section_edit_is_local_and_undoable() {
    for example in examples() {
        let mut request = example.request();
        let ids: Vec<_> = request.sections().map(|section| (section.id, section.editable)).collect();
        for (id, editable) in ids {
            let before = request.section(id).unwrap().clone();
            let Some(leaf) = before.leaf.filter(|_| editable == Editable::Yes) else {
                assert!(request.edit_section(id, "x").is_err(), "{}: {id}", example.name);
                continue;
            };
            let span = request.document().and_then(|document| document.span(leaf));
            let string = request.document().is_some_and(|document| document.text(leaf).is_some());
            let value = if string || span.is_none() { "edited \"here\"\n" } else { "[1, 2.50e0]" };
            if string || span.is_none() {
                request.edit_section(id, value).unwrap_or_else(|error| panic!("{}: {id}: {error}", example.name));
            } else {
                request.edit_json(leaf, value).unwrap_or_else(|error| panic!("{}: {id}: {error}", example.name));
            }
            let sent = request.to_bytes().into_owned();
            assert_ne!(sent, example.body);
            if let Some(span) = span {
                assert_eq!(sent[..span.start], example.body[..span.start], "{}: {id}", example.name);
                let after = example.body.len() - span.end;
                assert_eq!(sent[sent.len() - after..], example.body[span.end..], "{}: {id}", example.name);
            }
            if before.range.is_none() {
                assert_eq!(request.content(request.section(id).unwrap()), value, "{}: {id}", example.name);
            }
            request.undo().unwrap();
            assert_eq!(request.to_bytes(), example.body, "{}: {id}", example.name);
            assert!(!request.is_dirty());
            request.redo().unwrap();
            assert_eq!(request.to_bytes(), sent, "{}: {id}", example.name);
            request.undo().unwrap();
        }
    }
}

#[test]
fn every_section_can_be_deleted_and_restored() {
    for example in examples() {
        let mut request = example.request();
        let ids: Vec<_> = request.sections().filter(|section| section.deletable).map(|section| section.id).collect();
        for id in ids {
            request.delete(id).unwrap_or_else(|error| panic!("{}: {id}: {error}", example.name));
            let sent = request.to_bytes().into_owned();
            let same_before = sent.iter().zip(&example.body).take_while(|(one, other)| one == other).count();
            let same_after =
                sent.iter().rev().zip(example.body.iter().rev()).take_while(|(one, other)| one == other).count();
            assert!(same_before + same_after >= sent.len(), "{}: {id}: more than one piece is gone", example.name);
            assert!(sent.len() < example.body.len());
            serde_json::from_slice::<serde::de::IgnoredAny>(&sent).unwrap();
            if id.tag.is_none() {
                let section = request.section(id).expect("what is taken out is still shown");
                assert!(section.deleted, "{}: {id}", example.name);
                request.restore(id).unwrap();
            } else {
                request.undo().unwrap();
            }
            assert_eq!(request.to_bytes(), example.body, "{}: {id}", example.name);
        }
    }
}
