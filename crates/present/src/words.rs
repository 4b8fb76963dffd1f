//! Counts, sizes and times in words.

/// Formats a duration in milliseconds in the largest unit that fits, such as `3 min`. A negative duration is `0 s`.
pub fn format_age(milliseconds: i64) -> String {
    let seconds = (milliseconds / 1000).max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats the time of day in UTC of milliseconds since 1970, such as `22:13:20Z`.
pub fn format_time_of_day(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Formats a size in kilobytes or, from 10 MB on, in megabytes.
pub fn format_size(bytes: u64) -> String {
    if bytes < 10_000_000 { format!("{} kB", bytes.div_ceil(1000)) } else { format!("{} MB", bytes / 1_000_000) }
}

/// Formats a count with its noun: `1 file`, `2 files`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Formats a number of repetitions: `once`, `twice`, `3 times`.
pub fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

/// Joins numbers with commas.
pub fn join_numbers(numbers: &[u64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Shortens a text to at most `max_characters`, with an ellipsis as the last one.
pub fn truncate(text: &str, max_characters: usize) -> String {
    if text.chars().count() <= max_characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max_characters.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Draws a share between 0 and 1 as a bar of `width` cells. A share above 0 fills at least one cell.
pub fn bar(share: f64, width: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
    let full = (share * width as f64).round() as usize;
    let full = if share > 0.0 { full.max(1) } else { full }.min(width);
    format!("{}{}", "█".repeat(full), "·".repeat(width - full))
}

/// Formats a share in percent. A share above 0 and below half a percent is `<1%`.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.5 { "<1%".to_owned() } else { format!("{percent:.0}%") }
}

/// The share of a part in a whole; 0 if the whole is 0.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_one_width_and_show_small_shares() {
        assert_eq!(
            [bar(0.0, 4), bar(0.001, 4), bar(0.5, 4), bar(1.0, 4), bar(7.0, 4)],
            ["····", "█···", "██··", "████", "████"]
        );
        assert_eq!([0.0, 0.001, 0.126, 1.0].map(format_percent), ["0%", "<1%", "13%", "100%"]);
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!([truncate("größer", 6), truncate("größer", 4), truncate("a", 0)], ["größer", "grö…", "…"]);
    }

    #[test]
    fn time_of_day_wraps_at_midnight() {
        assert_eq!([0, 1_700_000_000_123, -1].map(format_time_of_day), ["00:00:00Z", "22:13:20Z", "23:59:59Z"]);
    }
}
