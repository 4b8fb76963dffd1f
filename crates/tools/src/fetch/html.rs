//! Plain text of an HTML page, for a model. Lenient: any input gives some text, in linear time.

/// Elements whose content is not text of the page.
const HIDDEN: [&str; 6] = ["script", "style", "noscript", "template", "svg", "head"];
/// Elements that start a new line.
const BLOCKS: [&str; 30] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "section",
    "table",
    "title",
    "tr",
    "ul",
];

/// Maximum length of a tag. It bounds the search for its end.
const MAX_TAG_BYTES: usize = 16 * 1024;

/// Returns the text of a page: one line for each block, `#` before headings, `-` before list items, URLs after links.
pub(super) fn to_text(html: &str) -> String {
    let mut page = PageText::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.text(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let Some(end) = tag_end(rest) else {
            page.text("<");
            rest = &rest[1..];
            continue;
        };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        let name = name_of(tag);
        if !tag.starts_with('/') && HIDDEN.contains(&name.as_str()) && !tag.ends_with('/') {
            rest = after_element(rest, &name, &mut page);
            continue;
        }
        page.tag(tag, &name);
    }
    page.text(rest);
    page.finish()
}

/// Returns the position of the `>` that ends a tag; `None` if this is not a tag.
fn tag_end(text: &str) -> Option<usize> {
    let second = text[1..].chars().next()?;
    if !(second.is_ascii_alphabetic() || matches!(second, '/' | '!' | '?')) {
        return None;
    }
    let text = &text[..text.floor_char_boundary(MAX_TAG_BYTES.min(text.len()))];
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            _ => {}
        }
    }
    // A quote without an end: the first `>` ends the tag.
    text.find('>')
}

fn name_of(tag: &str) -> String {
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    tag.chars().take_while(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Skips the content of an element. The title of a page is kept.
fn after_element<'t>(text: &'t str, name: &str, page: &mut PageText) -> &'t str {
    let Some(end) = find_tag(text, &format!("</{name}")) else { return "" };
    if name == "head"
        && let Some(start) = find_tag(&text[..end], "<title")
        && let Some(open) = text[start..end].find('>')
        && let Some(close) = find_tag(&text[start..end], "</title")
        && open < close
    {
        page.line_start("# ");
        page.text(&text[start + open + 1..start + close]);
        page.break_line();
    }
    text[end..].find('>').map_or("", |close| &text[end + close + 1..])
}

/// Finds the start of a tag in any case.
fn find_tag(text: &str, start: &str) -> Option<usize> {
    let is_start = |at: &usize| {
        text.as_bytes()[*at..].get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
    };
    text.match_indices('<').map(|(at, _)| at).find(is_start)
}

#[derive(Default)]
struct PageText {
    text: String,
    /// Text of the current line.
    line: String,
    /// URLs of open links.
    links: Vec<Option<String>>,
    /// Number of open `pre` elements.
    preformatted: usize,
}

impl PageText {
    fn text(&mut self, raw: &str) {
        let text = unescape(raw);
        if self.preformatted > 0 {
            self.line.push_str(&text);
            return;
        }
        for word in text.split_inclusive(char::is_whitespace) {
            let trimmed = word.trim_end();
            self.line.push_str(trimmed);
            if trimmed.len() < word.len() && !self.line.is_empty() && !self.line.ends_with(' ') {
                self.line.push(' ');
            }
        }
    }

    fn line_start(&mut self, mark: &str) {
        self.break_line();
        self.line.push_str(mark);
    }

    fn break_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end();
        if !line.trim().is_empty() {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn tag(&mut self, tag: &str, name: &str) {
        let closes = tag.starts_with('/');
        match (name, closes) {
            ("a", false) => self.links.push(attribute(tag, "href")),
            ("a", true) => {
                if let Some(url) = self.links.pop().flatten().filter(|url| url.contains("://")) {
                    self.line.push_str(&format!(" ({url})"));
                }
            }
            ("pre", false) => {
                self.break_line();
                self.preformatted += 1;
            }
            ("pre", true) => {
                self.break_line();
                self.preformatted = self.preformatted.saturating_sub(1);
            }
            ("li", false) => self.line_start("- "),
            ("td" | "th", false) if !self.line.is_empty() => self.line.push_str(" | "),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => self.line_start("# "),
            (name, _) if BLOCKS.contains(&name) => self.break_line(),
            _ => {}
        }
    }

    fn finish(mut self) -> String {
        self.break_line();
        self.text
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let lower = tag.to_ascii_lowercase();
    let start = lower.find(&format!(" {name}="))? + name.len() + 2;
    let value = &tag[start..];
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split(char::is_whitespace).next()?,
    };
    Some(unescape(value))
}

/// Replaces the character references that pages use most, and numeric ones.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest supported reference has eight characters.
        let end = rest.char_indices().take(10).find(|(_, character)| *character == ';').map(|(end, _)| end);
        let Some((end, character)) = end.and_then(|end| Some((end, character(&rest[1..end])?))) else {
            out.push('&');
            rest = &rest[1..];
            continue;
        };
        out.push(character);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

fn character(reference: &str) -> Option<char> {
    if let Some(number) = reference.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match reference {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "copy" => '©',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn page_becomes_lines() {
        let html = "<!doctype html><html><head><title>A &amp; B</title><style>x{}</style></head><body><h2>Head</h2>\
                    <p>One\n <b>two</b>  <a href=\"https://e.org/?a=1&amp;b=2\">link</a>.</p><script>var a = '<p>';</script>\
                    <ul><li>x<li>y</ul><pre>a\n  b</pre><!-- <p>no</p> --><table><tr><td>1<td>2</table>3 < 4";
        let expected = "# A & B\n# Head\nOne two link (https://e.org/?a=1&b=2).\n- x\n- y\na\n  b\n1 | 2\n3 < 4\n";
        assert_eq!(to_text(html), expected);
    }

    proptest! {
        #[test]
        fn any_input_gives_text(html in "(<|>|\"|'|/|!|-|&|;|script|a|pre|é| |#|head|title){0,40}") {
            let _ = to_text(&html);
        }
    }
}
