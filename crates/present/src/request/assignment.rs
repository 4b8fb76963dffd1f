//! The grammar of edits: `PATH=VALUE`, `PATH:=JSON` or `PATH`.

use sayso_wire::EditTarget;

/// An edit as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment<'t> {
    pub path: &'t str,
    /// `None` to edit the value in an editor.
    pub value: Option<&'t str>,
    /// `true` if the value is JSON even where a text is.
    pub is_json: bool,
}

impl<'t> Assignment<'t> {
    /// Splits an edit at its first `=` outside of quotes.
    pub fn parse(text: &'t str) -> Self {
        let (mut is_quoted, mut is_escaped) = (false, false);
        for (at, character) in text.char_indices() {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' if is_quoted => is_escaped = true,
                '"' => is_quoted = !is_quoted,
                '=' if !is_quoted => {
                    let (path, value) = (&text[..at], Some(&text[at + 1..]));
                    return match path.strip_suffix(':') {
                        Some(path) => Self { path, value, is_json: true },
                        None => Self { path, value, is_json: false },
                    };
                }
                _ => {}
            }
        }
        Self { path: text, value: None, is_json: false }
    }
}

/// Reads the target of an edit: a section id or a path.
pub fn edit_target(text: &str) -> EditTarget {
    text.parse().map_or_else(|_| EditTarget::Path(text.to_owned()), EditTarget::Section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_ends_at_first_equals_sign_outside_quotes() {
        let check =
            |text, path, value, is_json| assert_eq!(Assignment::parse(text), Assignment { path, value, is_json });
        check("model=a=b", "model", Some("a=b"), false);
        check("stop:=[1]", "stop", Some("[1]"), true);
        check(r#"metadata["a=\"b"].c=d"#, r#"metadata["a=\"b"].c"#, Some("d"), false);
        check("messages[0].content", "messages[0].content", None, false);
        check("text=", "text", Some(""), false);
    }
}
