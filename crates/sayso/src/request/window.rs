//! The width of the window.

/// Columns of an unknown window.
const DEFAULT_COLUMNS: usize = 100;
/// Columns of the narrowest window that output adapts to.
const MIN_COLUMNS: usize = 20;

/// Returns the width of the window in columns, or a usual one.
pub(super) fn width() -> usize {
    known_width().unwrap_or(DEFAULT_COLUMNS)
}

/// Returns the width by COLUMNS or by the terminal. `None` without a window.
pub(super) fn known_width() -> Option<usize> {
    let variable = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    variable.or_else(terminal).filter(|width| *width > 0).map(|width| width.max(MIN_COLUMNS))
}
