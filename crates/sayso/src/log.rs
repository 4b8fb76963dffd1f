//! The server's log: written by a thread of its own, so that whoever reads it slowly, or not at all, holds up nobody.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be written at most. What comes beyond is left out, and counted.
const WAITING: usize = 4_096;
/// How long what was said last is waited for.
const LAST: Duration = Duration::from_secs(1);

/// A log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    entries: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Everything before it is written.
    End(SyncSender<()>),
}

impl Log {
    /// A log that ends up in a writer.
    pub(crate) fn to(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (entries, received) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Self { entries, lost: Arc::clone(&lost) };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(writer, &received, &lost))?;
        Ok(log)
    }

    /// Waits until all is written, but not for somebody who does not read.
    pub(crate) fn end(&self) {
        let (done, written) = sync_channel(1);
        if self.entries.try_send(Entry::End(done)).is_ok() {
            let _ = written.recv_timeout(LAST);
        }
    }
}

fn write(mut writer: impl Write, entries: &Receiver<Entry>, lost: &AtomicU64) {
    for entry in entries {
        let left_out = lost.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            // A log that cannot be written has nobody to tell.
            let _ = writeln!(writer, "note: {left_out} lines of the log were left out, since nobody read them");
        }
        match entry {
            Entry::Line(line) => drop(writer.write_all(&line)),
            Entry::End(done) => {
                let _ = writer.flush();
                let _ = done.try_send(());
            }
        }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.entries.try_send(Entry::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    struct Slow {
        released: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Blocks until somebody reads; from then on, never again.
            let _ = self.released.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_nobody_reads_holds_up_nobody() {
        let (release, released) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut log = Log::to(Slow { released, written: Arc::clone(&written) }).unwrap();
        for number in 0..3 * WAITING {
            // In one piece, as lines of a log come.
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        drop(release);
        // Sent by this thread, so that there is room for it once some were written.
        while log.entries.try_send(Entry::Line(b"last\n".to_vec())).is_err() {
            std::thread::yield_now();
        }
        let (done, ended) = sync_channel(1);
        log.entries.send(Entry::End(done)).unwrap();
        ended.recv().unwrap();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        // What was left out may be said before, if nobody was there to write yet.
        assert!(text.contains("line 0\n"), "{text}");
        assert!(text.contains(&format!("line {}\n", WAITING - 1)));
        assert!(text.contains("lines of the log were left out"), "{text}");
        assert!(text.ends_with("last\n"));
    }
}
