//! From older versions to this one, a step at a time, all in one transaction.
//!
//! Version 1 had neither seals nor compression, and wrote keys and hashes out wherever they were referred to.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::blob::Form;
use crate::event::{from_sql, seal};
use crate::schema;

/// Brings a journal of `version` up to date, or leaves it as it was.
pub(crate) fn migrate(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in version..schema::VERSION {
        if step == 1 {
            from_1_to_2(&transaction)?;
        }
    }
    transaction.pragma_update(None, "user_version", schema::VERSION)?;
    transaction.commit()
}

fn from_1_to_2(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    const OLD: [&str; 4] = ["events", "event_keys", "blobs", "blob_references"];
    for table in OLD {
        transaction.execute_batch(&format!("ALTER TABLE {table} RENAME TO old_{table};"))?;
    }
    // The counters are the same in both.
    let tables = schema::TABLES.replace("CREATE TABLE counters", "CREATE TABLE IF NOT EXISTS counters");
    transaction.execute_batch(&tables)?;

    let mut scratch = Vec::new();
    let mut insert = transaction.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut select = transaction.prepare("SELECT number, version, time, body FROM old_events ORDER BY number")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (number, version, time): (i64, u32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let body = row.get_ref(3)?.as_blob()?;
        let seal = seal(from_sql(number), version, time, body, &mut scratch);
        insert.execute(params![number, version, time, seal, body])?;
    }
    transaction.execute(
        "INSERT INTO blobs (hash, form, raw_size, stored_size, content)
         SELECT hash, ?1, length(content), length(content), content FROM old_blobs",
        [Form::Waiting.code()],
    )?;
    transaction.execute_batch(
        "INSERT INTO keys (text) SELECT DISTINCT key FROM old_event_keys;
         INSERT INTO event_keys SELECT keys.id, old.event FROM old_event_keys AS old JOIN keys ON keys.text = old.key;
         INSERT INTO blob_references
             SELECT old.event, blobs.id FROM old_blob_references AS old JOIN blobs ON blobs.hash = old.hash;",
    )?;
    for table in OLD {
        transaction.execute_batch(&format!("DROP TABLE old_{table};"))?;
    }
    Ok(())
}
