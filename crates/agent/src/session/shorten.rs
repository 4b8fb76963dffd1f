//! Long output with its head and tail.

/// Maximum size of the output of a command for the model, in bytes.
pub(super) const MAX_OUTPUT_BYTES: usize = 30_000;

/// Keeps the first third and the last two thirds of a long text, cut at lines where possible. `omitted_before` counts bytes that were
/// removed earlier from the middle.
pub(super) fn head_and_tail(text: &str, limit: usize, omitted_before: u64) -> String {
    if text.len() <= limit {
        if omitted_before == 0 {
            return text.to_owned();
        }
        let middle = text.floor_char_boundary(text.len() / 2);
        return join(&text[..middle], &text[middle..], omitted_before);
    }
    let head_end = text.floor_char_boundary(limit / 3);
    let head_end = text[..head_end].rfind('\n').map_or(head_end, |at| at + 1);
    let tail_start = text.ceil_char_boundary(text.len() - limit * 2 / 3);
    let tail_start = text[tail_start..].find('\n').map_or(tail_start, |at| tail_start + at + 1);
    let omitted = (tail_start.saturating_sub(head_end)) as u64 + omitted_before;
    join(&text[..head_end], &text[tail_start.max(head_end)..], omitted)
}

fn join(head: &str, tail: &str, omitted: u64) -> String {
    let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{gap}[… {omitted} bytes omitted …]\n{tail}")
}
