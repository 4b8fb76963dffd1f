//! One writer, any number of readers, and kills at any moment.

use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sayso_journal::{Batch, Journal, NewEvent, OpenJournalError, Options, Reader};
use sayso_review::ContentHash;

use super::{AT_ONCE, all, event, noise, open};

/// Runs an ignored test of this binary, by its full name, in a child process.
pub(crate) fn child(test: &str, folder: &Path, variables: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env("JOURNAL_FOLDER", folder)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the output of a child that succeeded.
pub(crate) fn finish(mut child: Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    text
}

/// Reads until a line contains `text`.
fn wait_for(output: &mut impl std::io::BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended without saying `{text}`");
    }
}

#[test]
fn second_writer_gets_holder_process_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = child("writers::hold_lock_in_child_process", folder.path(), &[]);
    wait_for(&mut BufReader::new(child.stdout.take().unwrap()), "held");
    let error = Journal::open(folder.path(), Options { wait: Duration::from_millis(25) }).unwrap_err();
    assert!(matches!(error, OpenJournalError::Locked { holder: Some(id), .. } if id == child.id()));
    let start = format!("another sayso, process {}, is writing to this journal: `", child.id());
    assert!(error.to_string().starts_with(&start), "{error}");

    let reader = Reader::open(folder.path()).unwrap();
    assert_eq!(all(&reader), [(1, "from the child".to_owned())], "reading goes on meanwhile");

    child.kill().unwrap();
    child.wait().unwrap();
    let mut journal = open(folder.path());
    let batch = Batch { events: vec![event("from the parent", &[])], ..Batch::default() };
    assert_eq!(journal.append(&batch).unwrap(), 2..3);
    assert_eq!(all(&reader).len(), 2, "a reader that was open all the while sees it");
}

#[test]
#[ignore = "run by `second_writer_gets_holder_process_number` in a process of its own"]
fn hold_lock_in_child_process() {
    let Some(folder) = std::env::var_os("JOURNAL_FOLDER") else { return };
    let mut journal = open(Path::new(&folder));
    journal.append(&Batch { events: vec![event("from the child", &[])], ..Batch::default() }).unwrap();
    println!("held");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn second_writer_in_same_process_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path());
    let error = Journal::open(folder.path(), AT_ONCE).unwrap_err();
    assert!(matches!(error, OpenJournalError::Locked { holder: Some(id), .. } if id == std::process::id()));
    drop(journal);
    drop(open(folder.path()));
}

/// Between fork and exec a child has its parent's handles, so the lock must be released explicitly.
#[test]
fn regression_forked_child_does_not_hold_lock() {
    let folder = tempfile::tempdir().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        let opened: Vec<_> = (0..100).map(|_| Journal::open(folder.path(), AT_ONCE).map(drop)).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    });
}

#[test]
fn waiting_writer_acquires_lock() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Journal::open(folder.path(), Options { wait: Duration::from_mins(1) }).map(drop));
        drop(journal);
        waiting.join().unwrap().unwrap();
    });
}

/// Size of a batch of [`append_in_child_process`]: several pages.
fn batch_contents(batch: u64) -> Vec<Vec<u8>> {
    (0..4).map(|place| noise(batch * 4 + place, 20_000)).collect()
}

#[test]
fn killed_writer_leaves_whole_batches() {
    for announced in [1, 7, 30] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = child("writers::append_in_child_process", folder.path(), &[]);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        wait_for(&mut output, &format!("appended {announced}."));
        child.kill().unwrap();
        child.wait().unwrap();

        let journal = open(folder.path());
        let reader = journal.reader();
        let last = reader.last_number().unwrap();
        assert_eq!(last % 5, 0, "batches of five");
        assert!(last / 5 >= announced);
        assert_eq!(reader.counter("batch").unwrap(), last / 5);
        let events = all(reader);
        assert!(events.iter().zip(0..).all(|((_, body), place)| *body == format!("batch {}", place / 5)));
        for batch in 0..last / 5 {
            for content in batch_contents(batch) {
                assert!(reader.blob(ContentHash::of(&content)).unwrap().is_some());
            }
        }
        let checked = reader.check().unwrap();
        assert_eq!(checked.problems, []);
        assert_eq!(checked.blobs, last / 5 * 4, "and no blob of a batch that did not make it");
    }
}

#[test]
#[ignore = "run by `killed_writer_leaves_whole_batches` in a process of its own"]
fn append_in_child_process() {
    let Some(folder) = std::env::var_os("JOURNAL_FOLDER") else { return };
    let mut journal = open(Path::new(&folder));
    for batch in 0.. {
        let contents = batch_contents(batch);
        let blobs: Vec<_> = contents.iter().map(|content| (ContentHash::of(content), content.as_slice())).collect();
        let hashes = blobs.iter().map(|(hash, _)| *hash).collect();
        let events = vec![NewEvent { blobs: hashes, ..event(&format!("batch {batch}"), &["batch"]) }; 5];
        journal.append(&Batch { blobs, events, counters: vec![("batch", batch + 1)] }).unwrap();
        println!("appended {}.", batch + 1);
    }
}

#[test]
fn readers_see_whole_batches_while_a_writer_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let reader = Reader::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut seen = 0;
            while seen < 500 {
                let last = reader.last_number().unwrap();
                assert_eq!(last % 5, 0);
                assert!(last >= seen);
                assert!(reader.events(0, usize::MAX).unwrap().len() as u64 >= last);
                seen = last;
            }
        });
        for _ in 0..100 {
            journal.append(&Batch { events: vec![event("it", &["key"]); 5], ..Batch::default() }).unwrap();
        }
        reading.join().unwrap();
    });
}

#[test]
fn append_on_full_disk_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // The shell ignores the signal, and its children inherit that, so that a write beyond the limit fails as on a full
    // disk.
    let limited = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" --exact writers::overflow_in_child_process --ignored \
        --nocapture";
    let child = Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .env("JOURNAL_FOLDER", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(finish(child).contains("refused"));
    let journal = open(folder.path());
    assert_eq!(all(journal.reader()), [(1, "before".to_owned()), (2, "after".to_owned())]);
    let checked = journal.reader().check().unwrap();
    assert_eq!((checked.blobs, checked.problems), (0, Vec::new()));
}

#[test]
#[ignore = "run by `append_on_full_disk_changes_nothing` in a process of its own"]
fn overflow_in_child_process() {
    let Some(folder) = std::env::var_os("JOURNAL_FOLDER") else { return };
    let mut journal = open(Path::new(&folder));
    let small = |name| Batch { events: vec![event(name, &["key"])], ..Batch::default() };
    journal.append(&small("before")).unwrap();
    let content = noise(1, 40 << 20);
    let blobs = vec![(ContentHash::of(&content), content.as_slice())];
    let error = journal.append(&Batch { blobs, ..small("too much") }).unwrap_err();
    assert!(error.to_string().starts_with("the journal `"), "{error}");
    assert_eq!(journal.append(&small("after")).unwrap(), 2..3);
    println!("refused: {error}");
}
