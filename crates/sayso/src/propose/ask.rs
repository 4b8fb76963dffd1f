//! Asks hunk by hunk, with the keys of `git add -p`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use sayso_diff::{Diff, Hunk};
use sayso_review::{
    Answer, Bytes, CONTEXT, Comment, CommentSide, FileAnswer, FilePreview, HunkId, Operation, Placement, Preview,
    WsPath,
};

use super::edit;
use super::keys::{self, Key};
use super::preview::FileView;
use crate::diff::draw::{Drawing, LongLines};
use crate::diff::style::Styles;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::typing::{Answers, Nobody, Typing};

/// What was answered.
pub(crate) struct Asked {
    pub(crate) answer: Answer,
    pub(crate) comments: Vec<Comment>,
}

/// How the questions about a change ended.
pub(crate) enum Ended {
    Answered(Asked),
    /// The person decided nothing, and goes elsewhere.
    Left(Leaving),
    /// The answers ended before the questions did.
    Nobody,
    /// There was no answer at all: nobody is here.
    Silence,
}

/// Where a person goes who decides nothing about a change: it waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// To what comes next.
    Later,
    /// To what came before.
    Back,
    /// Away.
    Quit,
}

/// Where answers come from.
pub(crate) struct Questions {
    answers: Box<dyn Answers>,
    /// Whether a person types them, whose own typing shows them.
    echoed: bool,
    terminal: Terminal,
    /// How many answers there were.
    heard: usize,
}

/// What is to happen with a hunk.
#[derive(Clone, PartialEq, Eq)]
enum Choice {
    Take,
    Leave,
    /// Other bytes in place of its new lines.
    Replace(Vec<u8>),
}

/// A hunk or a part of one that is asked about.
struct Unit<'d, 'f> {
    id: HunkId,
    hunk: Hunk<'d, 'f>,
    /// Its first change among the file's.
    first: usize,
}

/// How the questions about a file ended.
enum FileEnd {
    Answered(FileAnswer),
    /// This and all later files are refused.
    NothingMore,
    Left(Leaving),
    Nobody,
}

impl Questions {
    /// Answers come from standard input, or from the terminal where that holds the proposal.
    pub(crate) fn open(proposal: &Path, terminal: Terminal) -> Self {
        let typing = if proposal == Path::new("-") {
            // Without a terminal nobody can be asked here.
            let Ok(typing) = Typing::terminal() else { return Self::over(Box::new(Nobody), false, terminal) };
            typing
        } else {
            Typing::stdin()
        };
        let echoed = typing.is_echoed();
        Self::over(Box::new(typing), echoed, terminal)
    }

    /// Answers come from elsewhere; `echoed` if a person's own typing shows them.
    pub(crate) fn over(answers: Box<dyn Answers>, echoed: bool, terminal: Terminal) -> Self {
        Self { answers, echoed, terminal, heard: 0 }
    }

    /// Asks about everything of a change.
    pub(crate) fn ask(&mut self, preview: &Preview, output: &mut Output) -> Result<Ended, Failure> {
        let mut files: BTreeMap<WsPath, FileAnswer> = BTreeMap::new();
        let mut comments = Vec::new();
        let mut nothing_more = false;
        let mut at = 0;
        while let Some(file) = preview.files().get(at) {
            let settled = preview.is_settled(&file.path);
            let diff = file.diff();
            let mut view = FileView::new(file, &diff, self.terminal);
            output.write(view.head(settled).as_bytes())?;
            at += 1;
            if settled || file.problem.is_some() || nothing_more {
                continue;
            }
            let mut session =
                FileSession { questions: self, file, diff: &diff, view, output, comments: &mut comments, preview };
            match session.run()? {
                FileEnd::Answered(answer) => drop(files.insert(file.path.clone(), answer)),
                FileEnd::NothingMore => nothing_more = true,
                FileEnd::Left(Leaving::Back) => {
                    // To the file before that was asked about; before the first, to the change before.
                    let before = preview.files()[..at - 1].iter().rposition(|file| files.contains_key(&file.path));
                    let Some(before) = before else { return Ok(Ended::Left(Leaving::Back)) };
                    files.remove(&preview.files()[before].path);
                    comments.retain(|comment| comment.path != preview.files()[before].path);
                    at = before;
                }
                FileEnd::Left(leaving) => return Ok(Ended::Left(leaving)),
                FileEnd::Nobody => {
                    return Ok(if self.heard == 0 && !self.echoed { Ended::Silence } else { Ended::Nobody });
                }
            }
        }
        let whole = preview.asked().all(|file| files.get(&file.path) == Some(&FileAnswer::Approve));
        if whole {
            return Ok(Ended::Answered(Asked { answer: Answer::Approve, comments }));
        }
        let Some(reason) = self.line(output, "Why? The agent is told (Enter for no reason): ")? else {
            return Ok(Ended::Nobody);
        };
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let refused = files.values().all(|answer| matches!(answer, FileAnswer::Deny { .. }));
        let answer = if refused { Answer::Deny { reason } } else { Answer::Files { files, reason } };
        Ok(Ended::Answered(Asked { answer, comments }))
    }

    /// Asks for one line; `None` at the end of input.
    pub(crate) fn line(&mut self, output: &mut Output, question: &str) -> Result<Option<String>, Failure> {
        let styles = Styles::of(self.terminal);
        let mut text = String::new();
        styles.paint(&mut text, styles.hunk.bold(), question);
        self.answers.discard();
        output.write(text.as_bytes())?;
        output.flush()?;
        let line = self.answers.line();
        let line = line.map_err(|error| Failure::bad_input("the answer could not be read").why(&error))?;
        if !self.echoed || line.is_none() {
            output.write(line.as_deref().unwrap_or_default().trim_end().as_bytes())?;
            output.write(b"\n")?;
        }
        self.heard += usize::from(line.is_some());
        Ok(line.map(|line| line.trim().to_owned()))
    }
}

struct FileSession<'q, 'f, 'd> {
    questions: &'q mut Questions,
    file: &'f FilePreview,
    diff: &'d Diff<'f>,
    view: FileView<'f, 'd>,
    output: &'q mut Output,
    comments: &'q mut Vec<Comment>,
    preview: &'f Preview,
}

impl<'f, 'd> FileSession<'_, 'f, 'd> {
    /// Asks about each hunk of the file.
    fn run(&mut self) -> Result<FileEnd, Failure> {
        if self.file.is_unchanged() {
            return Ok(FileEnd::Answered(FileAnswer::Approve));
        }
        let mut waiting: VecDeque<Unit<'d, 'f>> = VecDeque::new();
        let mut first = 0;
        for hunk in if self.view.has_hunks() { self.diff.hunks(CONTEXT).collect() } else { Vec::new() } {
            let next = first + hunk.changes().len();
            waiting.push_back(Unit { id: HunkId::whole(hunk.number), hunk, first });
            first = next;
        }
        if waiting.is_empty() || self.file.changes_encoding() {
            for unit in &waiting {
                let drawn = self.view.hunk(&unit.hunk, &unit.id.to_string());
                self.output.write(drawn.as_bytes())?;
            }
            return self.ask_whole();
        }
        let mut done: Vec<(Unit<'d, 'f>, Choice)> = Vec::new();
        while let Some(unit) = waiting.pop_front() {
            let drawn = self.view.hunk(&unit.hunk, &unit.id.to_string());
            self.output.write(drawn.as_bytes())?;
            let parts = if unit.id.part.is_none() { unit.hunk.changes().len() } else { 1 };
            let keys = self.keys(parts > 1);
            let (number, of) = (done.len() + 1, done.len() + waiting.len() + 1);
            let question = format!("({number}/{of}) {} [{keys}]? ", self.verb());
            let Some(key) = self.reply(&question, &keys)? else { return Ok(FileEnd::Nobody) };
            let choice = match key {
                Key::Yes => Choice::Take,
                Key::No => Choice::Leave,
                Key::AllOfFile | Key::NoneOfFile => {
                    let choice = if key == Key::AllOfFile { Choice::Take } else { Choice::Leave };
                    done.extend(waiting.drain(..).map(|unit| (unit, choice.clone())));
                    choice
                }
                Key::NothingMore => return Ok(FileEnd::NothingMore),
                Key::Quit => return Ok(FileEnd::Left(Leaving::Quit)),
                Key::Later if waiting.is_empty() => return Ok(FileEnd::Left(Leaving::Later)),
                Key::Later => {
                    waiting.push_back(unit);
                    continue;
                }
                Key::Back => {
                    let Some((before, _)) = done.pop() else { return Ok(FileEnd::Left(Leaving::Back)) };
                    waiting.push_front(unit);
                    waiting.push_front(before);
                    continue;
                }
                Key::Split => {
                    for part in self.split(&unit).into_iter().rev() {
                        waiting.push_front(part);
                    }
                    continue;
                }
                Key::Edit => {
                    let Some(bytes) = edit::lines(self.file, &unit.hunk)? else {
                        waiting.push_front(unit);
                        continue;
                    };
                    match self.confirm(&unit, &bytes)? {
                        Some(true) => Choice::Replace(bytes),
                        Some(false) => {
                            waiting.push_front(unit);
                            continue;
                        }
                        None => return Ok(FileEnd::Nobody),
                    }
                }
                Key::Comment => {
                    if !self.comment(&unit.hunk)? {
                        return Ok(FileEnd::Nobody);
                    }
                    waiting.push_front(unit);
                    continue;
                }
            };
            done.push((unit, choice));
        }
        done.sort_by_key(|(unit, _)| unit.first);
        Ok(FileEnd::Answered(self.answer(&done)))
    }

    /// The keys that a question about a hunk takes.
    fn keys(&self, splits: bool) -> String {
        let split = if splits { "s," } else { "" };
        format!("y,n,a,d,{}{split}e,c,j,k,q,?", self.key_for_everything())
    }

    /// The key that refuses all files, where there are several.
    fn key_for_everything(&self) -> &'static str {
        if self.preview.asked().count() > 1 { "D," } else { "" }
    }

    /// Shows what was edited, and asks whether to take it: nothing is taken that was not seen.
    fn confirm(&mut self, unit: &Unit<'_, '_>, edited: &[u8]) -> Result<Option<bool>, Failure> {
        let old = self.file.before.bytes().unwrap_or_default();
        let diff = Diff::new(&old[edit::ranges(&unit.hunk).0], edited);
        let mut drawing = Drawing::new(&diff, self.file.path.as_str(), self.questions.terminal, LongLines::Whole);
        for hunk in diff.hunks(CONTEXT) {
            drawing.hunk(&hunk, "as edited, counted from the first changed line");
        }
        self.output.write(drawing.take().as_bytes())?;
        let Some(key) = self.reply("Take it as edited [y,n,?]? ", "y,n,?")? else { return Ok(None) };
        Ok(Some(key == Key::Yes))
    }

    fn verb(&self) -> String {
        let path = crate::visible::visible(self.file.path.as_str()).into_owned();
        if self.preview.placement() == Placement::InPlace {
            return match &self.file.operation {
                Operation::Create => format!("Keep the new file {path}"),
                Operation::Delete => format!("Leave {path} deleted"),
                Operation::Update | Operation::Rename { .. } => format!("Keep this hunk of {path}"),
            };
        }
        match &self.file.operation {
            Operation::Create => format!("Create {path}"),
            Operation::Delete => format!("Delete {path}"),
            Operation::Update | Operation::Rename { .. } => format!("Apply this hunk to {path}"),
        }
    }

    /// Asks about a file that has no lines to show: renamed only, another mode, empty, or binary.
    fn ask_whole(&mut self) -> Result<FileEnd, Failure> {
        let path = crate::visible::visible(self.file.path.as_str()).into_owned();
        let question = match &self.file.operation {
            Operation::Rename { from } => format!("Rename {} to {path}", crate::visible::visible(from.as_str())),
            Operation::Create => format!("Create {path}"),
            Operation::Delete => format!("Delete {path}"),
            Operation::Update if self.file.changes_encoding() => {
                format!("Change all of {path}, since its encoding changes")
            }
            Operation::Update => format!("Change {path}"),
        };
        let keys = format!("y,n,{}j,k,q,?", self.key_for_everything());
        let Some(key) = self.reply(&format!("{question} [{keys}]? "), &keys)? else { return Ok(FileEnd::Nobody) };
        Ok(match key {
            Key::Yes => FileEnd::Answered(FileAnswer::Approve),
            Key::NothingMore => FileEnd::NothingMore,
            Key::Quit => FileEnd::Left(Leaving::Quit),
            Key::Later => FileEnd::Left(Leaving::Later),
            Key::Back => FileEnd::Left(Leaving::Back),
            _ => FileEnd::Answered(FileAnswer::Deny { reason: None }),
        })
    }

    fn reply(&mut self, question: &str, offers: &str) -> Result<Option<Key>, Failure> {
        loop {
            let Some(line) = self.questions.line(self.output, question)? else { return Ok(None) };
            if offers.split(',').any(|key| key == line)
                && let Some(key) = Key::of(&line)
            {
                return Ok(Some(key));
            }
            let text = if line == "s" && offers.contains("a,d") {
                "This cannot be split any further.\n".to_owned()
            } else {
                keys::explained(&line, offers, self.preview.placement())
            };
            self.output.write(text.as_bytes())?;
        }
    }

    fn split(&self, unit: &Unit<'d, 'f>) -> Vec<Unit<'d, 'f>> {
        let part = |part: usize| {
            let first = unit.first + part;
            let hunk = self.diff.part(first, CONTEXT)?;
            Some(Unit { id: HunkId { hunk: unit.id.hunk, part: Some(part + 1) }, hunk, first })
        };
        (0..unit.hunk.changes().len()).filter_map(part).collect()
    }

    /// Asks for a comment; says whether there was an answer.
    fn comment(&mut self, hunk: &Hunk<'_, '_>) -> Result<bool, Failure> {
        let line = hunk.changes().first().map_or(1, |change| change.new.start.line + 1);
        let question = format!("Comment on line {line} (or LINE: comment): ");
        let Some(text) = self.questions.line(self.output, &question)? else { return Ok(false) };
        let (line, text) = match text.split_once(':') {
            Some((number, rest)) if number.trim().parse::<usize>().is_ok() => {
                (number.trim().parse().unwrap_or(line), rest.trim().to_owned())
            }
            _ => (line, text),
        };
        if !text.is_empty() {
            self.comments.push(Comment { path: self.file.path.clone(), line, side: CommentSide::Proposed, text });
        }
        Ok(true)
    }

    fn answer(&self, done: &[(Unit<'_, '_>, Choice)]) -> FileAnswer {
        if done.iter().all(|(_, choice)| *choice == Choice::Take) {
            return FileAnswer::Approve;
        }
        if done.iter().all(|(_, choice)| *choice == Choice::Leave) {
            return FileAnswer::Deny { reason: None };
        }
        if !done.iter().any(|(_, choice)| matches!(choice, Choice::Replace(_))) {
            let taken = done.iter().filter(|(_, choice)| *choice == Choice::Take).map(|(unit, _)| unit.id);
            return FileAnswer::Hunks { hunks: taken.collect::<BTreeSet<_>>() };
        }
        let (old, new) = (self.file.before.bytes().unwrap_or_default(), self.file.after.bytes().unwrap_or_default());
        let mut bytes = Vec::with_capacity(new.len());
        let mut at = 0;
        for (unit, choice) in done {
            let (leaves, comes) = edit::ranges(&unit.hunk);
            bytes.extend_from_slice(&old[at..leaves.start]);
            bytes.extend_from_slice(match choice {
                Choice::Leave => &old[leaves.clone()],
                Choice::Take => &new[comes],
                Choice::Replace(edited) => edited,
            });
            at = leaves.end;
        }
        bytes.extend_from_slice(&old[at..]);
        FileAnswer::EditedBytes { bytes: Bytes::new(bytes) }
    }
}
