//! How wide things are drawn.

/// Where nobody says how wide the window is.
const USUAL: usize = 100;
/// Nobody reads what is narrower.
const LEAST: usize = 20;

/// The width of the window, or of a usual one.
pub(super) fn window() -> usize {
    known().unwrap_or(USUAL)
}

/// The width of the window, if there is one: what COLUMNS says, or the terminal.
pub(super) fn known() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let asked = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    said.or_else(asked).filter(|width| *width > 0).map(|width| width.max(LEAST))
}

/// A text of at most so many characters, with a sign where something is missing.
pub(super) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A bar of a fixed width for a share of a whole. Whatever is there at all shows.
pub(super) fn bar(share: f64, width: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few cells"
    )]
    let full = (share * width as f64).round() as usize;
    let full = if share > 0.0 { full.max(1) } else { full }.min(width);
    format!("{}{}", "█".repeat(full), "·".repeat(width - full))
}

/// A share in percent; what is there, but less than half a percent, says so.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.5 { "<1%".to_owned() } else { format!("{percent:.0}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_one_width_and_show_what_is_there() {
        assert_eq!(
            [bar(0.0, 4), bar(0.001, 4), bar(0.5, 4), bar(1.0, 4), bar(7.0, 4)],
            ["····", "█···", "██··", "████", "████"]
        );
        assert_eq!([percent(0.0), percent(0.001), percent(0.126), percent(1.0)], ["0%", "<1%", "13%", "100%"]);
    }

    #[test]
    fn what_is_too_long_says_that_it_is_cut() {
        assert_eq!([short("größer", 6), short("größer", 4), short("a", 0)], ["größer", "grö…", "…"]);
    }
}
