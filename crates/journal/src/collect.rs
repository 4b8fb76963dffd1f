//! Giving space back: contents of old events go, and what waited is compressed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};
use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::blob::{Form, Press};
use crate::event::{from_sql, to_sql};
use crate::open::{BUSY, Journal};
use crate::trouble::DatabaseError;

/// Whose blobs are kept. Events themselves are kept always.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'r> {
    /// Events older than this, in milliseconds since the epoch, let go of their blobs.
    pub before: Option<i64>,
    /// The most bytes that all blobs may take as they are stored; beyond that the oldest events let go of theirs first.
    /// What waits for [`Journal::compact`] counts in full, so that comes first.
    pub most_bytes: Option<u64>,
    /// Events that let go of nothing: what they began is not finished.
    pub keep: &'r BTreeSet<u64>,
    /// Events that let go of their blobs now, however young they are.
    pub release: &'r BTreeSet<u64>,
    /// Blobs that stay although no event may refer to them: somebody outside the journal does.
    pub keep_blobs: &'r BTreeSet<ContentHash>,
}

/// What was given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Events that let go of their blobs.
    pub events: u64,
    /// Blobs that nobody referred to any more.
    pub blobs: u64,
    /// Their bytes as they were handed in.
    pub raw_bytes: u64,
    /// Their bytes as they were stored.
    pub stored_bytes: u64,
    /// By how much the file is smaller.
    pub file_bytes: u64,
}

/// What was compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Blobs that were looked at.
    pub blobs: u64,
    /// Their bytes before.
    pub before: u64,
    /// Their bytes now.
    pub after: u64,
    /// Blobs that still wait.
    pub waiting: u64,
}

/// Why nothing was given back. The journal is as it was.
#[derive(Debug, Error)]
pub enum MaintainError {
    /// A blob that waited is not what it is named after. It stays as it is.
    #[error("the blob {hash} in the journal `{}` is damaged", path.display())]
    DamagedBlob {
        /// Its name.
        hash: ContentHash,
        /// The journal's file.
        path: std::path::PathBuf,
    },
    /// The file does not serve.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl MaintainError {
    /// The kind that programs see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DamagedBlob { .. } => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::DamagedBlob { path, .. } => DatabaseError::damaged(path, "").hint(),
            Self::Database(error) => error.hint(),
        }
    }
}

/// Free space below this, and below a quarter of the file, is left for the next batches.
const WORTH_GIVING_BACK: u64 = 1 << 20;

impl Journal {
    /// Lets old events go of their blobs, drops those that nobody refers to, and gives the space back.
    pub fn collect(&mut self, retention: Retention<'_>) -> Result<Collected, MaintainError> {
        let path = self.reader.path().to_owned();
        let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
        let before = self.reader.disk_bytes().map_err(sqlite)?;
        let mut collected = self.drop_blobs(retention).map_err(sqlite)?;
        self.give_back().map_err(sqlite)?;
        collected.file_bytes = before.saturating_sub(self.reader.disk_bytes().map_err(sqlite)?);
        Ok(collected)
    }

    fn drop_blobs(&mut self, retention: Retention<'_>) -> rusqlite::Result<Collected> {
        let connection = &mut self.reader.connection;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut collected = Collected::default();
        let released: Vec<i64> = retention.release.iter().map(|number| to_sql(*number)).collect();
        collected.events += let_go(&transaction, &released, retention.keep)?;
        if let Some(before) = retention.before {
            // Only events that still refer to something are looked at, however long the history is.
            let sql = "SELECT event FROM (SELECT DISTINCT event FROM blob_references) JOIN events ON number = event
                WHERE time < ?1";
            let events = numbers(&transaction, sql, before)?;
            collected.events += let_go(&transaction, &events, retention.keep)?;
        }
        drop_unreferenced(&transaction, retention.keep_blobs, &mut collected)?;
        if let Some(most) = retention.most_bytes
            && let Some(last) = last_to_let_go(&transaction, most, &retention)?
        {
            let sql = "SELECT DISTINCT event FROM blob_references WHERE event <= ?1";
            let events = numbers(&transaction, sql, last)?;
            collected.events += let_go(&transaction, &events, retention.keep)?;
            drop_unreferenced(&transaction, retention.keep_blobs, &mut collected)?;
        }
        transaction.commit()?;
        Ok(collected)
    }

    fn give_back(&mut self) -> rusqlite::Result<()> {
        let connection = &self.reader.connection;
        let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let free = from_sql(free * page);
        if free < WORTH_GIVING_BACK && free < self.reader.file_bytes()? / 4 {
            return Ok(());
        }
        // It frees a page with each step.
        let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        self.shrink_log()
    }

    /// Brings what is in the write-ahead log into the main file, and empties the log. A reader in the middle of something may keep it from
    /// shrinking now; nobody waits for that, and a later checkpoint does it.
    fn shrink_log(&self) -> rusqlite::Result<()> {
        let connection = &self.reader.connection;
        connection.busy_timeout(Duration::ZERO)?;
        let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        connection.busy_timeout(BUSY)?;
        match done {
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
            done => done,
        }
    }

    /// Does what [`Journal::append`] left for later: compresses blobs that waited, until about `most_bytes` were looked at, and
    /// brings what is in the write-ahead file into the main one.
    pub fn compact(&mut self, most_bytes: u64) -> Result<Compacted, MaintainError> {
        let path = self.reader.path().to_owned();
        let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
        let mut press = Press::thorough().map_err(|error| DatabaseError::system(&path, &error))?;
        let mut compacted = Compacted::default();
        while compacted.before < most_bytes {
            // One at a time, each in its own transaction: a batch never waits for long.
            match compact_one(self, &mut press).map_err(sqlite)? {
                Step::Done => break,
                Step::Damaged(hash) => return Err(MaintainError::DamagedBlob { hash, path }),
                Step::Pressed { before, after } => {
                    compacted.blobs += 1;
                    compacted.before += before;
                    compacted.after += after;
                }
            }
        }
        self.shrink_log().map_err(sqlite)?;
        let sql = "SELECT count(*) FROM blobs WHERE form = 0";
        compacted.waiting = from_sql(self.reader.connection.query_row(sql, [], |row| row.get(0)).map_err(sqlite)?);
        Ok(compacted)
    }
}

enum Step {
    Done,
    Pressed { before: u64, after: u64 },
    Damaged(ContentHash),
}

fn compact_one(journal: &mut Journal, press: &mut Press) -> rusqlite::Result<Step> {
    let connection = &mut journal.reader.connection;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT id, hash, content FROM blobs WHERE form = 0 ORDER BY id LIMIT 1";
    let first = transaction
        .prepare_cached(sql)?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 32]>(1)?, row.get::<_, Vec<u8>>(2)?)));
    let Some((id, hash, content)) = first.optional()? else { return Ok(Step::Done) };
    let hash = ContentHash::from_bytes(hash);
    if ContentHash::of(&content) != hash {
        return Ok(Step::Damaged(hash));
    }
    let (form, pressed) = press.press(&content);
    if form == Form::Zstd {
        let sql = "UPDATE blobs SET form = ?2, stored_size = ?3, content = ?4 WHERE id = ?1";
        let size = to_sql(pressed.len() as u64);
        transaction.prepare_cached(sql)?.execute(params![id, form.code(), size, &*pressed])?;
    } else {
        transaction.prepare_cached("UPDATE blobs SET form = ?2 WHERE id = ?1")?.execute([id, form.code()])?;
    }
    transaction.commit()?;
    Ok(Step::Pressed { before: content.len() as u64, after: pressed.len() as u64 })
}

fn numbers(transaction: &Transaction<'_>, sql: &str, bound: i64) -> rusqlite::Result<Vec<i64>> {
    let mut statement = transaction.prepare_cached(sql)?;
    statement.query_map([bound], |row| row.get(0))?.collect()
}

/// Drops the references of these events, but not of those to keep.
fn let_go(transaction: &Transaction<'_>, events: &[i64], keep: &BTreeSet<u64>) -> rusqlite::Result<u64> {
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
    collected: &mut Collected,
) -> rusqlite::Result<()> {
    let sql = "SELECT id, raw_size, stored_size, hash FROM blobs INDEXED BY blobs_by_hash
        WHERE id NOT IN (SELECT blob FROM blob_references)";
    let mut statement = transaction.prepare_cached(sql)?;
    let unreferenced: Vec<(i64, i64, i64, Vec<u8>)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    let mut delete = transaction.prepare_cached("DELETE FROM blobs WHERE id = ?1")?;
    for (id, raw, stored, hash) in unreferenced {
        if is_among(&hash, keep) {
            continue;
        }
        delete.execute([id])?;
        collected.blobs += 1;
        collected.raw_bytes += from_sql(raw);
        collected.stored_bytes += from_sql(stored);
    }
    Ok(())
}

/// The last event that has to let go for the blobs to fit into `most` bytes, if any has to. A blob goes with the last event
/// that refers to it, and not at all if one to keep does.
fn last_to_let_go(
    transaction: &Transaction<'_>,
    most: u64,
    retention: &Retention<'_>,
) -> rusqlite::Result<Option<i64>> {
    let Retention { keep, keep_blobs, .. } = retention;
    let mut sizes: HashMap<i64, u64> = HashMap::new();
    let mut last_users: HashMap<i64, Option<i64>> = HashMap::new();
    let mut select = transaction.prepare("SELECT id, stored_size, hash FROM blobs INDEXED BY blobs_by_hash")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        sizes.insert(row.get(0)?, from_sql(row.get(1)?));
        if is_among(row.get_ref(2)?.as_blob()?, keep_blobs) {
            last_users.insert(row.get(0)?, None);
        }
    }
    let mut total: u64 = sizes.values().sum();
    if total <= most {
        return Ok(None);
    }
    let mut select = transaction.prepare("SELECT event, blob FROM blob_references ORDER BY event")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (event, blob): (i64, i64) = (row.get(0)?, row.get(1)?);
        let kept = keep.contains(&from_sql(event));
        let last = last_users.entry(blob).or_insert(Some(event));
        // Once kept, kept.
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
        if total <= most {
            break;
        }
        total -= size;
        last = Some(event);
    }
    Ok(last)
}

fn is_among(hash: &[u8], hashes: &BTreeSet<ContentHash>) -> bool {
    hash.try_into().is_ok_and(|bytes| hashes.contains(&ContentHash::from_bytes(bytes)))
}
