//! Asks hunk by hunk, with the keys of `git add -p`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::Path;

use sayso_diff::{Diff, Hunk};
use sayso_review::{
    Answer, Bytes, CONTEXT, Comment, CommentSide, FileAnswer, FilePreview, HunkId, Operation, Placement, Preview,
};

use super::preview::FileView;
use super::{edit, keys};
use crate::diff::draw::{Drawing, LongLines};
use crate::diff::style::Styles;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::Terminal;

/// What was answered.
pub(crate) struct Asked {
    pub(crate) answer: Answer,
    pub(crate) comments: Vec<Comment>,
}

/// Where answers come from.
pub(crate) struct Questions {
    lines: Box<dyn BufRead>,
    /// Whether a person types them, whose own typing shows them.
    echoed: bool,
    terminal: Terminal,
}

/// Whether a person's own typing shows their answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    Visibly,
    Elsewhere,
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

/// What a person can say to a question.
enum Reply {
    Yes,
    No,
    AllOfFile,
    NoneOfFile,
    Quit,
    Split,
    Edit,
    Comment,
}

impl Questions {
    /// Answers come from standard input, or from the terminal where that holds the proposal.
    pub(crate) fn open(proposal: &Path, terminal: Terminal) -> Result<Self, Failure> {
        if proposal != Path::new("-") {
            let echoed = std::io::stdin().is_terminal();
            return Ok(Self { lines: Box::new(std::io::stdin().lock()), echoed, terminal });
        }
        let file = File::open("/dev/tty").map_err(|error| {
            Failure::bad_input("the proposal came from standard input, and there is no terminal to ask on")
                .why(&error)
                .hint("give --approve all|none|HUNKS or --deny REASON")
        })?;
        Ok(Self { lines: Box::new(BufReader::new(file)), echoed: true, terminal })
    }

    /// Answers come from elsewhere; `typed` where a person's own typing shows them.
    pub(crate) fn over(lines: Box<dyn BufRead>, typed: Typed, terminal: Terminal) -> Self {
        Self { lines, echoed: typed == Typed::Visibly, terminal }
    }

    /// Asks about everything that waits. `None` if the answers ended before the questions did.
    pub(crate) fn ask(&mut self, preview: &Preview, output: &mut Output) -> Result<Option<Asked>, Failure> {
        let mut files = BTreeMap::new();
        let mut comments = Vec::new();
        let mut quit = false;
        for file in preview.files() {
            let settled = preview.is_settled(&file.path);
            let diff = file.diff();
            let mut view = FileView::new(file, &diff, self.terminal);
            output.write(view.head(settled).as_bytes())?;
            if settled || file.problem.is_some() || quit {
                continue;
            }
            let mut session = FileSession {
                questions: self,
                file,
                diff: &diff,
                view,
                output,
                comments: &mut comments,
                placement: preview.placement(),
            };
            let Some((answer, ended)) = session.run()? else { return Ok(None) };
            files.insert(file.path.clone(), answer);
            quit = ended;
        }
        let whole = preview.asked().all(|file| files.get(&file.path) == Some(&FileAnswer::Approve));
        if whole {
            return Ok(Some(Asked { answer: Answer::Approve, comments }));
        }
        let Some(reason) = self.line(output, "Why? The agent is told (Enter for no reason): ")? else {
            return Ok(None);
        };
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let refused = files.values().all(|answer| matches!(answer, FileAnswer::Deny { .. }));
        let answer = if refused { Answer::Deny { reason } } else { Answer::Files { files, reason } };
        Ok(Some(Asked { answer, comments }))
    }

    /// Asks for one line; `None` at the end of input.
    pub(crate) fn line(&mut self, output: &mut Output, question: &str) -> Result<Option<String>, Failure> {
        let styles = Styles::of(self.terminal);
        let mut text = String::new();
        styles.paint(&mut text, styles.hunk.bold(), question);
        output.write(text.as_bytes())?;
        output.flush()?;
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        let count = read.map_err(|error| Failure::bad_input("the answer could not be read").why(&error))?;
        if !self.echoed || count == 0 {
            output.write(line.trim_end().as_bytes())?;
            output.write(b"\n")?;
        }
        Ok((count > 0).then(|| line.trim().to_owned()))
    }
}

struct FileSession<'q, 'f, 'd> {
    questions: &'q mut Questions,
    file: &'f FilePreview,
    diff: &'d Diff<'f>,
    view: FileView<'f, 'd>,
    output: &'q mut Output,
    comments: &'q mut Vec<Comment>,
    placement: Placement,
}

impl<'f, 'd> FileSession<'_, 'f, 'd> {
    /// The answer about the file, and whether the person wants no more questions.
    fn run(&mut self) -> Result<Option<(FileAnswer, bool)>, Failure> {
        if self.file.is_unchanged() {
            return Ok(Some((FileAnswer::Approve, false)));
        }
        let mut waiting: Vec<Unit<'d, 'f>> = Vec::new();
        let mut first = 0;
        for hunk in if self.view.has_hunks() { self.diff.hunks(CONTEXT).collect() } else { Vec::new() } {
            let next = first + hunk.changes().len();
            waiting.push(Unit { id: HunkId::whole(hunk.number), hunk, first });
            first = next;
        }
        if waiting.is_empty() || self.file.changes_encoding() {
            for unit in &waiting {
                let drawn = self.view.hunk(&unit.hunk, &unit.id.to_string());
                self.output.write(drawn.as_bytes())?;
            }
            return self.ask_whole();
        }
        waiting.reverse();
        let mut done: Vec<(Unit<'d, 'f>, Choice)> = Vec::new();
        let mut rest: Option<Choice> = None;
        let mut quit = false;
        while let Some(unit) = waiting.pop() {
            if let Some(choice) = &rest {
                done.push((unit, choice.clone()));
                continue;
            }
            let drawn = self.view.hunk(&unit.hunk, &unit.id.to_string());
            self.output.write(drawn.as_bytes())?;
            let parts = if unit.id.part.is_none() { unit.hunk.changes().len() } else { 1 };
            let keys = if parts > 1 { "y,n,a,d,s,e,c,q,?" } else { "y,n,a,d,e,c,q,?" };
            let (number, of) = (done.len() + 1, done.len() + waiting.len() + 1);
            let question = format!("({number}/{of}) {} [{keys}]? ", self.verb());
            let Some(reply) = self.reply(&question, keys)? else { return Ok(None) };
            let choice = match reply {
                Reply::Yes => Choice::Take,
                Reply::No => Choice::Leave,
                Reply::AllOfFile => rest.insert(Choice::Take).clone(),
                Reply::NoneOfFile => rest.insert(Choice::Leave).clone(),
                // What happened stays as it is until somebody says otherwise.
                Reply::Quit if self.placement == Placement::InPlace => return Ok(None),
                Reply::Quit => {
                    quit = true;
                    rest.insert(Choice::Leave).clone()
                }
                Reply::Split => {
                    waiting.extend(self.split(&unit).into_iter().rev());
                    continue;
                }
                Reply::Edit => {
                    let Some(bytes) = edit::lines(self.file, &unit.hunk)? else {
                        waiting.push(unit);
                        continue;
                    };
                    match self.confirm(&unit, &bytes)? {
                        Some(true) => Choice::Replace(bytes),
                        Some(false) => {
                            waiting.push(unit);
                            continue;
                        }
                        None => return Ok(None),
                    }
                }
                Reply::Comment => {
                    if !self.comment(&unit.hunk)? {
                        return Ok(None);
                    }
                    waiting.push(unit);
                    continue;
                }
            };
            done.push((unit, choice));
        }
        Ok(Some((self.answer(&done), quit)))
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
        let Some(reply) = self.reply("Take it as edited [y,n,?]? ", "y,n,?")? else { return Ok(None) };
        Ok(Some(matches!(reply, Reply::Yes)))
    }

    fn verb(&self) -> String {
        let path = crate::visible::visible(self.file.path.as_str()).into_owned();
        if self.placement == Placement::InPlace {
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
    fn ask_whole(&mut self) -> Result<Option<(FileAnswer, bool)>, Failure> {
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
        let Some(reply) = self.reply(&format!("{question} [y,n,q,?]? "), "y,n,q,?")? else { return Ok(None) };
        Ok(Some(match reply {
            Reply::Yes | Reply::AllOfFile => (FileAnswer::Approve, false),
            Reply::Quit if self.placement == Placement::InPlace => return Ok(None),
            Reply::Quit => (FileAnswer::Deny { reason: None }, true),
            _ => (FileAnswer::Deny { reason: None }, false),
        }))
    }

    fn reply(&mut self, question: &str, offers: &str) -> Result<Option<Reply>, Failure> {
        loop {
            let Some(line) = self.questions.line(self.output, question)? else { return Ok(None) };
            let offered = !line.is_empty() && offers.split(',').any(|key| key == line);
            let reply = match line.as_str() {
                "y" => Reply::Yes,
                "n" => Reply::No,
                "a" if offered => Reply::AllOfFile,
                "d" if offered => Reply::NoneOfFile,
                "q" if offered => Reply::Quit,
                "s" if offered => Reply::Split,
                "e" if offered => Reply::Edit,
                "c" if offered => Reply::Comment,
                "s" if offers.contains("a,d") => {
                    self.output.write(b"This cannot be split any further.\n")?;
                    continue;
                }
                other => {
                    self.output.write(keys::explained(other, offers, self.placement).as_bytes())?;
                    continue;
                }
            };
            return Ok(Some(reply));
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
