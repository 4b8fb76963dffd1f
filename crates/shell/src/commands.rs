//! Reads a text from left to right and cuts it into simple commands.

use std::mem;

use crate::level::{Before, Draft, Group, Level, Line, Opening, Standing, Until};
use crate::output::{MOST_DEPTH, Output};
use crate::{Course, Doubt, SimpleCommand};

/// Groups (`(`, `{`, `if`, …) open at one time in one text.
const MOST_GROUPS: usize = 256;

/// A place in a text, and where what is found there goes to.
pub(super) struct Reader<'t, 'o> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    through: Vec<String>,
    pub(super) output: &'o mut Output,
}

impl<'t, 'o> Reader<'t, 'o> {
    pub(super) fn new(text: &'t str, depth: usize, through: Vec<String>, output: &'o mut Output) -> Self {
        Self { text, at: 0, depth, through, output }
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
        self.output.doubt(Doubt::Unexpected { token: token.to_owned() });
    }

    pub(super) fn unterminated(&mut self, opening: &str) {
        self.output.doubt(Doubt::Unterminated { opening: opening.to_owned() });
    }

    /// Gives up on the rest, which is a doubt.
    pub(super) fn give_up(&mut self, doubt: Doubt) {
        self.output.doubt(doubt);
        self.at = self.text.len();
    }

    /// Reads the commands of a substitution, the opening of which is behind.
    pub(super) fn substitution(&mut self, opening: &str, standing: &Standing) {
        if self.depth >= MOST_DEPTH {
            self.give_up(Doubt::TooDeep);
            return;
        }
        self.depth += 1;
        self.commands(Until::Parenthesis, standing);
        self.depth -= 1;
        if !self.take(")") {
            self.unterminated(opening);
        }
    }

    /// Reads commands to the end.
    pub(super) fn commands(&mut self, until: Until, standing: &Standing) {
        let first = self.output.commands.len();
        let line = Line {
            shell: standing.shell,
            course: standing.course,
            next_course: standing.course,
            part: first,
            list: first,
            is_pipe: false,
            fed_by: standing.fed_by,
            group_fed_by: standing.fed_by,
        };
        let mut level = Level {
            until,
            groups: Vec::new(),
            draft: Draft::default(),
            here_documents: Vec::new(),
            is_function: false,
            before: Before::Nothing,
            line,
        };
        while self.step(&mut level) {
            if self.output.is_full() && self.at < self.text.len() {
                self.give_up(Doubt::TooMany);
            }
        }
        if level.before == Before::Operator {
            self.unexpected("|");
        }
        self.end_list(&mut level, Course::Straight);
        for document in mem::take(&mut level.here_documents) {
            self.unterminated(&format!("<<{}", document.delimiter));
        }
        for group in level.groups.iter().rev() {
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

    /// Reads one token; says whether to go on.
    fn step(&mut self, level: &mut Level) -> bool {
        self.skip_blanks();
        let Some(byte) = self.byte(0) else { return false };
        self.place(level, byte);
        match byte {
            b'#' => self.skip_comment(),
            b'\n' => {
                self.at += 1;
                self.end_list(level, Course::Straight);
                self.read_here_documents(level);
            }
            b';' => {
                self.at += 1;
                let ends_branch = self.take(";&") || self.take(";") || self.take("&");
                self.end_list(level, Course::Straight);
                if ends_branch {
                    if level.groups.last().is_some_and(|group| group.opening == Opening::Case) {
                        self.case_patterns(level);
                        // Patterns, or `esac`.
                        level.before = Before::Command;
                    } else {
                        self.unexpected(";;");
                    }
                }
            }
            b'&' if self.starts_with("&>") => self.redirect(level),
            b'&' if self.take("&&") => self.end_pipe(level, Course::Straight),
            b'&' => {
                self.at += 1;
                self.finish(level);
                let from = level.line.list;
                self.isolate(from, level.line.shell);
                self.end_list(level, Course::Straight);
            }
            b'|' if self.take("||") => self.end_pipe(level, Course::Branch),
            b'|' => {
                self.at += if self.starts_with("|&") { 2 } else { 1 };
                self.finish(level);
                let from = level.line.part;
                self.isolate(from, level.line.shell);
                level.line.is_pipe = true;
                level.line.fed_by = Some(from);
                level.line.part = self.output.commands.len();
            }
            b'(' => self.open_parenthesis(level),
            b')' => return self.close_parenthesis(level),
            b'<' | b'>' if self.byte(1) != Some(b'(') => self.redirect(level),
            _ => self.word_or_reserved(level),
        }
        true
    }

    /// Takes note of what stands before the next token, and doubts an operator that lacks a command before or behind it.
    fn place(&mut self, level: &mut Level, byte: u8) {
        let before = level.before;
        level.before = match byte {
            b'#' => return,
            b'\n' if before == Before::Operator => return,
            b'\n' => Before::Nothing,
            b'&' if self.starts_with("&>") => Before::Command,
            b';' | b'&' | b'|' => {
                // A branch of `case` may be empty.
                if before != Before::Command && (before == Before::Operator || !self.starts_with(";;")) {
                    self.unexpected(char::from(byte).encode_utf8(&mut [0; 4]));
                }
                if byte == b'|' || self.starts_with("&&") { Before::Operator } else { Before::Nothing }
            }
            b')' if before == Before::Operator => {
                self.unexpected(")");
                Before::Command
            }
            _ => Before::Command,
        };
    }

    fn open_parenthesis(&mut self, level: &mut Level) {
        if level.draft.is_empty() && self.starts_with("((") && self.arithmetic_command(level) {
            return;
        }
        self.at += 1;
        if level.draft.words.len() == 1 && level.draft.assignments.is_empty() && level.draft.redirects.is_empty() {
            let before = self.at;
            self.skip_blanks();
            if self.take(")") {
                let name = mem::take(&mut level.draft).words.remove(0);
                self.define_function(level, name.text);
                return;
            }
            self.at = before;
        }
        if !level.draft.is_empty() {
            self.unexpected("(");
            self.finish(level);
        }
        self.open(level, Opening::Subshell);
    }

    pub(super) fn define_function(&mut self, level: &mut Level, name: String) {
        self.output.doubt(Doubt::Redefined { name });
        level.is_function = true;
    }

    fn close_parenthesis(&mut self, level: &mut Level) -> bool {
        let is_open = level.groups.iter().any(|group| group.opening == Opening::Subshell);
        if !is_open && level.until == Until::Parenthesis {
            return false;
        }
        self.at += 1;
        self.end_list(level, Course::Straight);
        if !is_open {
            self.unexpected(")");
        }
        while is_open && level.groups.last().is_some_and(|group| group.opening != Opening::Subshell) {
            self.unexpected(")");
            self.close(level);
        }
        if is_open {
            self.close(level);
        }
        true
    }

    /// Opens a group of commands.
    pub(super) fn open(&mut self, level: &mut Level, opening: Opening) {
        if level.groups.len() >= MOST_GROUPS {
            self.give_up(Doubt::TooDeep);
            return;
        }
        level.groups.push(Group { opening, outside: level.line });
        let is_branch = mem::take(&mut level.is_function) || !matches!(opening, Opening::Subshell | Opening::Brace);
        let line = &mut level.line;
        if is_branch {
            line.course = Course::Branch;
        }
        if opening == Opening::Subshell {
            line.shell = self.output.shell_within(line.shell);
        }
        line.next_course = line.course;
        line.is_pipe = false;
        line.group_fed_by = line.fed_by;
        line.part = self.output.commands.len();
        line.list = line.part;
    }

    /// Closes the innermost group.
    pub(super) fn close(&mut self, level: &mut Level) {
        self.end_list(level, Course::Straight);
        if let Some(group) = level.groups.pop() {
            level.line = group.outside;
        }
    }

    /// Ends what `;`, a newline or `&` ends.
    pub(super) fn end_list(&mut self, level: &mut Level, course: Course) {
        self.end_pipe(level, course);
        level.line.course = level.line.next_course;
        level.line.list = self.output.commands.len();
    }

    /// Ends what `&&` or `||` ends; what follows has this course, or the one it had.
    fn end_pipe(&mut self, level: &mut Level, course: Course) {
        self.finish(level);
        if mem::take(&mut level.line.is_pipe) {
            self.isolate(level.line.part, level.line.shell);
        }
        if course == Course::Branch {
            level.line.course = Course::Branch;
        }
        level.line.fed_by = level.line.group_fed_by;
        level.line.part = self.output.commands.len();
    }

    /// Moves commands into a shell of their own, as those of a pipe are.
    fn isolate(&mut self, from: usize, shell: usize) {
        let own = self.output.shell_within(shell);
        let mut moved = false;
        let last = self.output.commands.len();
        let mut lowest = own;
        for command in &mut self.output.commands[from.min(last)..] {
            if command.shell == shell {
                command.shell = own;
                moved = true;
            } else {
                lowest = lowest.min(command.shell);
            }
        }
        for inner in lowest..own {
            if self.output.shells[inner] == shell {
                self.output.shells[inner] = own;
                moved = true;
            }
        }
        if !moved {
            self.output.shells.pop();
        }
    }

    /// Lists the command that was read, if there is one.
    pub(super) fn finish(&mut self, level: &mut Level) {
        if level.draft.is_empty() {
            return;
        }
        level.is_function = false;
        let draft = mem::take(&mut level.draft);
        let index = self.output.commands.len();
        for document in &mut level.here_documents {
            document.command.get_or_insert(index);
        }
        if let Some(input) = draft.input {
            self.output.inputs.insert(index, input);
        }
        self.list(SimpleCommand {
            assignments: draft.assignments,
            words: draft.words,
            redirects: draft.redirects,
            through: self.through.clone(),
            shell: level.line.shell,
            course: level.line.course,
            fed_by: level.line.fed_by.or(draft.substitutions.filter(|first| *first < index)),
        });
    }

    /// Where the substitutions of the command that is being read stand.
    pub(super) fn standing_within(&mut self, level: &mut Level) -> Standing {
        level.draft.substitutions.get_or_insert(self.output.commands.len());
        Standing {
            shell: level.line.shell,
            course: level.line.course,
            through: self.through.clone(),
            fed_by: level.line.fed_by,
        }
    }

    /// Reads a word of a command, or a reserved word where one may stand.
    fn word_or_reserved(&mut self, level: &mut Level) {
        let standing = self.standing_within(level);
        let before = self.at;
        let scanned = self.word(&standing);
        if self.at == before {
            // Nothing takes this character; going on behind it is what keeps this from standing still.
            self.unexpected(&self.text[before..].chars().take(1).collect::<String>());
            self.at += self.text[before..].chars().next().map_or(1, char::len_utf8);
            return;
        }
        let Some(scanned) = scanned else { return };
        if scanned.is_descriptor && matches!(self.byte(0), Some(b'<' | b'>')) {
            return;
        }
        if level.draft.is_empty() && scanned.is_plain && self.reserved(level, &scanned.word.text) {
            return;
        }
        if level.draft.words.is_empty() && scanned.is_assignment {
            level.draft.assignments.push(scanned.word);
        } else {
            level.draft.words.push(scanned.word);
        }
    }
}
