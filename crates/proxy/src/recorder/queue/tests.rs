//! Batches and deferred jobs.

#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn empty_build() -> Message {
    Message::Build { request: 1, build: Box::new(Vec::new), budget: None }
}

/// A job that is never complete and defers itself again on every run.
struct Endless(Weak<Queue>);

impl Deferred for Endless {
    fn request(&self) -> RequestId {
        1
    }

    fn size(&self) -> usize {
        MAX_DEFERRED_BYTES
    }

    fn run(&self) {
        if let Some(queue) = self.0.upgrade() {
            assert!(queue.defer(Arc::new(Self(Weak::clone(&self.0)))));
        }
    }
}

#[test]
fn endless_deferred_job_delays_no_entry() {
    for flush in [Flush::Batched, Flush::Immediate] {
        let queue = Arc::new(Queue::default());
        assert!(queue.defer(Arc::new(Endless(Arc::downgrade(&queue)))));
        assert!(!queue.defer(Arc::new(Endless(Weak::new()))), "a second job exceeds the limit");
        queue.push(empty_build(), flush);
        assert_eq!(queue.next().map(|messages| messages.len()), Some(1));
    }
}

/// A job whose drop pushes an entry, like the body of an aborted request.
struct PushOnDrop(Weak<Queue>);

impl Deferred for PushOnDrop {
    fn request(&self) -> RequestId {
        1
    }

    fn size(&self) -> usize {
        1
    }

    fn run(&self) {}
}

impl Drop for PushOnDrop {
    fn drop(&mut self) {
        self.0.upgrade().unwrap().push(empty_build(), Flush::Batched);
    }
}

#[test]
fn deferred_job_drop_can_push() {
    let queue = Arc::new(Queue::default());
    for _ in 0..3 {
        assert!(queue.defer(Arc::new(PushOnDrop(Arc::downgrade(&queue)))));
    }
    assert_eq!(queue.next().map(|messages| messages.len()), Some(3));
}

/// A job of a given size that counts its runs.
struct Counted(usize, AtomicUsize);

impl Deferred for Counted {
    fn request(&self) -> RequestId {
        1
    }

    fn size(&self) -> usize {
        self.0
    }

    fn run(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn deferred_jobs_beyond_limit_are_rejected() {
    let queue = Queue::default();
    let sizes = [usize::MAX, 1, MAX_DEFERRED_BYTES - 1, 1, 1];
    let jobs = sizes.map(|size| Arc::new(Counted(size, AtomicUsize::new(0))));
    let defer = |index: usize| {
        let job: Arc<Counted> = Arc::clone(&jobs[index]);
        queue.defer(job)
    };
    let run = || {
        queue.push(empty_build(), Flush::Immediate);
        assert!(queue.next().is_some());
    };
    assert!(defer(0), "a single job fits whatever its size");
    assert!(!defer(1));
    run();
    assert!(defer(2) && defer(3) && !defer(4));
    run();
    let runs = jobs.each_ref().map(|job| job.1.load(Ordering::Relaxed));
    assert_eq!(runs, [1, 0, 1, 1, 0]);
}

#[test]
fn drain_below_backlog_wakes_no_thread() {
    let queue = Queue::default();
    for (size, drains) in [(BACKLOG_BYTES - 1, false), (1, true)] {
        assert!(queue.defer(Arc::new(Counted(size, AtomicUsize::new(0)))));
        queue.drain_now();
        assert_eq!(queue.lock().drain, drains);
    }
}
