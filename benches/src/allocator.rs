//! The system's allocator with counters that can be switched on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Forwards all calls to the system. With the counters off it costs one load and one branch, for every engine alike.
pub struct Counting;

static LOOKING: AtomicBool = AtomicBool::new(false);
/// Signed, because memory from before the start of counting may be freed.
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

/// Allocations of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Peak of live bytes, beyond the live bytes at the start.
    pub peak: usize,
    /// Sum of all requested bytes.
    pub allocated: usize,
}

/// Resets and starts the counters.
pub fn start() {
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    ALLOCATED.store(0, Relaxed);
    LOOKING.store(true, Relaxed);
}

/// Stops counting and returns the allocations since [`start`].
pub fn so_far() -> Usage {
    Usage { peak: PEAK.load(Relaxed).unsigned_abs(), allocated: ALLOCATED.load(Relaxed) }
}

/// Counts the allocations of `work`, including its result.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    start();
    let result = work();
    LOOKING.store(false, Relaxed);
    (result, so_far())
}
