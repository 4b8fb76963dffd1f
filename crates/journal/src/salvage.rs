//! Reads a damaged file row by row.
//!
//! A damaged page hides the rows after it from a scan, but not from a lookup through another tree. So the numbers of
//! all rows are gathered first, from every tree that has them and from both ends. Then each row is looked up by its
//! number.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, Params, Row, params};
use sayso_review::ContentHash;

use crate::check::read_blob_row;
use crate::database_error::DatabaseError;
use crate::event::{checksum, from_sql, to_sql};
use crate::open;
use crate::read::read_event_row;
use crate::repair::RepairReport;

/// Minimum stored size of an event. A number that would need a larger file than this one is garbage.
const MIN_EVENT_BYTES: u64 = 16;

/// Opens a damaged file for reading, even if its schema is damaged.
pub(crate) fn connect(path: &Path) -> Result<Connection, DatabaseError> {
    let connection = open::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // Lets SQLite read a truncated file as far as it goes.
    let lenient = connection.pragma_update(None, "writable_schema", true);
    lenient.map_err(|error| DatabaseError::sqlite(path, &error))?;
    Ok(connection)
}

/// Copies all readable data from `damaged` into the empty `target`.
pub(crate) fn salvage(
    damaged: &Path,
    target: &mut Connection,
    repaired: &mut RepairReport,
) -> Result<(), DatabaseError> {
    let source = connect(damaged).and_then(|source| {
        let readable = source.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        readable.map(|()| source).map_err(|error| DatabaseError::sqlite(damaged, &error))
    });
    let source = match source {
        Ok(connection) => DamagedFile { connection, read_errors: BTreeSet::new() },
        Err(error) => {
            repaired.read_errors.push(format!("cannot read any data: {error}"));
            return Ok(());
        }
    };
    let name = target.path().unwrap_or_default().to_owned();
    copy(source, target, repaired).map_err(|error| DatabaseError::sqlite(Path::new(&name), &error))
}

/// The damaged file, with the errors of reading it.
struct DamagedFile {
    connection: Connection,
    read_errors: BTreeSet<String>,
}

impl DamagedFile {
    /// Returns the rows of a query up to the first error, which is recorded.
    fn rows<T>(&mut self, what: &str, sql: &str, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
        let mut found = Vec::new();
        if let Err(error) = for_each_row(&self.connection, sql, [], |row| read(row).map(|value| found.push(value))) {
            self.read_errors.insert(format!("cannot read all {what}: {error}"));
        }
        found
    }

    /// Returns the values of a column, read from both ends.
    fn column<T: FromSql + Ord>(&mut self, what: &str, table: &str, column: &str, order: &str) -> BTreeSet<T> {
        let mut found = BTreeSet::new();
        for direction in ["ASC", "DESC"] {
            let sql = format!("SELECT {column} FROM {table} ORDER BY {order} {direction}");
            found.extend(self.rows(what, &sql, |row| row.get(0)));
        }
        found
    }
}

/// Calls `found` for each row. A row that `found` rejects does not stop the iteration.
fn for_each_row(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut found: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params)?;
    let mut rejected = None;
    while let Some(row) = rows.next()? {
        rejected = found(row).err().or(rejected);
    }
    rejected.map_or(Ok(()), Err)
}

fn copy(mut source: DamagedFile, target: &mut Connection, repaired: &mut RepairReport) -> rusqlite::Result<()> {
    let transaction = target.transaction()?;
    let used = copy_events(&mut source, &transaction, repaired)?;
    copy_blobs(&mut source, &transaction, repaired)?;
    copy_keys(&mut source, &transaction)?;
    copy_pairs(
        &mut source,
        &transaction,
        "references to blobs",
        "blob_references",
        ["event", "blob"],
        1..=to_sql(used),
    )?;
    let counters = source.column::<String>("counters", "counters", "name", "name");
    for name in counters {
        let sql = "SELECT value FROM counters WHERE name = ?1";
        let value: Option<i64> = source.connection.query_row(sql, [&name], |row| row.get(0)).unwrap_or(None);
        if let Some(value) = value {
            transaction.execute("INSERT OR IGNORE INTO counters VALUES (?1, ?2)", params![name, value])?;
        }
    }
    transaction.execute_batch(
        "DELETE FROM blob_references
             WHERE event NOT IN (SELECT number FROM events) OR blob NOT IN (SELECT id FROM blobs);
         DELETE FROM event_keys WHERE event NOT IN (SELECT number FROM events) OR key NOT IN (SELECT id FROM keys);",
    )?;
    repaired.events_lost = used.saturating_sub(repaired.events_saved);
    let lost = params![to_sql(used), to_sql(repaired.events_lost)];
    transaction.execute("INSERT INTO losses VALUES (?1, ?2)", lost)?;
    transaction.commit()?;
    repaired.read_errors.extend(source.read_errors);
    Ok(())
}

/// Copies the events with intact checksums. Returns the last number that any row mentions.
fn copy_events(source: &mut DamagedFile, target: &Connection, repaired: &mut RepairReport) -> rusqlite::Result<u64> {
    let mut numbers: BTreeSet<i64> = source.column("events", "events", "number", "number");
    numbers.extend(source.column::<i64>("keys of events", "event_keys", "event", "key"));
    numbers.extend(source.column::<i64>("references to blobs", "blob_references", "event", "event"));
    numbers.extend(source.rows::<i64>("losses", "SELECT numbers_used FROM losses", |row| row.get(0)));
    let pages: u64 = source.connection.pragma_query_value(None, "page_count", |row| row.get(0)).map_or(0, from_sql);
    let most = pages.saturating_mul(1 << 16) / MIN_EVENT_BYTES;
    let used = numbers.into_iter().rev().map(from_sql).find(|number| *number <= most).unwrap_or(0);
    let mut insert = target.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut scratch = Vec::new();
    let sql = "SELECT number, version, time, checksum, body FROM events WHERE number = ?1";
    let Ok(mut select) = source.connection.prepare(sql) else { return Ok(used) };
    for number in 1..=used {
        let read = select.query_row([to_sql(number)], |row| read_event_row(row, &mut scratch));
        let Ok((event, true)) = read else { continue };
        let checksum = checksum(number, event.version, event.time, &event.body, &mut scratch);
        insert.execute(params![to_sql(number), event.version, event.time, checksum, event.body])?;
        repaired.events_saved += 1;
    }
    Ok(used)
}

/// Copies the blobs whose bytes have their hash.
fn copy_blobs(source: &mut DamagedFile, target: &Connection, repaired: &mut RepairReport) -> rusqlite::Result<()> {
    let mut names: BTreeMap<i64, Option<ContentHash>> = BTreeMap::new();
    names.extend(
        source.column::<i64>("references to blobs", "blob_references", "blob", "event").into_iter().map(unnamed),
    );
    names.extend(source.column::<i64>("blobs", "blobs NOT INDEXED", "id", "id").into_iter().map(unnamed));
    for direction in ["ASC", "DESC"] {
        let sql = format!("SELECT id, hash FROM blobs INDEXED BY blobs_by_hash ORDER BY hash {direction}");
        let named =
            source.rows("names of blobs", &sql, |row| Ok((row.get(0)?, Some(ContentHash::from_bytes(row.get(1)?)))));
        names.extend(named);
    }
    let sql = "SELECT hash, encoding, raw_size, content FROM blobs NOT INDEXED WHERE id = ?1";
    let Ok(mut select) = source.connection.prepare(sql) else { return Ok(()) };
    let mut insert = target.prepare("INSERT INTO blobs VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut saved = HashSet::new();
    for (id, name) in names {
        let read = select.query_row([id], |row| {
            let (encoding, raw_size): (i64, i64) = (row.get("encoding")?, row.get("raw_size")?);
            Ok((read_blob_row(row)?, encoding, raw_size, row.get::<_, Vec<u8>>("content")?))
        });
        match read {
            Ok(((hash, Some(_)), encoding, raw_size, content)) if saved.insert(hash) => {
                let size = to_sql(content.len() as u64);
                insert.execute(params![id, hash.as_bytes(), encoding, raw_size, size, content])?;
                repaired.blobs_saved += 1;
            }
            // The table is readable here and has no such row, so the reference was garbage.
            Err(rusqlite::Error::QueryReturnedNoRows) if name.is_none() => {}
            other => {
                repaired.blobs_lost += 1;
                repaired.lost_blobs.extend(name.or(other.ok().map(|((hash, _), ..)| hash)));
            }
        }
    }
    Ok(())
}

fn unnamed(id: i64) -> (i64, Option<ContentHash>) {
    (id, None)
}

fn copy_keys(source: &mut DamagedFile, target: &Connection) -> rusqlite::Result<()> {
    let mut texts: BTreeMap<i64, String> = BTreeMap::new();
    // The table and the index on its texts have the same rows; one may be intact where the other is damaged.
    for from in ["keys NOT INDEXED ORDER BY id", "keys INDEXED BY sqlite_autoindex_keys_1 ORDER BY text"] {
        for direction in ["ASC", "DESC"] {
            let sql = format!("SELECT id, text FROM {from} {direction}");
            texts.extend(source.rows("keys", &sql, |row| Ok((row.get(0)?, row.get(1)?))));
        }
    }
    let mut insert = target.prepare("INSERT OR IGNORE INTO keys VALUES (?1, ?2)")?;
    for (id, text) in &texts {
        insert.execute(params![id, text])?;
    }
    copy_pairs(source, target, "keys of events", "event_keys", ["key", "event"], texts.into_keys())
}

/// Copies a table of pairs, read from both ends. If that misses rows, reads them by each value of `firsts`.
fn copy_pairs(
    source: &mut DamagedFile,
    target: &Connection,
    what: &str,
    table: &str,
    [first, second]: [&str; 2],
    firsts: impl Iterator<Item = i64>,
) -> rusqlite::Result<()> {
    let mut pairs: BTreeSet<(i64, i64)> = BTreeSet::new();
    for direction in ["ASC", "DESC"] {
        let sql = format!("SELECT {first}, {second} FROM {table} ORDER BY {first} {direction}, {second} {direction}");
        pairs.extend(source.rows(what, &sql, |row| Ok((row.get(0)?, row.get(1)?))));
    }
    let noted = source.read_errors.iter().any(|error| error.contains(what));
    if noted {
        let sql = format!("SELECT {second} FROM {table} WHERE {first} = ?1");
        for key in firsts {
            // The error is recorded already.
            let _ = for_each_row(&source.connection, &sql, [key], |row| {
                pairs.insert((key, row.get(0)?));
                Ok(())
            });
        }
    }
    let mut insert = target.prepare(&format!("INSERT OR IGNORE INTO {table} VALUES (?1, ?2)"))?;
    for (key, other) in pairs {
        insert.execute([key, other])?;
    }
    Ok(())
}
