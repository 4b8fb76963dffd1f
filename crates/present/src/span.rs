//! Styled text: pieces with a class each. A surface maps classes to its own colours.

/// The meaning of a piece of text. No class is a colour, so that every surface and theme chooses its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// Ordinary text.
    #[default]
    Plain,
    /// Names of files, numbers of changes, headings.
    Title,
    /// Secondary text: line numbers, ages, paths.
    Dim,
    /// Headers of hunks and other neutral highlights.
    Accent,
    /// A question to the user.
    Prompt,
    /// Notes and states that need attention.
    Note,
    /// Good news: added lines, applied changes.
    Added,
    /// Bad news: removed lines, warnings, denied changes.
    Removed,
    /// A note that must not be overlooked.
    Critical,
    /// A part of a script that is not understood.
    Uncertain,
    /// A line of `^` under such parts. Surfaces that draw [`Style::Uncertain`] leave it out.
    MarkerLine,
    /// A piece of a diff's line.
    Code(CodeStyle),
    /// An empty span at the end of a changed line: the line's background extends to the edge.
    LineEnd(LineChange),
}

/// The side of a diff that a changed line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineChange {
    /// A line of the new side.
    Added,
    /// A line of the old side.
    Removed,
}

/// The style of a piece of a diff's line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeStyle {
    /// `None` for a context line.
    pub change: Option<LineChange>,
    /// `true` for the words that differ within a changed line.
    pub is_changed_word: bool,
    /// `None` without highlighting.
    pub syntax: Option<SyntaxClass>,
}

/// A class of tokens. Highlighting tells these apart in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyntaxClass {
    /// Tokens without a class of their own.
    Text,
    /// Keywords, storage modifiers and emphasis.
    Keyword,
    /// Types and other named definitions.
    Type,
    /// Functions and headings.
    Function,
    /// Strings, quotes and inserted text.
    String,
    /// Escape sequences within strings.
    Escape,
    Number,
    Constant,
    Comment,
    Operator,
    Punctuation,
    /// Variables and deleted text.
    Variable,
    /// Annotations, and attributes of tags.
    Attribute,
    Tag,
}

/// A piece of text in one style. Text from outside is escaped already. It may hold line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Empty for [`Style::LineEnd`] only.
    pub text: String,
    /// The class of the piece.
    pub style: Style,
}

/// Text as a list of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledText {
    spans: Vec<Span>,
}

impl StyledText {
    /// An empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a piece in a style. An empty piece is left out.
    pub fn push(&mut self, style: Style, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() || matches!(style, Style::LineEnd(_)) {
            self.spans.push(Span { text, style });
        }
    }

    /// Appends ordinary text.
    pub fn plain(&mut self, text: impl Into<String>) {
        self.push(Style::Plain, text);
    }

    /// Appends a piece and a line break.
    pub fn line(&mut self, style: Style, text: impl Into<String>) {
        self.push(style, text);
        self.plain("\n");
    }

    /// Appends another text.
    pub fn append(&mut self, mut other: Self) {
        self.spans.append(&mut other.spans);
    }

    /// The pieces in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// `true` if there is no piece.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The text without styles.
    pub fn to_plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

impl From<String> for StyledText {
    fn from(text: String) -> Self {
        let mut styled = Self::new();
        styled.plain(text);
        styled
    }
}
