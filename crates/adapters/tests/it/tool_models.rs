//! Independent, simple models of the agents' tools, to check compiled inputs. `real_claude` and `real_codex` run the real tools.

use std::collections::BTreeMap;

use serde_json::Value;

/// `Edit` of Claude Code for UTF-8 files.
pub(crate) fn claude_edit(before: &[u8], input: &Value) -> Option<Vec<u8>> {
    let raw = std::str::from_utf8(before).ok()?;
    let sample = String::from_utf16_lossy(&raw.encode_utf16().take(4096).collect::<Vec<_>>());
    let crlf = sample.matches("\r\n").count() * 2 > sample.matches('\n').count();
    let text = raw.replace("\r\n", "\n");
    let (old, new) = (input["old_string"].as_str()?, input["new_string"].as_str()?);
    let result = if old.is_empty() {
        new.to_owned()
    } else {
        let eats = new.is_empty() && !old.ends_with('\n') && text.contains(&format!("{old}\n"));
        let old = if eats { format!("{old}\n") } else { old.to_owned() };
        let at = text.find(&old)?;
        if input["replace_all"] == true {
            text.replace(&old, new)
        } else {
            format!("{}{new}{}", &text[..at], &text[at + old.len()..])
        }
    };
    if result == text {
        return None;
    }
    Some(if crlf { result.replace("\r\n", "\n").replace('\n', "\r\n") } else { result }.into_bytes())
}

/// `apply_patch` of Codex for relative paths and patches with exact context.
pub(crate) fn codex_apply(files: &BTreeMap<String, Vec<u8>>, patch: &str) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut files = files.clone();
    let mut lines = patch.lines().peekable();
    assert_eq!(lines.next(), Some("*** Begin Patch"));
    loop {
        let line = lines.next()?;
        if line == "*** End Patch" {
            return lines.next().is_none().then_some(files);
        }
        if let Some(path) = line.strip_prefix("*** Delete File: ") {
            files.remove(path)?;
        } else if let Some(path) = line.strip_prefix("*** Add File: ") {
            let mut content = String::new();
            while let Some(added) = lines.peek().and_then(|line| line.strip_prefix('+')) {
                content += &format!("{added}\n");
                lines.next();
            }
            files.insert(path.to_owned(), content.into_bytes());
        } else {
            let path = line.strip_prefix("*** Update File: ")?;
            let mut chunks: Vec<Vec<&str>> = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("***")) {
                if line == "@@" { chunks.push(Vec::new()) } else { chunks.last_mut()?.push(line) }
            }
            let new = codex_update(files.get(path)?, &chunks)?;
            files.insert(path.to_owned(), new);
        }
    }
}

fn codex_update(before: &[u8], chunks: &[Vec<&str>]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(before).ok()?;
    // Pairs of line and ending.
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        let ending = if rest[end..].starts_with("\r\n") { 2 } else { usize::from(end < rest.len()) };
        lines.push((rest[..end].to_owned(), rest[end..end + ending].to_owned()));
        rest = &rest[end + ending..];
    }
    let own = lines.first().map(|(_, ending)| ending.clone()).filter(|ending| !ending.is_empty());
    let own = own.unwrap_or_else(|| "\n".to_owned());
    let mut from = 0;
    // Applied from the last to the first, so that earlier line numbers stay valid.
    let mut replacements = Vec::new();
    for chunk in chunks {
        let old: Vec<&str> = chunk.iter().filter(|line| !line.starts_with('+')).map(|line| &line[1..]).collect();
        let fits = |at: usize| lines[at..at + old.len()].iter().map(|(text, _)| text).eq(old.iter());
        let at = if old.is_empty() {
            lines.len()
        } else {
            (from..=lines.len().checked_sub(old.len())?).find(|at| fits(*at))?
        };
        replacements.push((at, old.len(), chunk));
        from = at + old.len();
    }
    for (at, count, chunk) in replacements.into_iter().rev() {
        let mut kept = lines[at..at + count].iter().cloned();
        let mut new = Vec::new();
        for line in chunk {
            match &line[..1] {
                "+" => new.push((line[1..].to_owned(), own.clone())),
                "-" => drop(kept.next()),
                _ => new.extend(kept.next()),
            }
        }
        lines.splice(at..at + count, new);
    }
    let whole = lines.into_iter().map(|(text, ending)| if ending.is_empty() { text + &own } else { text + &ending });
    Some(whole.collect::<String>().into_bytes())
}
