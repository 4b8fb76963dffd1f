//! Diffs as styled text.

mod card;
mod highlight;
mod render;
mod summary;

pub use card::{Escaping, render_card, render_unified};
pub use render::{DiffRenderer, DiffTitle, Highlighting, LongLines, title_line};
pub use summary::DiffTotals;
