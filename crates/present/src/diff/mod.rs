//! Diffs as styled text.

mod card;
mod file;
mod highlight;
mod local;
mod render;
mod summary;

pub use card::{Escaping, render_card, render_unified};
pub use file::{FileHeading, no_rows_text};
pub use local::{Highlighting, LocalDiff};
pub use render::{DiffTitle, LongLines, RowRenderer, render_title, title_line};
pub use summary::DiffTotals;
