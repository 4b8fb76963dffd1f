//! Classes of tokens by the scopes of a syntax definition.

use std::sync::LazyLock;

use syntect::parsing::{Scope, ScopeStack};

use crate::span::SyntaxClass::{
    self, Attribute, Comment, Constant, Escape, Function, Keyword, Number, Operator, Punctuation, String, Tag, Text,
    Type, Variable,
};

/// Classes by the start of a scope. The longest start that matches decides.
const CLASSES: &[(&str, SyntaxClass)] = &[
    ("comment", Comment),
    ("constant", Constant),
    ("constant.character.escape", Escape),
    ("constant.numeric", Number),
    ("entity.name", Type),
    ("entity.name.constant", Constant),
    ("entity.name.function", Function),
    ("entity.name.label", Constant),
    ("entity.name.section", Function),
    ("entity.name.tag", Tag),
    ("entity.name.variable", Variable),
    ("entity.other.attribute-name", Attribute),
    ("entity.other.inherited-class", Type),
    ("keyword", Keyword),
    ("keyword.operator", Operator),
    ("keyword.operator.alphanumeric", Keyword),
    ("keyword.operator.logical.python", Keyword),
    ("keyword.operator.word", Keyword),
    ("markup.bold", Keyword),
    ("markup.deleted", Variable),
    ("markup.heading", Function),
    ("markup.inserted", String),
    ("markup.italic", Keyword),
    ("markup.quote", String),
    ("markup.raw", String),
    ("meta.annotation", Attribute),
    ("meta.attribute", Attribute),
    ("punctuation", Punctuation),
    ("punctuation.definition.annotation", Attribute),
    ("storage", Keyword),
    ("string", String),
    ("support", Constant),
    ("support.class", Type),
    ("support.function", Function),
    ("support.macro", Function),
    ("support.type", Type),
    ("variable", Variable),
    ("variable.annotation", Attribute),
    ("variable.function", Function),
    ("variable.language", Keyword),
];

/// The table with longer starts first.
static BY_LENGTH: LazyLock<Vec<(Scope, SyntaxClass)>> = LazyLock::new(|| {
    let parsed = CLASSES.iter().filter_map(|(name, class)| Some((Scope::new(name).ok()?, *class)));
    let mut table: Vec<_> = parsed.collect();
    table.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len()));
    table
});

/// Returns the class of text within these scopes. The innermost scope with a class decides.
pub(super) fn class(scopes: &ScopeStack) -> SyntaxClass {
    let of_scope =
        |scope: &Scope| BY_LENGTH.iter().find(|(start, _)| start.is_prefix_of(*scope)).map(|(_, class)| *class);
    let mut punctuation = false;
    for scope in scopes.as_slice().iter().rev() {
        match of_scope(scope) {
            // Quotes belong to their string, and slashes to their comment.
            Some(Punctuation) => punctuation = true,
            Some(class) if !punctuation || matches!(class, Comment | String | Attribute) => return class,
            Some(_) => break,
            None => {}
        }
    }
    if punctuation { Punctuation } else { Text }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::super::{Language, LineParser};
    use super::*;

    /// The class of each token of a line.
    fn tokens(file: &str, line: &str) -> Vec<(std::string::String, SyntaxClass)> {
        let mut parser = LineParser::new(Language::detect(file, "").unwrap());
        let classes = parser.line(line).unwrap();
        let token = |(range, class): (std::ops::Range<usize>, _)| (line[range].trim().to_owned(), class);
        classes.into_iter().map(token).filter(|(token, _)| !token.is_empty()).collect()
    }

    fn class_of(file: &str, line: &str, token: &str) -> SyntaxClass {
        tokens(file, line).into_iter().find(|(text, _)| text == token).unwrap_or_else(|| panic!("{token} in {line}")).1
    }

    #[test]
    fn scope_names_are_valid() {
        assert_eq!(BY_LENGTH.len(), CLASSES.len());
    }

    #[test]
    fn rust_tokens_have_their_classes() {
        let line = "let text: Vec<u8> = call(\"a\\n\", 12, true); // note\n";
        for (token, class) in
            [("let", Keyword), ("call", Function), ("12", Number), ("true", Constant), ("// note", Comment)]
        {
            assert_eq!(class_of("a.rs", line, token), class, "{token}: {:?}", tokens("a.rs", line));
        }
        assert_eq!(class_of("a.rs", line, "\\n"), Escape);
        assert_eq!(class_of("a.rs", line, "\"a"), String);
        assert_eq!(class_of("a.rs", "struct Name;\n", "Name"), Type);
    }

    #[test]
    fn markup_tokens_have_their_classes() {
        assert_eq!(class_of("a.html", "<p class=\"x\">text</p>\n", "p"), Tag);
        assert_eq!(class_of("a.html", "<p class=\"x\">text</p>\n", "class"), Attribute);
        assert_eq!(class_of("a.html", "<p class=\"x\">text</p>\n", "text"), Text);
    }
}
