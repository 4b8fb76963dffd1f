//! Reading a damaged file row by row.
//!
//! A page that is broken hides the rows behind it from a scan, but not from a look-up that goes another way. So the numbers
//! of all rows are gathered first, from every tree that mentions them and from both ends, and then each is looked up alone.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, Params, Row, params};
use sayso_review::ContentHash;

use crate::check::blob_of;
use crate::event::{from_sql, seal, to_sql};
use crate::open;
use crate::read::event_of;
use crate::repair::Repaired;
use crate::trouble::DatabaseError;

/// No event takes less room than this, so a number beyond the file's size by it is garbage.
const LEAST_EVENT: u64 = 16;

/// Opens a damaged file without writing to it, and with what SQLite would refuse at first sight.
pub(crate) fn connect(path: &Path) -> Result<Connection, DatabaseError> {
    let connection = open::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // A file that is cut off is read as far as it goes.
    let lenient = connection.pragma_update(None, "writable_schema", true);
    lenient.map_err(|error| DatabaseError::sqlite(path, &error))?;
    Ok(connection)
}

/// Copies everything that can be read from `damaged` into the empty `target`.
pub(crate) fn salvage(damaged: &Path, target: &mut Connection, repaired: &mut Repaired) -> Result<(), DatabaseError> {
    let source = connect(damaged).and_then(|source| {
        let readable = source.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        readable.map(|()| source).map_err(|error| DatabaseError::sqlite(damaged, &error))
    });
    let source = match source {
        Ok(connection) => Source { connection, troubles: BTreeSet::new() },
        Err(error) => {
            repaired.troubles.push(format!("nothing could be read: {error}"));
            return Ok(());
        }
    };
    let name = target.path().unwrap_or_default().to_owned();
    copy(source, target, repaired).map_err(|error| DatabaseError::sqlite(Path::new(&name), &error))
}

/// The damaged file. Whatever fails on it is noted and gone around.
struct Source {
    connection: Connection,
    troubles: BTreeSet<String>,
}

impl Source {
    /// The rows of a query, up to where it fails.
    fn rows<T>(&mut self, what: &str, sql: &str, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
        let mut found = Vec::new();
        if let Err(error) = each(&self.connection, sql, [], |row| read(row).map(|value| found.push(value))) {
            self.troubles.insert(format!("not all {what} could be read: {error}"));
        }
        found
    }

    /// The values of a column, from both ends.
    fn column<T: FromSql + Ord>(&mut self, what: &str, table: &str, column: &str, order: &str) -> BTreeSet<T> {
        let mut found = BTreeSet::new();
        for direction in ["ASC", "DESC"] {
            let sql = format!("SELECT {column} FROM {table} ORDER BY {order} {direction}");
            found.extend(self.rows(what, &sql, |row| row.get(0)));
        }
        found
    }
}

/// Calls `found` for each row, and goes on over rows that it cannot make sense of.
fn each(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut found: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params)?;
    let mut senseless = None;
    while let Some(row) = rows.next()? {
        senseless = found(row).err().or(senseless);
    }
    senseless.map_or(Ok(()), Err)
}

fn copy(mut source: Source, target: &mut Connection, repaired: &mut Repaired) -> rusqlite::Result<()> {
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
    repaired.troubles.extend(source.troubles);
    Ok(())
}

/// Copies the events whose seals are whole, and says what the last number was that was ever given.
fn copy_events(source: &mut Source, target: &Connection, repaired: &mut Repaired) -> rusqlite::Result<u64> {
    let mut numbers: BTreeSet<i64> = source.column("events", "events", "number", "number");
    numbers.extend(source.column::<i64>("keys of events", "event_keys", "event", "key"));
    numbers.extend(source.column::<i64>("references to blobs", "blob_references", "event", "event"));
    numbers.extend(source.rows::<i64>("losses", "SELECT numbers_used FROM losses", |row| row.get(0)));
    let pages: u64 = source.connection.pragma_query_value(None, "page_count", |row| row.get(0)).map_or(0, from_sql);
    let most = pages.saturating_mul(1 << 16) / LEAST_EVENT;
    let used = numbers.into_iter().rev().map(from_sql).find(|number| *number <= most).unwrap_or(0);
    let mut insert = target.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut scratch = Vec::new();
    let sql = "SELECT number, version, time, seal, body FROM events WHERE number = ?1";
    let Ok(mut select) = source.connection.prepare(sql) else { return Ok(used) };
    for number in 1..=used {
        let read = select.query_row([to_sql(number)], |row| event_of(row, &mut scratch));
        let Ok((event, true)) = read else { continue };
        let seal = seal(number, event.version, event.time, &event.body, &mut scratch);
        insert.execute(params![to_sql(number), event.version, event.time, seal, event.body])?;
        repaired.events_saved += 1;
    }
    Ok(used)
}

/// Copies the blobs that are what they are named after.
fn copy_blobs(source: &mut Source, target: &Connection, repaired: &mut Repaired) -> rusqlite::Result<()> {
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
    let sql = "SELECT hash, form, raw_size, content FROM blobs NOT INDEXED WHERE id = ?1";
    let Ok(mut select) = source.connection.prepare(sql) else { return Ok(()) };
    let mut insert = target.prepare("INSERT INTO blobs VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut saved = HashSet::new();
    for (id, name) in names {
        let read = select.query_row([id], |row| {
            let (form, raw_size): (i64, i64) = (row.get("form")?, row.get("raw_size")?);
            Ok((blob_of(row)?, form, raw_size, row.get::<_, Vec<u8>>("content")?))
        });
        match read {
            Ok(((hash, Some(_)), form, raw_size, content)) if saved.insert(hash) => {
                let size = to_sql(content.len() as u64);
                insert.execute(params![id, hash.as_bytes(), form, raw_size, size, content])?;
                repaired.blobs_saved += 1;
            }
            // Only a reference said so, and the table, which can be read there, says no: it was the reference that is garbage.
            Err(rusqlite::Error::QueryReturnedNoRows) if name.is_none() => {}
            other => {
                repaired.blobs_lost += 1;
                repaired.lost.extend(name.or(other.ok().map(|((hash, _), ..)| hash)));
            }
        }
    }
    Ok(())
}

fn unnamed(id: i64) -> (i64, Option<ContentHash>) {
    (id, None)
}

fn copy_keys(source: &mut Source, target: &Connection) -> rusqlite::Result<()> {
    let mut texts: BTreeMap<i64, String> = BTreeMap::new();
    // The table and the index over its texts say the same; where one is broken, the other may not be.
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

/// Copies a table of pairs: from both ends, and if that does not reach everything, by each first half alone.
fn copy_pairs(
    source: &mut Source,
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
    let noted = source.troubles.iter().any(|trouble| trouble.contains(what));
    if noted {
        let sql = format!("SELECT {second} FROM {table} WHERE {first} = ?1");
        for key in firsts {
            // What fails here was noted above.
            let _ = each(&source.connection, &sql, [key], |row| {
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
