//! Correctness and length of unified diffs. Checked before timing, because a fast but wrong diff is useless.

use anyhow::{Result, bail};
use sayso_diff::{Patch, Placement, Selection};

/// Checks that `text` applied strictly to `old` gives exactly `new`.
pub fn check(text: &[u8], old: &[u8], new: &[u8]) -> Result<()> {
    let patch = Patch::parse(text);
    if let Some(problem) = patch.problems.first() {
        bail!("{problem}");
    }
    let [file] = patch.files.as_slice() else { bail!("it has {} files instead of one", patch.files.len()) };
    match file.apply(old.into(), &Selection::All, Placement::Strict) {
        Ok(patched) if patched.content.as_deref() == Some(new) => Ok(()),
        Ok(_) => bail!("it applies, but gives other bytes"),
        Err(rejections) => match rejections.first() {
            Some(rejection) => bail!("{rejection}"),
            None => bail!("it is rejected without a reason"),
        },
    }
}

/// Counts the added and removed lines of a unified text of one or more files.
///
/// Hunks are followed by the counts in their headers, so that a removed line `-- x` is not taken for a file header.
pub fn changed_lines(text: &[u8]) -> usize {
    let (mut old_left, mut new_left, mut changed) = (0, 0, 0);
    for line in text.split(|&byte| byte == b'\n') {
        if old_left == 0 && new_left == 0 {
            if let Some(counts) = line.strip_prefix(b"@@ -").and_then(hunk_counts) {
                (old_left, new_left) = counts;
            }
            continue;
        }
        match line.first() {
            Some(b'-') => {
                old_left = old_left.saturating_sub(1);
                changed += 1;
            }
            Some(b'+') => {
                new_left = new_left.saturating_sub(1);
                changed += 1;
            }
            Some(b'\\') => {}
            _ => {
                old_left = old_left.saturating_sub(1);
                new_left = new_left.saturating_sub(1);
            }
        }
    }
    changed
}

/// The two counts of a hunk header after its `@@ -`.
fn hunk_counts(header: &[u8]) -> Option<(usize, usize)> {
    let header = std::str::from_utf8(&header[..header.iter().position(|&byte| byte == b'@')?]).ok()?;
    let (old, new) = header.trim().split_once(" +")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some((count(old)?, count(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_follows_the_headers() {
        assert_eq!(changed_lines(b"--- a\n+++ b\n@@ -1,2 +1 @@\n--- x\n y\n\\ No newline at end of file\n"), 1);
        assert_eq!(changed_lines(b"@@ -0,0 +1,2 @@\n+a\n+b\n--- c\n+++ d\n@@ -1 +1 @@ f()\n-a\n+b\n"), 4);
        assert_eq!(changed_lines(b""), 0);
    }

    #[test]
    fn check_refuses_what_gives_other_bytes() {
        let text = b"--- old\n+++ new\n@@ -1 +1 @@\n-a\n+b\n";
        assert!(check(text, b"a\n", b"b\n").is_ok());
        assert!(check(text, b"a\n", b"c\n").is_err());
        assert!(check(text, b"x\n", b"b\n").is_err());
    }
}
