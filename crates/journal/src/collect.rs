//! Collection of old contents, and compression of new ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};
use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::blob::{BlobCompressor, BlobEncoding};
use crate::database_error::DatabaseError;
use crate::event::{from_sql, to_sql};
use crate::open::{BUSY_TIMEOUT, Journal};

/// Rules for which blobs a collection keeps. Events are always kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'r> {
    /// Events before this time, in milliseconds since 1970, release their blobs.
    pub before: Option<i64>,
    /// Maximum stored size of all blobs, in bytes. Above it the oldest events release their blobs first. Blobs that
    /// [`Journal::compact`] has not compressed count in full, so compact first.
    pub max_bytes: Option<u64>,
    /// Events that release no blob, because their change is not over.
    pub keep: &'r BTreeSet<u64>,
    /// Events that release their blobs regardless of their age.
    pub release: &'r BTreeSet<u64>,
    /// Blobs that stay without a reference, because memory outside the journal refers to them.
    pub keep_blobs: &'r BTreeSet<ContentHash>,
}

/// Result of [`Journal::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectReport {
    /// Events that released their blobs.
    pub events: u64,
    /// Number of deleted blobs.
    pub blobs: u64,
    /// Uncompressed size of the deleted blobs.
    pub raw_bytes: u64,
    /// Stored size of the deleted blobs.
    pub stored_bytes: u64,
    /// Bytes by which the journal shrank on disk.
    pub file_bytes: u64,
}

/// Result of [`Journal::compact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Number of processed blobs.
    pub blobs: u64,
    /// Size of these blobs before, in bytes.
    pub before: u64,
    /// Size of these blobs after, in bytes.
    pub after: u64,
    /// Number of blobs that are still uncompressed.
    pub uncompressed: u64,
}

/// Reason why a collection or a compaction failed. The journal is unchanged.
#[derive(Debug, Error)]
pub enum MaintainError {
    /// An uncompressed blob does not have its hash. It is left as it is.
    #[error("the blob {hash} in the journal `{}` is damaged", path.display())]
    DamagedBlob { hash: ContentHash, path: std::path::PathBuf },
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl MaintainError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DamagedBlob { .. } => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::DamagedBlob { path, .. } => DatabaseError::damaged(path, "").hint(),
            Self::Database(error) => error.hint(),
        }
    }
}

/// Minimum free space before the file is shrunk, unless it is a quarter of the file. The next batches use less.
const MIN_FREE_BYTES: u64 = 1 << 20;

impl Journal {
    /// Releases the blobs of old events, deletes unreferenced blobs and shrinks the file.
    pub fn collect(&mut self, retention: Retention<'_>) -> Result<CollectReport, MaintainError> {
        let path = self.reader.path().to_owned();
        let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
        let before = self.reader.disk_bytes().map_err(sqlite)?;
        let mut collected = self.drop_blobs(retention).map_err(sqlite)?;
        self.shrink_file().map_err(sqlite)?;
        collected.file_bytes = before.saturating_sub(self.reader.disk_bytes().map_err(sqlite)?);
        Ok(collected)
    }

    fn drop_blobs(&mut self, retention: Retention<'_>) -> rusqlite::Result<CollectReport> {
        let connection = &mut self.reader.connection;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut collected = CollectReport::default();
        let released: Vec<i64> = retention.release.iter().map(|number| to_sql(*number)).collect();
        collected.events += release_blobs(&transaction, &released, retention.keep)?;
        if let Some(before) = retention.before {
            // The query visits only events with references, however long the history is.
            let sql = "SELECT event FROM (SELECT DISTINCT event FROM blob_references) JOIN events ON number = event
                WHERE time < ?1";
            let events = numbers(&transaction, sql, before)?;
            collected.events += release_blobs(&transaction, &events, retention.keep)?;
        }
        drop_unreferenced(&transaction, retention.keep_blobs, &mut collected)?;
        if let Some(max_bytes) = retention.max_bytes
            && let Some(last) = last_event_to_release(&transaction, max_bytes, &retention)?
        {
            let sql = "SELECT DISTINCT event FROM blob_references WHERE event <= ?1";
            let events = numbers(&transaction, sql, last)?;
            collected.events += release_blobs(&transaction, &events, retention.keep)?;
            drop_unreferenced(&transaction, retention.keep_blobs, &mut collected)?;
        }
        transaction.commit()?;
        Ok(collected)
    }

    fn shrink_file(&mut self) -> rusqlite::Result<()> {
        let connection = &self.reader.connection;
        let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let free = from_sql(free * page);
        if free < MIN_FREE_BYTES && free < self.reader.file_bytes()? / 4 {
            return Ok(());
        }
        // Each step of the statement frees one page.
        let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        self.shrink_log()
    }

    /// Checkpoints the write-ahead log and truncates it. An open read transaction prevents that; a later checkpoint
    /// then does it.
    fn shrink_log(&self) -> rusqlite::Result<()> {
        let connection = &self.reader.connection;
        connection.busy_timeout(Duration::ZERO)?;
        let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        match done {
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
            done => done,
        }
    }

    /// Compresses blobs that [`Journal::append`] stored uncompressed, until `max_bytes` were processed, and checkpoints
    /// the write-ahead log.
    pub fn compact(&mut self, max_bytes: u64) -> Result<CompactReport, MaintainError> {
        let path = self.reader.path().to_owned();
        let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
        let mut compressor = BlobCompressor::thorough().map_err(|error| DatabaseError::system(&path, &error))?;
        let mut compacted = CompactReport::default();
        while compacted.before < max_bytes {
            // One transaction per blob, so that an append never waits long.
            match compact_one(self, &mut compressor).map_err(sqlite)? {
                CompactStep::Done => break,
                CompactStep::Damaged(hash) => return Err(MaintainError::DamagedBlob { hash, path }),
                CompactStep::Compressed { before, after } => {
                    compacted.blobs += 1;
                    compacted.before += before;
                    compacted.after += after;
                }
            }
        }
        self.shrink_log().map_err(sqlite)?;
        let sql = "SELECT count(*) FROM blobs WHERE encoding = 0";
        compacted.uncompressed = from_sql(self.reader.connection.query_row(sql, [], |row| row.get(0)).map_err(sqlite)?);
        Ok(compacted)
    }
}

enum CompactStep {
    Done,
    Compressed { before: u64, after: u64 },
    Damaged(ContentHash),
}

fn compact_one(journal: &mut Journal, compressor: &mut BlobCompressor) -> rusqlite::Result<CompactStep> {
    let connection = &mut journal.reader.connection;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT id, hash, content FROM blobs WHERE encoding = 0 ORDER BY id LIMIT 1";
    let first = transaction
        .prepare_cached(sql)?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 32]>(1)?, row.get::<_, Vec<u8>>(2)?)));
    let Some((id, hash, content)) = first.optional()? else { return Ok(CompactStep::Done) };
    let hash = ContentHash::from_bytes(hash);
    if ContentHash::of(&content) != hash {
        return Ok(CompactStep::Damaged(hash));
    }
    let (encoding, compressed) = compressor.compress(&content);
    if encoding == BlobEncoding::Zstd {
        let sql = "UPDATE blobs SET encoding = ?2, stored_size = ?3, content = ?4 WHERE id = ?1";
        let size = to_sql(compressed.len() as u64);
        transaction.prepare_cached(sql)?.execute(params![id, encoding.code(), size, &*compressed])?;
    } else {
        transaction.prepare_cached("UPDATE blobs SET encoding = ?2 WHERE id = ?1")?.execute([id, encoding.code()])?;
    }
    transaction.commit()?;
    Ok(CompactStep::Compressed { before: content.len() as u64, after: compressed.len() as u64 })
}

fn numbers(transaction: &Transaction<'_>, sql: &str, bound: i64) -> rusqlite::Result<Vec<i64>> {
    let mut statement = transaction.prepare_cached(sql)?;
    statement.query_map([bound], |row| row.get(0))?.collect()
}

/// Deletes the blob references of `events`, except those to `keep`. Returns the number of events that had any.
fn release_blobs(transaction: &Transaction<'_>, events: &[i64], keep: &BTreeSet<u64>) -> rusqlite::Result<u64> {
    let mut delete = transaction.prepare_cached("DELETE FROM blob_references WHERE event = ?1")?;
    let mut count = 0;
    for event in events.iter().filter(|event| !keep.contains(&from_sql(**event))) {
        count += u64::from(delete.execute([event])? > 0);
    }
    Ok(count)
}

fn drop_unreferenced(
    transaction: &Transaction<'_>,
    keep: &BTreeSet<ContentHash>,
    collected: &mut CollectReport,
) -> rusqlite::Result<()> {
    let sql = "SELECT id, raw_size, stored_size, hash FROM blobs INDEXED BY blobs_by_hash
        WHERE id NOT IN (SELECT blob FROM blob_references)";
    let mut statement = transaction.prepare_cached(sql)?;
    let unreferenced: Vec<(i64, i64, i64, Vec<u8>)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    let mut delete = transaction.prepare_cached("DELETE FROM blobs WHERE id = ?1")?;
    for (id, raw, stored, hash) in unreferenced {
        if contains_hash(&hash, keep) {
            continue;
        }
        delete.execute([id])?;
        collected.blobs += 1;
        collected.raw_bytes += from_sql(raw);
        collected.stored_bytes += from_sql(stored);
    }
    Ok(())
}

/// Returns the last event to release so that the blobs fit into `max_bytes`; `None` if they fit already. A blob is
/// freed with the last event that refers to it, and stays if an event of `keep` does.
fn last_event_to_release(
    transaction: &Transaction<'_>,
    max_bytes: u64,
    retention: &Retention<'_>,
) -> rusqlite::Result<Option<i64>> {
    let Retention { keep, keep_blobs, .. } = retention;
    let mut sizes: HashMap<i64, u64> = HashMap::new();
    let mut last_users: HashMap<i64, Option<i64>> = HashMap::new();
    let mut select = transaction.prepare("SELECT id, stored_size, hash FROM blobs INDEXED BY blobs_by_hash")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        sizes.insert(row.get(0)?, from_sql(row.get(1)?));
        if contains_hash(row.get_ref(2)?.as_blob()?, keep_blobs) {
            last_users.insert(row.get(0)?, None);
        }
    }
    let mut total: u64 = sizes.values().sum();
    if total <= max_bytes {
        return Ok(None);
    }
    let mut select = transaction.prepare("SELECT event, blob FROM blob_references ORDER BY event")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (event, blob): (i64, i64) = (row.get(0)?, row.get(1)?);
        let kept = keep.contains(&from_sql(event));
        let last = last_users.entry(blob).or_insert(Some(event));
        // `None` marks a blob that stays.
        *last = last.filter(|_| !kept).map(|_| event);
    }
    let mut freed_by: BTreeMap<i64, u64> = BTreeMap::new();
    for (blob, last) in last_users {
        if let (Some(event), Some(size)) = (last, sizes.get(&blob)) {
            *freed_by.entry(event).or_default() += size;
        }
    }
    let mut last = None;
    for (event, size) in freed_by {
        if total <= max_bytes {
            break;
        }
        total -= size;
        last = Some(event);
    }
    Ok(last)
}

fn contains_hash(hash: &[u8], hashes: &BTreeSet<ContentHash>) -> bool {
    hash.try_into().is_ok_and(|bytes| hashes.contains(&ContentHash::from_bytes(bytes)))
}
