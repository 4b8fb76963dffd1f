//! The system's allocator, with a count of what is asked of it while someone looks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Passes everything to the system; costs one load and one branch while nobody looks, for every engine alike.
pub struct Counting;

static LOOKING: AtomicBool = AtomicBool::new(false);
/// Signed, since what was allocated before may be freed while someone looks.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

fn grow(size: usize) {
    if LOOKING.load(Relaxed) {
        let live = LIVE.fetch_add(size.cast_signed(), Relaxed) + size.cast_signed();
        PEAK.fetch_max(live, Relaxed);
        ALLOCATED.fetch_add(size, Relaxed);
    }
}

fn shrink(size: usize) {
    if LOOKING.load(Relaxed) {
        LIVE.fetch_sub(size.cast_signed(), Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator as it came; counting touches atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's too. So below.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // In place where the system can; both copies at once are not counted, for any engine.
        shrink(layout.size());
        grow(new_size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// What some work asked of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The most bytes that were live at once, beyond those before.
    pub peak: usize,
    /// All bytes ever asked for.
    pub allocated: usize,
}

/// Starts counting from nothing.
pub fn start() {
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    ALLOCATED.store(0, Relaxed);
    LOOKING.store(true, Relaxed);
}

/// What was asked for since [`start`].
pub fn so_far() -> Usage {
    Usage { peak: PEAK.load(Relaxed).unsigned_abs(), allocated: ALLOCATED.load(Relaxed) }
}

/// Counts what `work` asks for; its result is still alive at the end.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    start();
    let result = work();
    LOOKING.store(false, Relaxed);
    (result, so_far())
}
