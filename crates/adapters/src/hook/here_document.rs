//! Shell scripts that consist of one patch.
//!
//! Codex inspects a script before it starts a shell. If the script only passes a here-document to `apply_patch`, possibly after
//! a `cd`, Codex applies the patch itself, as if its tool had been called.

/// A script that consists of one patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HereDocument<'s> {
    /// Argument of the leading `cd`.
    pub(super) directory: Option<&'s str>,
    pub(super) patch: &'s str,
    /// `true` without a `cd`, with the command `apply_patch` and a quoted delimiter, as [`script`] writes it.
    pub(super) is_plain: bool,
}

/// Parses a script that consists of one patch. Returns `None` if the script does or may do more than that.
pub(super) fn read(script: &str) -> Option<HereDocument<'_>> {
    let (first, rest) = script.trim_start().split_once('\n')?;
    let (directory, command) = match first.split_once("&&") {
        Some((change, command)) => (Some(word(change.trim().strip_prefix("cd ")?.trim())?), command.trim()),
        None => (None, first.trim()),
    };
    let program = ["apply_patch", "applypatch"].into_iter().find(|program| command.starts_with(program))?;
    let delimiter = command[program.len()..].trim_start().strip_prefix("<<")?.trim();
    let name = ['\'', '"'].into_iter().find_map(|quote| delimiter.strip_prefix(quote)?.strip_suffix(quote));
    let bare = name.unwrap_or(delimiter);
    let is_name =
        !bare.is_empty() && bare.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_name {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.strip_suffix('\n').unwrap_or(line) == bare {
            let is_all = rest[end + line.len()..].trim().is_empty();
            let is_plain = directory.is_none() && program == "apply_patch" && name.is_some();
            return is_all.then_some(HereDocument { directory, patch: &rest[..end], is_plain });
        }
        end += line.len();
    }
    None
}

/// Returns the script that passes a patch to `apply_patch`. Each line of a patch starts with a sign, so no line equals the
/// delimiter.
pub(super) fn script(patch: &str) -> String {
    format!("apply_patch <<'PATCH'\n{patch}PATCH\n")
}

/// Returns the value of a shell word that needs no expansion, and `None` for any other word.
fn word(text: &str) -> Option<&str> {
    let plain = |text: &str| {
        let means_itself = |character: char| character.is_alphanumeric() || "._-/+,@".contains(character);
        !text.is_empty() && !text.starts_with('-') && text.chars().all(means_itself)
    };
    let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    match quoted {
        Some(inner) if !inner.is_empty() && !inner.starts_with('-') && !inner.contains('\'') => Some(inner),
        Some(_) => None,
        None => plain(text).then_some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: a\n+EOF x\n*** End Patch\n";

    #[test]
    fn script_of_one_patch_is_parsed() {
        for (script, directory, is_plain) in [
            (format!("apply_patch <<'EOF'\n{PATCH}EOF\n"), None, true),
            (format!("apply_patch << \"EOF\"\n{PATCH}EOF"), None, true),
            (format!("\n applypatch <<EOF\n{PATCH}EOF\n\n"), None, false),
            (format!("cd sub/x && apply_patch <<'EOF'\n{PATCH}EOF\n"), Some("sub/x"), false),
            (format!("cd 'a b' && apply_patch <<'EOF'\n{PATCH}EOF\n"), Some("a b"), false),
        ] {
            assert_eq!(read(&script), Some(HereDocument { directory, patch: PATCH, is_plain }), "{script}");
        }
        assert_eq!(read(&script(PATCH)), Some(HereDocument { directory: None, patch: PATCH, is_plain: true }));
    }

    #[test]
    fn script_with_other_commands_is_rejected() {
        for script in [
            format!("apply_patch <<'EOF'\n{PATCH}EOF\nrm x\n"),
            format!("apply_patch <<'EOF' && rm x\n{PATCH}EOF\n"),
            format!("rm x; apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("rm x && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd $X && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd a && cd b && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd -P && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("apply_patch <<'EOF'\n{PATCH}"),
            format!("apply_patch_x <<'EOF'\n{PATCH}EOF\n"),
            "apply_patch".to_owned(),
            String::new(),
        ] {
            assert_eq!(read(&script), None, "{script}");
        }
    }
}
