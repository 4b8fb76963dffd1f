//! `GetDiff`: the files of a diff, and pages of their rows.

mod planned;
mod rows;
mod subject;

use std::sync::Arc;

use sayso_api::convert::BadMessage;
use sayso_api::convert::field::{count, enumeration};
use sayso_api::proto;
use sayso_api::proto::diff_file::NoDiffReason;
use sayso_diff::{ConflictRows, Counts, DiffRows, RowLayout, RowOptions};
use sayso_gate::GateError;
use sayso_review::{Content, ErrorKind, Operation};

pub(crate) use self::planned::PlannedSubjects;
use self::rows::{DiffSides, PageRange};
use self::subject::{PageRequest, SubjectFile};
use crate::caller::Peer;
use crate::diff_cache::{CachedComparison, Compared};
use crate::failure::Failure;
use crate::host::Host;
use crate::service::workspace::may_read;

/// Rows of a page without a limit.
const DEFAULT_ROWS: u32 = 500;
const MAX_ROWS: u32 = 5_000;
const DEFAULT_CONTEXT_LINES: u32 = 3;
/// Sizes of the files that a list compares, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// A call on behalf of a caller.
struct DiffCall<'h> {
    host: &'h Host,
    peer: Option<Peer>,
    /// `false` for an agent, from which contents are withheld.
    is_person: bool,
    options: RowOptions,
    layout: Option<RowLayout>,
}

/// Answers a call.
pub(super) fn get_diff(
    host: &Host,
    peer: Option<Peer>,
    mut request: proto::GetDiffRequest,
) -> Result<proto::GetDiffResponse, Failure> {
    let subject = request.subject.take().ok_or_else(|| BadMessage::new("subject", "it is missing"))?;
    let is_conflict = matches!(subject.subject, Some(proto::oneof::diff_subject::Subject::Conflict(_)));
    let options = RowOptions {
        context: request.context.unwrap_or(DEFAULT_CONTEXT_LINES) as usize,
        whole_file: request.whole_file,
    };
    let layout = layout(&request, is_conflict)?;
    let page = match &request.preview_hash {
        _ if request.path.is_empty() => PageRequest::List,
        None if request.from_row == 0 && request.from_hunk.is_none() => PageRequest::List,
        Some(_) if request.from_row == 0 && request.from_hunk.is_none() => PageRequest::First,
        Some(_) | None => PageRequest::Later,
    };
    let subject = subject::resolve(host, peer, subject, page, request.preview_hash.as_deref())?;
    let hash = subject.hash.to_string();
    if request.preview_hash.as_ref().is_some_and(|expected| *expected != hash) {
        return Err(Failure::new(ErrorKind::Stale, "the diff changed since it was listed")
            .hint("call GetDiff without a path, and show the new diff"));
    }
    let is_person = Peer::require_person(peer, &host.agents).is_ok();
    let call = DiffCall { host, peer, is_person, options, layout };
    let mut response = proto::GetDiffResponse {
        preview_hash: hash,
        total_files: u32::try_from(subject.files.len()).unwrap_or(u32::MAX),
        ..Default::default()
    };
    for file in &subject.files {
        let counts = call.counts(file)?;
        response.added += counts.added as u64;
        response.removed += counts.removed as u64;
    }
    if request.path.is_empty() {
        response.files = call.list(&subject.files)?;
        return Ok(response);
    }
    let file = subject.files.iter().find(|file| file.path == request.path);
    let file = file.ok_or_else(|| BadMessage::new("path", format!("`{}` is not part of the diff", request.path)))?;
    call.add_file(&mut response, file, &request)?;
    Ok(response)
}

/// Reads the layout. `None` is the one of conflicts.
fn layout(request: &proto::GetDiffRequest, is_conflict: bool) -> Result<Option<RowLayout>, BadMessage> {
    use proto::DiffLayout;
    match (enumeration::<_, DiffLayout>(request.layout, "layout")?, is_conflict) {
        (DiffLayout::Unspecified | DiffLayout::Conflict, true) => Ok(None),
        (DiffLayout::Unspecified | DiffLayout::Unified, false) => Ok(Some(RowLayout::Unified)),
        (DiffLayout::SideBySide, false) => Ok(Some(RowLayout::SideBySide)),
        (DiffLayout::Conflict, false) => Err(BadMessage::new("layout", "only a conflict has this layout")),
        (_, true) => Err(BadMessage::new("layout", "a conflict has three columns")),
    }
}

impl DiffCall<'_> {
    fn list(&self, files: &[SubjectFile]) -> Result<Vec<proto::DiffFile>, Failure> {
        let (mut listed, mut compared) = (Vec::with_capacity(files.len()), 0);
        for file in files {
            let mut message = message(file);
            let size = file.before.size() + file.after.size() + file.base.as_ref().map_or(0, subject::Version::size);
            if !self.may_show(file) {
                withhold(&mut message);
            } else if compared + size > MAX_LIST_BYTES {
                message.no_diff_reason = NoDiffReason::NotCompared.into();
            } else {
                compared += size;
                match self.compare(file)? {
                    Some(comparison) => add_facts(&mut message, &comparison),
                    None => message.no_diff_reason = NoDiffReason::ContentGone.into(),
                }
            }
            let counts = self.counts(file)?;
            (message.added, message.removed) = (counts.added as u64, counts.removed as u64);
            listed.push(message);
        }
        Ok(listed)
    }

    /// Adds a file and a page of its rows.
    fn add_file(
        &self,
        response: &mut proto::GetDiffResponse,
        file: &SubjectFile,
        request: &proto::GetDiffRequest,
    ) -> Result<(), Failure> {
        let mut message = message(file);
        let counts = self.counts(file)?;
        (message.added, message.removed) = (counts.added as u64, counts.removed as u64);
        if self.may_show(file) {
            match self.compare(file)? {
                Some(comparison) => {
                    add_facts(&mut message, &comparison);
                    self.add_rows(response, &mut message, file, &comparison, request)?;
                }
                None => message.no_diff_reason = NoDiffReason::ContentGone.into(),
            }
        } else {
            withhold(&mut message);
        }
        response.files.push(message);
        Ok(())
    }

    fn add_rows(
        &self,
        response: &mut proto::GetDiffResponse,
        message: &mut proto::DiffFile,
        file: &SubjectFile,
        comparison: &CachedComparison,
        request: &proto::GetDiffRequest,
    ) -> Result<(), Failure> {
        let shows_rows = match message.no_diff_reason.as_known().unwrap_or_default() {
            NoDiffReason::Unspecified => true,
            NoDiffReason::Unchanged => request.whole_file,
            _ => false,
        };
        if !shows_rows {
            message.total_rows = Some(0);
            return Ok(());
        }
        let from = match (request.from_hunk, comparison, self.layout) {
            (None, ..) => count(request.from_row, "from_row")?,
            (Some(hunk), CachedComparison::Two(rows), Some(layout)) => match rows.hunk(hunk as usize, layout) {
                Some(hunk) => hunk.rows.start,
                None => return Err(BadMessage::new("from_hunk", format!("the file has no hunk {hunk}")).into()),
            },
            (Some(_), ..) => return Err(BadMessage::new("from_hunk", "a conflict has no hunks").into()),
        };
        let limit = if request.rows == 0 { DEFAULT_ROWS } else { request.rows.min(MAX_ROWS) };
        let range = PageRange { from, rows: limit as usize };
        let syntax = &self.host.diffs.syntax;
        match comparison {
            CachedComparison::Two(compared) => {
                let layout = self.layout.unwrap_or(RowLayout::Unified);
                let old_path =
                    if let Operation::Rename { from } = &file.operation { from.as_str() } else { &file.path };
                let sides = DiffSides::new(syntax, compared, old_path, &file.path);
                rows::add_page(response, compared, layout, range, sides);
                message.total_rows = Some(compared.row_count(layout) as u64);
            }
            CachedComparison::Three(compared) => {
                rows::add_conflict_page(response, compared, range, syntax, &file.path);
                message.total_rows = Some(compared.row_count() as u64);
            }
        }
        response.from_row = from as u64;
        Ok(())
    }

    /// `true` if the caller may read the contents of a file.
    fn may_show(&self, file: &SubjectFile) -> bool {
        self.is_person || may_read(self.host, self.peer, &file.locations).is_ok()
    }

    /// Returns the recorded counts of changed lines, or else the compared ones; none if the content is gone.
    fn counts(&self, file: &SubjectFile) -> Result<Counts, Failure> {
        if let Some(counts) = file.counts {
            return Ok(counts);
        }
        Ok(match self.compare(file)? {
            Some(CachedComparison::Two(rows)) => rows.facts().counts,
            Some(CachedComparison::Three(_)) | None => Counts::default(),
        })
    }

    /// Compares the versions of a file, or finds the earlier comparison. `None` if a content is gone.
    fn compare(&self, file: &SubjectFile) -> Result<Option<CachedComparison>, Failure> {
        let cache = &self.host.diffs;
        let compared = match &file.base {
            None => Compared::Two([file.before.hash(), file.after.hash()]),
            Some(base) => Compared::Three([base.hash(), file.before.hash(), file.after.hash()]),
        };
        if let Some(found) = cache.find(compared, self.options) {
            return Ok(Some(found));
        }
        let loaded = self.host.gate.read(|history| {
            let base = file.base.as_ref().map(|base| base.load(history)).transpose()?;
            Ok((base, file.before.load(history)?, file.after.load(history)?))
        });
        let (base, before, after): (Option<Option<Content>>, _, _) = match loaded {
            Ok(loaded) => loaded,
            Err(GateError::ContentGone(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let comparison = match base {
            None => CachedComparison::Two(Arc::new(DiffRows::new(before, after, self.options))),
            Some(base) => CachedComparison::Three(Arc::new(ConflictRows::new(base, before, after, self.options))),
        };
        self.host.work.comparisons.add(1);
        cache.add(compared, self.options, comparison.clone());
        Ok(Some(comparison))
    }
}

/// The message of a file without counts and facts.
fn message(file: &SubjectFile) -> proto::DiffFile {
    proto::DiffFile {
        path: file.path.clone(),
        label: file.label.clone(),
        operation: proto::Operation::from(&file.operation).into(),
        renamed_from: if let Operation::Rename { from } = &file.operation { Some(from.to_string()) } else { None },
        before: proto::Fingerprint::from(&file.before.fingerprint).into(),
        after: proto::Fingerprint::from(&file.after.fingerprint).into(),
        problem: file.problem.as_ref().map(proto::Problem::from).into(),
        ..Default::default()
    }
}

/// Adds the text formats and the numbers of hunks and conflicts.
fn add_facts(message: &mut proto::DiffFile, comparison: &CachedComparison) {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match comparison {
        CachedComparison::Two(rows) => {
            let facts = rows.facts();
            message.old_format = facts.old.as_ref().map(proto::TextFormat::from).into();
            message.new_format = facts.new.as_ref().map(proto::TextFormat::from).into();
            message.hunks = number(facts.hunks);
            let is_equal = facts.counts == Counts::default() && facts.old.is_some() == facts.new.is_some();
            if is_equal {
                message.no_diff_reason = NoDiffReason::Unchanged.into();
            } else if facts.is_binary {
                message.no_diff_reason = NoDiffReason::Binary.into();
            }
        }
        CachedComparison::Three(rows) => message.conflicts = number(rows.conflicts()),
    }
}

/// Removes the parts of a file's message that contain its text.
fn withhold(message: &mut proto::DiffFile) {
    message.no_diff_reason = NoDiffReason::Withheld.into();
    // The text of a conflict is part of the problem.
    message.problem = buffa::MessageField::none();
}
