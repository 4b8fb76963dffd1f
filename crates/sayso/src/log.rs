//! The server's log. A thread of its own writes it, so that a slow reader blocks no request.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Queued lines. Further lines are dropped and counted.
const MAX_QUEUED_LINES: usize = 4_096;
/// Time for the last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A handle of the log. Clones write to the same log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    entries: SyncSender<Entry>,
    dropped_lines: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Answered once all lines before it are written.
    Flush(SyncSender<()>),
}

impl Log {
    /// Starts a log to a writer.
    pub(crate) fn start(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (entries, received) = sync_channel(MAX_QUEUED_LINES);
        let dropped_lines = Arc::new(AtomicU64::new(0));
        let log = Self { entries, dropped_lines: Arc::clone(&dropped_lines) };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(writer, &received, &dropped_lines))?;
        Ok(log)
    }

    /// Waits until all lines are written, at most for [`FLUSH_TIMEOUT`].
    pub(crate) fn flush_lines(&self) {
        let (done, written) = sync_channel(1);
        if self.entries.try_send(Entry::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

fn write(mut writer: impl Write, entries: &Receiver<Entry>, dropped_lines: &AtomicU64) {
    for entry in entries {
        let dropped = dropped_lines.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            // There is no other channel to report a failure of this one.
            let _ = writeln!(writer, "note: {dropped} lines of the log were dropped, because the reader is too slow");
        }
        match entry {
            Entry::Line(line) => drop(writer.write_all(&line)),
            Entry::Flush(done) => {
                let _ = writer.flush();
                let _ = done.try_send(());
            }
        }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.entries.try_send(Entry::Line(line.to_vec())).is_err() {
            self.dropped_lines.fetch_add(1, Ordering::Relaxed);
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

    struct BlockedWriter {
        released: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for BlockedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Blocks until the sender is dropped; from then on, returns at once.
            let _ = self.released.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn blocked_reader_does_not_block_the_log() {
        let (release, released) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut log = Log::start(BlockedWriter { released, written: Arc::clone(&written) }).unwrap();
        for number in 0..3 * MAX_QUEUED_LINES {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        drop(release);
        while log.entries.try_send(Entry::Line(b"last\n".to_vec())).is_err() {
            std::thread::yield_now();
        }
        let (done, ended) = sync_channel(1);
        log.entries.send(Entry::Flush(done)).unwrap();
        ended.recv().unwrap();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        assert!(text.contains("line 0\n"), "{text}");
        assert!(text.contains(&format!("line {}\n", MAX_QUEUED_LINES - 1)));
        assert!(text.contains("lines of the log were dropped"), "{text}");
        assert!(text.ends_with("last\n"));
    }
}
