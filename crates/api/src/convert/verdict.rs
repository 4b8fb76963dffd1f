//! Verdicts, answers by file and comments.

use std::collections::{BTreeMap, BTreeSet};

use buffa::MessageField;
use sayso_review::{
    Answer, Bytes, Comment, CommentSide, Decider, FileAnswer, HunkId, NotAHunk, Surface, Verdict, WsPath,
};

use super::field::{count, enumeration, hash, json, list, oneof, path, required};
use super::{BadMessage, messages};
use crate::proto;
use crate::proto::oneof as choice;

impl From<&Verdict> for proto::Verdict {
    fn from(verdict: &Verdict) -> Self {
        use proto::verdict::{Person, Policy};
        Self {
            preview_hash: verdict.preview.to_string(),
            answer: MessageField::some((&verdict.answer).into()),
            comments: messages(&verdict.comments),
            message: verdict.message.clone(),
            by: match &verdict.by {
                Decider::Person { surface } => {
                    Person { surface: surface.as_ref().map(proto::Surface::from).into(), ..Default::default() }.into()
                }
                Decider::Policy { rule } => Policy { rule: rule.clone(), ..Default::default() }.into(),
            },
            ..Default::default()
        }
    }
}

/// Defaults to a person. The engine overwrites the decider in any case.
impl TryFrom<proto::Verdict> for Verdict {
    type Error = BadMessage;

    fn try_from(verdict: proto::Verdict) -> Result<Self, BadMessage> {
        use choice::verdict::By;
        Ok(Self {
            preview: hash(&verdict.preview_hash, "preview_hash")?,
            answer: required(verdict.answer, "answer")?,
            comments: list(verdict.comments, "comments")?,
            message: verdict.message.filter(|message| !message.trim().is_empty()),
            by: match verdict.by {
                None => Decider::PERSON,
                Some(By::Person(person)) => {
                    Decider::Person { surface: person.surface.into_option().map(Surface::from) }
                }
                Some(By::Policy(policy)) => Decider::Policy { rule: policy.rule },
            },
        })
    }
}

impl From<&Answer> for proto::Answer {
    fn from(answer: &Answer) -> Self {
        use choice::answer::Answer as Choice;
        use proto::answer::{Approve, Deny, Files};
        let answer = match answer {
            Answer::Approve => Approve::default().into(),
            Answer::Deny { reason } => Deny { reason: reason.clone(), ..Default::default() }.into(),
            Answer::Files { files, reason } => Files {
                files: files.iter().map(|(path, answer)| (path.to_string(), answer.into())).collect(),
                reason: reason.clone(),
                ..Default::default()
            }
            .into(),
            Answer::Command { command } => Choice::Command(command.clone()),
            Answer::Arguments { arguments } => Choice::ArgumentsJson(arguments.to_string()),
        };
        Self { answer: Some(answer), ..Default::default() }
    }
}

impl TryFrom<proto::Answer> for Answer {
    type Error = BadMessage;

    fn try_from(answer: proto::Answer) -> Result<Self, BadMessage> {
        use choice::answer::Answer as Choice;
        Ok(match oneof(answer.answer, "answer")? {
            Choice::Approve(_) => Self::Approve,
            Choice::Deny(deny) => Self::Deny { reason: deny.reason },
            Choice::Files(files) => Self::Files { files: read_files(files.files)?, reason: files.reason },
            Choice::Command(command) => Self::Command { command },
            Choice::ArgumentsJson(arguments) => Self::Arguments { arguments: json(&arguments, "arguments_json")? },
        })
    }
}

fn read_files(
    answers: impl IntoIterator<Item = (String, proto::FileAnswer)>,
) -> Result<BTreeMap<WsPath, FileAnswer>, BadMessage> {
    let mut files = BTreeMap::new();
    for (name, answer) in answers {
        let field = format!("files.files[{name}]");
        let file = path(&name, &field)?;
        let answer = answer.try_into().map_err(|error: BadMessage| error.within(&field))?;
        // Two spellings of one path: either answer could be the intended one.
        if files.insert(file, answer).is_some() {
            return Err(BadMessage::new(field, "another entry names the same file"));
        }
    }
    Ok(files)
}

impl From<&FileAnswer> for proto::FileAnswer {
    fn from(answer: &FileAnswer) -> Self {
        use choice::file_answer::Answer as Choice;
        use proto::file_answer::{Approve, Deny, Hunks};
        let answer = match answer {
            FileAnswer::Approve => Approve::default().into(),
            FileAnswer::Deny { reason } => Deny { reason: reason.clone(), ..Default::default() }.into(),
            FileAnswer::Hunks { hunks } => {
                Hunks { hunks: hunks.iter().map(ToString::to_string).collect(), ..Default::default() }.into()
            }
            FileAnswer::EditedText { text } => Choice::EditedText(text.clone()),
            FileAnswer::EditedBytes { bytes } => Choice::EditedBytes(bytes.as_bytes().to_vec()),
        };
        Self { answer: Some(answer), ..Default::default() }
    }
}

impl TryFrom<proto::FileAnswer> for FileAnswer {
    type Error = BadMessage;

    fn try_from(answer: proto::FileAnswer) -> Result<Self, BadMessage> {
        use choice::file_answer::Answer as Choice;
        Ok(match oneof(answer.answer, "answer")? {
            Choice::Approve(_) => Self::Approve,
            Choice::Deny(deny) => Self::Deny { reason: deny.reason },
            Choice::Hunks(hunks) => Self::Hunks { hunks: read_hunks(&hunks.hunks)? },
            Choice::EditedText(text) => Self::EditedText { text },
            Choice::EditedBytes(bytes) => Self::EditedBytes { bytes: Bytes::new(bytes) },
        })
    }
}

fn read_hunks(hunks: &[String]) -> Result<BTreeSet<HunkId>, BadMessage> {
    let read = |(index, hunk): (usize, &String)| {
        let named = |error: NotAHunk| BadMessage::new(format!("hunks.hunks[{index}]"), error.to_string());
        hunk.parse().map_err(named)
    };
    hunks.iter().enumerate().map(read).collect()
}

impl From<&Comment> for proto::Comment {
    fn from(comment: &Comment) -> Self {
        Self {
            path: comment.path.to_string(),
            line: comment.line as u64,
            side: proto::comment::Side::from(comment.side).into(),
            text: comment.text.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::Comment> for Comment {
    type Error = BadMessage;

    fn try_from(comment: proto::Comment) -> Result<Self, BadMessage> {
        Ok(Self {
            path: path(&comment.path, "path")?,
            line: count(comment.line, "line")?,
            side: enumeration(comment.side, "side")?,
            text: comment.text,
        })
    }
}

impl From<CommentSide> for proto::comment::Side {
    fn from(side: CommentSide) -> Self {
        match side {
            CommentSide::Current => Self::Current,
            CommentSide::Proposed => Self::Proposed,
        }
    }
}

/// Defaults to the proposed version.
impl From<proto::comment::Side> for CommentSide {
    fn from(side: proto::comment::Side) -> Self {
        match side {
            proto::comment::Side::Unspecified | proto::comment::Side::Proposed => Self::Proposed,
            proto::comment::Side::Current => Self::Current,
        }
    }
}
