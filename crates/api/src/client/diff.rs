//! Calls for diffs: lists of files, pages of rows and whole hunks.

use sayso_review::ContentHash;

use super::Client;
use super::error::ClientError;
use super::responses::decode;
use crate::diff::{DiffFile, DiffFiles, DiffHunk, DiffPage, DiffSubject};
use crate::proto;

/// Rows in one call.
const PAGE_ROWS: u32 = 2_000;

/// A file of a diff.
#[derive(Clone, Copy, Debug)]
pub struct DiffQuery<'q> {
    pub subject: &'q DiffSubject,
    /// Path of the file, as the list of files has it.
    pub path: &'q str,
    /// Unchanged lines around a change. `None` is 3, for which hunk numbers of verdicts hold.
    pub context: Option<u32>,
    /// Expected hash of the compared versions. `None` is any.
    pub expected: Option<ContentHash>,
}

impl Client {
    /// Lists the files of a diff. Fails with `Stale` if `expected` is not its hash.
    pub async fn diff_files(
        &self,
        subject: &DiffSubject,
        context: Option<u32>,
        expected: Option<ContentHash>,
    ) -> Result<DiffFiles, ClientError> {
        let request = proto::GetDiffRequest {
            subject: Some(subject.into()).into(),
            context,
            preview_hash: expected.map(|hash| hash.to_string()),
            ..Default::default()
        };
        decode(self.get_diff(request).await?)
    }

    /// Returns rows of a file in one column, from a row on. Fails with `Stale` if the diff is not the expected one.
    pub async fn diff_page(&self, query: &DiffQuery<'_>, from_row: usize) -> Result<DiffPage, ClientError> {
        let request = proto::GetDiffRequest {
            subject: Some(query.subject.into()).into(),
            path: query.path.to_owned(),
            from_row: from_row as u64,
            rows: PAGE_ROWS,
            layout: proto::DiffLayout::Unified.into(),
            context: query.context,
            preview_hash: query.expected.map(|hash| hash.to_string()),
            ..Default::default()
        };
        decode(self.get_diff(request).await?)
    }

    /// Returns a file with all its hunks. Fails with `Stale` if the diff is not the expected one.
    pub async fn diff_hunks(&self, query: &DiffQuery<'_>) -> Result<(DiffFile, Vec<DiffHunk>), ClientError> {
        let mut query = *query;
        let (mut hunks, mut from_row): (Vec<DiffHunk>, usize) = (Vec::new(), 0);
        loop {
            let page = self.diff_page(&query, from_row).await?;
            query.expected = Some(page.hash);
            from_row += page.rows.len();
            let is_last = !page.has_more || page.rows.is_empty();
            for place in page.hunks {
                if hunks.last().is_none_or(|last| last.place.number < place.number) {
                    hunks.push(DiffHunk { place, rows: Vec::new() });
                }
            }
            for row in page.rows {
                // Rows of a page belong to the last hunks.
                let mut known = hunks.iter_mut().rev();
                if let Some(hunk) = known.find(|hunk| Some(hunk.place.number) == row.row.hunk) {
                    hunk.rows.push(row);
                }
            }
            if is_last {
                return Ok((page.file, hunks));
            }
        }
    }
}
