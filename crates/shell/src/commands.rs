//! The lenient reader: splits a text into simple commands, from left to right.

use std::mem;

use crate::parser_state::{
    CommandDraft, Group, GroupKind, LineState, ParserState, PrecedingToken, ScriptContext, Terminator,
};
use crate::script_builder::{MAX_DEPTH, ScriptBuilder};
use crate::{Flow, SimpleCommand, Uncertainty};

/// Groups (`(`, `{`, `if`, …) open at one time in one text.
const MAX_GROUPS: usize = 256;

/// A position in a text, with the builder that collects its commands.
pub(super) struct ScriptReader<'t, 'o> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    wrappers: Vec<String>,
    pub(super) builder: &'o mut ScriptBuilder,
}

impl<'t, 'o> ScriptReader<'t, 'o> {
    pub(super) fn new(text: &'t str, depth: usize, wrappers: Vec<String>, builder: &'o mut ScriptBuilder) -> Self {
        Self { text, at: 0, depth, wrappers, builder }
    }

    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes())
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn unexpected(&mut self, token: &str) {
        self.builder.uncertain(Uncertainty::Unexpected { token: token.to_owned() });
    }

    pub(super) fn unterminated(&mut self, opening: &str) {
        self.builder.uncertain(Uncertainty::Unterminated { opening: opening.to_owned() });
    }

    /// Reports an uncertainty and skips the rest of the text.
    pub(super) fn give_up(&mut self, uncertainty: Uncertainty) {
        self.builder.uncertain(uncertainty);
        self.at = self.text.len();
    }

    /// Reads the commands of a substitution up to its `)`; the opening has been read.
    pub(super) fn substitution(&mut self, opening: &str, context: &ScriptContext) {
        if self.depth >= MAX_DEPTH {
            self.give_up(Uncertainty::TooDeep);
            return;
        }
        self.depth += 1;
        self.commands(Terminator::Parenthesis, context);
        self.depth -= 1;
        if !self.take(")") {
            self.unterminated(opening);
        }
    }

    /// Reads commands up to the terminator.
    pub(super) fn commands(&mut self, until: Terminator, context: &ScriptContext) {
        let first = self.builder.commands.len();
        let line = LineState {
            shell: context.shell,
            flow: context.flow,
            next_flow: context.flow,
            part: first,
            list: first,
            is_pipe: false,
            fed_by: context.fed_by,
            group_fed_by: context.fed_by,
        };
        let mut state = ParserState {
            until,
            groups: Vec::new(),
            draft: CommandDraft::default(),
            here_documents: Vec::new(),
            is_function: false,
            before: PrecedingToken::Nothing,
            line,
        };
        while self.step(&mut state) {
            if self.builder.is_full() && self.at < self.text.len() {
                self.give_up(Uncertainty::TooMany);
            }
        }
        if state.before == PrecedingToken::Operator {
            self.unexpected("|");
        }
        self.end_list(&mut state, Flow::Unconditional);
        for document in mem::take(&mut state.here_documents) {
            self.unterminated(&format!("<<{}", document.delimiter));
        }
        for group in state.groups.iter().rev() {
            self.unterminated(group.opening.text());
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.byte(1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    pub(super) fn skip_comment(&mut self) {
        while self.byte(0).is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Reads one token. Returns `false` at the terminator.
    fn step(&mut self, state: &mut ParserState) -> bool {
        self.skip_blanks();
        let Some(byte) = self.byte(0) else { return false };
        self.check_operator(state, byte);
        match byte {
            b'#' => self.skip_comment(),
            b'\n' => {
                self.at += 1;
                self.end_list(state, Flow::Unconditional);
                self.read_here_documents(state);
            }
            b';' => {
                self.at += 1;
                let ends_branch = self.take(";&") || self.take(";") || self.take("&");
                self.end_list(state, Flow::Unconditional);
                if ends_branch {
                    if state.groups.last().is_some_and(|group| group.opening == GroupKind::Case) {
                        self.case_patterns(state);
                        // Patterns, or `esac`.
                        state.before = PrecedingToken::Command;
                    } else {
                        self.unexpected(";;");
                    }
                }
            }
            b'&' if self.starts_with("&>") => self.redirect(state),
            b'&' if self.take("&&") => self.end_pipe(state, Flow::Unconditional),
            b'&' => {
                self.at += 1;
                self.finish(state);
                let from = state.line.list;
                self.isolate(from, state.line.shell);
                self.end_list(state, Flow::Unconditional);
            }
            b'|' if self.take("||") => self.end_pipe(state, Flow::Conditional),
            b'|' => {
                self.at += if self.starts_with("|&") { 2 } else { 1 };
                self.finish(state);
                let from = state.line.part;
                self.isolate(from, state.line.shell);
                state.line.is_pipe = true;
                state.line.fed_by = Some(from);
                state.line.part = self.builder.commands.len();
            }
            b'(' => self.open_parenthesis(state),
            b')' => return self.close_parenthesis(state),
            b'<' | b'>' if self.byte(1) != Some(b'(') => self.redirect(state),
            _ => self.word_or_reserved(state),
        }
        true
    }

    /// Records the kind of the next token, and reports an operator without a command before or behind it.
    fn check_operator(&mut self, state: &mut ParserState, byte: u8) {
        let before = state.before;
        state.before = match byte {
            b'#' => return,
            b'\n' if before == PrecedingToken::Operator => return,
            b'\n' => PrecedingToken::Nothing,
            b'&' if self.starts_with("&>") => PrecedingToken::Command,
            b';' | b'&' | b'|' => {
                // A branch of `case` may be empty.
                if before != PrecedingToken::Command && (before == PrecedingToken::Operator || !self.starts_with(";;"))
                {
                    self.unexpected(char::from(byte).encode_utf8(&mut [0; 4]));
                }
                if byte == b'|' || self.starts_with("&&") { PrecedingToken::Operator } else { PrecedingToken::Nothing }
            }
            b')' if before == PrecedingToken::Operator => {
                self.unexpected(")");
                PrecedingToken::Command
            }
            _ => PrecedingToken::Command,
        };
    }

    fn open_parenthesis(&mut self, state: &mut ParserState) {
        if state.draft.is_empty() && self.starts_with("((") && self.arithmetic_command(state) {
            return;
        }
        self.at += 1;
        if state.draft.words.len() == 1 && state.draft.assignments.is_empty() && state.draft.redirects.is_empty() {
            let before = self.at;
            self.skip_blanks();
            if self.take(")") {
                let name = mem::take(&mut state.draft).words.remove(0);
                self.define_function(state, name.text);
                return;
            }
            self.at = before;
        }
        if !state.draft.is_empty() {
            self.unexpected("(");
            self.finish(state);
        }
        self.open(state, GroupKind::Subshell);
    }

    pub(super) fn define_function(&mut self, state: &mut ParserState, name: String) {
        self.builder.uncertain(Uncertainty::Redefined { name });
        state.is_function = true;
    }

    fn close_parenthesis(&mut self, state: &mut ParserState) -> bool {
        let is_open = state.groups.iter().any(|group| group.opening == GroupKind::Subshell);
        if !is_open && state.until == Terminator::Parenthesis {
            return false;
        }
        self.at += 1;
        self.end_list(state, Flow::Unconditional);
        if !is_open {
            self.unexpected(")");
        }
        while is_open && state.groups.last().is_some_and(|group| group.opening != GroupKind::Subshell) {
            self.unexpected(")");
            self.close(state);
        }
        if is_open {
            self.close(state);
        }
        true
    }

    /// Opens a group of commands.
    pub(super) fn open(&mut self, state: &mut ParserState, opening: GroupKind) {
        if state.groups.len() >= MAX_GROUPS {
            self.give_up(Uncertainty::TooDeep);
            return;
        }
        state.groups.push(Group { opening, outside: state.line });
        let is_branch = mem::take(&mut state.is_function) || !matches!(opening, GroupKind::Subshell | GroupKind::Brace);
        let line = &mut state.line;
        if is_branch {
            line.flow = Flow::Conditional;
        }
        if opening == GroupKind::Subshell {
            line.shell = self.builder.shell_within(line.shell);
        }
        line.next_flow = line.flow;
        line.is_pipe = false;
        line.group_fed_by = line.fed_by;
        line.part = self.builder.commands.len();
        line.list = line.part;
    }

    /// Closes the innermost group.
    pub(super) fn close(&mut self, state: &mut ParserState) {
        self.end_list(state, Flow::Unconditional);
        if let Some(group) = state.groups.pop() {
            state.line = group.outside;
        }
    }

    /// Ends a list at `;`, a newline or `&`.
    pub(super) fn end_list(&mut self, state: &mut ParserState, flow: Flow) {
        self.end_pipe(state, flow);
        state.line.flow = state.line.next_flow;
        state.line.list = self.builder.commands.len();
    }

    /// Ends a pipeline at `&&` or `||`. `Flow::Conditional` applies to the commands that follow.
    fn end_pipe(&mut self, state: &mut ParserState, flow: Flow) {
        self.finish(state);
        if mem::take(&mut state.line.is_pipe) {
            self.isolate(state.line.part, state.line.shell);
        }
        if flow == Flow::Conditional {
            state.line.flow = Flow::Conditional;
        }
        state.line.fed_by = state.line.group_fed_by;
        state.line.part = self.builder.commands.len();
    }

    /// Moves the commands from index `from` on into a subshell, as for the stages of a pipeline.
    fn isolate(&mut self, from: usize, shell: usize) {
        let own = self.builder.shell_within(shell);
        let mut moved = false;
        let last = self.builder.commands.len();
        let mut lowest = own;
        for command in &mut self.builder.commands[from.min(last)..] {
            if command.shell == shell {
                command.shell = own;
                moved = true;
            } else {
                lowest = lowest.min(command.shell);
            }
        }
        for inner in lowest..own {
            if self.builder.shells[inner] == shell {
                self.builder.shells[inner] = own;
                moved = true;
            }
        }
        if !moved {
            self.builder.shells.pop();
        }
    }

    /// Lists the current command unless it is empty.
    pub(super) fn finish(&mut self, state: &mut ParserState) {
        if state.draft.is_empty() {
            return;
        }
        state.is_function = false;
        let draft = mem::take(&mut state.draft);
        let index = self.builder.commands.len();
        for document in &mut state.here_documents {
            document.command.get_or_insert(index);
        }
        if let Some(input) = draft.input {
            self.builder.inputs.insert(index, input);
        }
        self.list(SimpleCommand {
            assignments: draft.assignments,
            words: draft.words,
            redirects: draft.redirects,
            wrappers: self.wrappers.clone(),
            shell: state.line.shell,
            flow: state.line.flow,
            fed_by: state.line.fed_by.or(draft.substitutions.filter(|first| *first < index)),
        });
    }

    /// Returns the context for substitutions of the current command.
    pub(super) fn context_within(&mut self, state: &mut ParserState) -> ScriptContext {
        state.draft.substitutions.get_or_insert(self.builder.commands.len());
        ScriptContext {
            shell: state.line.shell,
            flow: state.line.flow,
            wrappers: self.wrappers.clone(),
            fed_by: state.line.fed_by,
        }
    }

    /// Reads a word of a command, or a reserved word at the start of one.
    fn word_or_reserved(&mut self, state: &mut ParserState) {
        let context = self.context_within(state);
        let before = self.at;
        let scanned = self.word(&context);
        if self.at == before {
            // No rule takes this character. Skipping it guarantees progress.
            self.unexpected(&self.text[before..].chars().take(1).collect::<String>());
            self.at += self.text[before..].chars().next().map_or(1, char::len_utf8);
            return;
        }
        let Some(scanned) = scanned else { return };
        if scanned.is_descriptor && matches!(self.byte(0), Some(b'<' | b'>')) {
            return;
        }
        if state.draft.is_empty() && scanned.is_plain && self.reserved(state, &scanned.word.text) {
            return;
        }
        if state.draft.words.is_empty() && scanned.is_assignment {
            state.draft.assignments.push(scanned.word);
        } else {
            state.draft.words.push(scanned.word);
        }
    }
}
