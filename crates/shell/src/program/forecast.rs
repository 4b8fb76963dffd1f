//! The commands of a program before it runs, as a [`Script`].

mod expand;
mod values;

use crate::output::Output;
use crate::{Certainty, Course, Doubt, Redirect, RedirectAccess, Script, SimpleCommand, Word as ScriptWord};

use super::{
    AndOr, Builtin, Command, Compound, Condition, Connector, Construct, Invocation, List, Operation, Pipeline,
};
use super::{Program, Redirection, UnaryTest, Word};
use expand::Splitting;
pub use values::Variables;
use values::{Value, Values};

/// Words of one loop that are forecast one by one.
const MAX_UNROLLED_WORDS: usize = 16;
/// Iterations that are forecast one by one, over all loops around a command.
const MAX_ITERATIONS: usize = 64;

impl Program {
    /// Lists the commands that a run reaches. Words are literal where the text and `known` decide them.
    ///
    /// Short loops over known words are unrolled. A variable that is set in one of several branches is unknown behind them.
    pub fn forecast(&self, known: &Variables) -> Script {
        let mut forecast = Forecast { program: self, output: Output::new(), iterations: 1 };
        let mut values = Values::new(known);
        forecast.list(&self.body, &mut values, Standing { shell: 0, course: Course::Straight, fed_by: None });
        forecast.output.settle_inputs();
        forecast.output.into_script()
    }
}

struct Forecast<'p> {
    program: &'p Program,
    output: Output,
    /// Iterations of the unrolled loops around the current command.
    iterations: usize,
}

/// Surroundings of a command.
#[derive(Clone, Copy)]
struct Standing {
    shell: usize,
    course: Course,
    fed_by: Option<usize>,
}

impl Standing {
    fn in_branch(self) -> Self {
        Self { course: Course::Branch, ..self }
    }
}

impl Forecast<'_> {
    fn list(&mut self, list: &List, values: &mut Values<'_>, standing: Standing) {
        for item in &list.items {
            if self.output.is_full() {
                self.output.doubt(Doubt::TooMany);
                return;
            }
            self.and_or(item, values, standing);
        }
    }

    fn and_or(&mut self, item: &AndOr, values: &mut Values<'_>, mut standing: Standing) {
        self.pipeline(&item.first, values, standing);
        if item.rest.is_empty() {
            return;
        }
        // The values if the rest is not reached, or only partly.
        let mut skipped = values.clone();
        for (connector, pipeline) in &item.rest {
            if *connector == Connector::Or {
                standing = standing.in_branch();
            }
            if standing.course == Course::Branch {
                values.merge(&skipped);
            }
            self.pipeline(pipeline, values, standing);
            skipped.merge(values);
        }
        *values = skipped;
    }

    fn pipeline(&mut self, pipeline: &Pipeline, values: &mut Values<'_>, standing: Standing) {
        if let [stage] = pipeline.stages.as_slice() {
            self.command(&stage.command, values, standing);
            return;
        }
        let mut fed_by = standing.fed_by;
        for stage in &pipeline.stages {
            let first = self.output.commands.len();
            let shell = self.output.shell_within(standing.shell);
            self.command(&stage.command, &mut values.clone(), Standing { shell, fed_by, ..standing });
            fed_by = Some(first);
        }
    }

    fn command(&mut self, command: &Command, values: &mut Values<'_>, standing: Standing) {
        match command {
            Command::Simple(invocation) => self.invocation(invocation, values, standing),
            Command::Compound(compound) => self.compound(compound, values, standing),
        }
    }

    fn compound(&mut self, compound: &Compound, values: &mut Values<'_>, standing: Standing) {
        if compound.redirections.is_empty() {
            self.construct(&compound.construct, values, standing);
            return;
        }
        // A redirection that fails leaves the construct undone.
        let before = values.clone();
        self.construct(&compound.construct, values, standing);
        values.merge(&before);
        self.listed(Vec::new(), Vec::new(), &compound.redirections, &before, standing, self.output.commands.len());
    }

    fn construct(&mut self, construct: &Construct, values: &mut Values<'_>, standing: Standing) {
        match construct {
            Construct::Subshell(body) => {
                let shell = self.output.shell_within(standing.shell);
                self.list(body, &mut values.clone(), Standing { shell, ..standing });
            }
            Construct::Group(body) => self.list(body, values, standing),
            Construct::For { variable, words, body } => self.for_loop(variable, words, body, values, standing),
            Construct::If { branches, otherwise } => self.branches(branches, otherwise.as_ref(), values, standing),
            Construct::Case { subject, arms } => self.case(subject, arms, values, standing),
            Construct::WhileRead { variable, body, .. } => {
                self.read(variable, standing.in_branch());
                self.loop_body(variable, Value::Unknown, body, values, standing);
            }
            Construct::Condition(condition) => self.condition(condition, values, standing),
        }
    }

    fn for_loop(&mut self, variable: &str, words: &[Word], body: &List, values: &mut Values<'_>, standing: Standing) {
        let mut items = Vec::new();
        for word in words {
            items.extend(self.word(word, Splitting::Fields, values, standing));
        }
        let is_known = items.iter().all(|item| item.certainty != Certainty::Unknown);
        let total = self.iterations * items.len().max(1);
        if !is_known || items.len() > MAX_UNROLLED_WORDS || total > MAX_ITERATIONS {
            self.loop_body(variable, Value::Unknown, body, values, standing);
            return;
        }
        let outer = std::mem::replace(&mut self.iterations, total);
        let is_exact = items.iter().all(|item| item.certainty == Certainty::Literal);
        for item in items {
            if is_exact {
                values.set(variable, Value::Literal(item.text));
                self.list(body, values, standing.in_branch());
            } else {
                self.loop_body(variable, Value::of(item), body, values, standing);
            }
        }
        self.iterations = outer;
    }

    /// Forecasts a body that runs any number of times.
    fn loop_body(&mut self, variable: &str, value: Value, body: &List, values: &mut Values<'_>, standing: Standing) {
        values.forget_assigned(body);
        values.set(variable, value);
        self.list(body, values, standing.in_branch());
        values.forget_assigned(body);
        values.set(variable, Value::Unknown);
    }

    fn branches(
        &mut self,
        branches: &[(List, List)],
        otherwise: Option<&List>,
        values: &mut Values<'_>,
        standing: Standing,
    ) {
        let standing = standing.in_branch();
        let mut ends = Vec::new();
        for (condition, body) in branches {
            self.list(condition, values, standing);
            let mut taken = values.clone();
            self.list(body, &mut taken, standing);
            ends.push(taken);
        }
        if let Some(body) = otherwise {
            self.list(body, values, standing);
        }
        for end in &ends {
            values.merge(end);
        }
    }

    fn case(&mut self, subject: &Word, arms: &[(Vec<Word>, List)], values: &mut Values<'_>, standing: Standing) {
        let standing = standing.in_branch();
        self.word(subject, Splitting::Single, values, standing);
        let before = values.clone();
        for (patterns, body) in arms {
            for pattern in patterns {
                self.word(pattern, Splitting::Single, &before, standing);
            }
            let mut taken = before.clone();
            self.list(body, &mut taken, standing);
            values.merge(&taken);
        }
    }

    /// Lists the `read` of a loop.
    fn read(&mut self, variable: &str, standing: Standing) {
        let words = ["read", "-r", variable].map(ScriptWord::literal).to_vec();
        self.push(SimpleCommand { words, ..bare(standing) });
    }

    fn condition(&mut self, condition: &Condition, values: &Values<'_>, standing: Standing) {
        let first = self.output.commands.len();
        let mut words = vec![ScriptWord::literal("[[")];
        self.condition_words(condition, values, standing, &mut words);
        words.push(ScriptWord::literal("]]"));
        let index = self.output.commands.len();
        let fed_by = standing.fed_by.or((first < index).then_some(first));
        self.push(SimpleCommand { words, fed_by, ..bare(standing) });
    }

    fn condition_words(
        &mut self,
        condition: &Condition,
        values: &Values<'_>,
        standing: Standing,
        words: &mut Vec<ScriptWord>,
    ) {
        match condition {
            Condition::Not(inner) => {
                words.push(ScriptWord::literal("!"));
                self.condition_words(inner, values, standing, words);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let sign = if matches!(condition, Condition::And(..)) { "&&" } else { "||" };
                self.condition_words(left, values, standing, words);
                words.push(ScriptWord::literal(sign));
                self.condition_words(right, values, standing, words);
            }
            Condition::Unary(test, operand) => {
                words.push(ScriptWord::literal(test.sign()));
                words.extend(self.word(operand, Splitting::Single, values, standing));
            }
            Condition::Matches(left, right) | Condition::Differs(left, right) => {
                let sign = if matches!(condition, Condition::Matches(..)) { "==" } else { "!=" };
                words.extend(self.word(left, Splitting::Single, values, standing));
                words.push(ScriptWord::literal(sign));
                words.extend(self.word(right, Splitting::Single, values, standing));
            }
        }
    }

    fn invocation(&mut self, invocation: &Invocation, values: &mut Values<'_>, standing: Standing) {
        let first = self.output.commands.len();
        let mut words = Vec::new();
        for word in &invocation.words {
            words.extend(self.word(word, Splitting::Fields, values, standing));
        }
        let before = values.clone();
        let mut assignments = Vec::new();
        for assignment in &invocation.assignments {
            let mut word = self.word(&assignment.value, Splitting::Single, values, standing);
            let value = word.pop().unwrap_or_else(|| ScriptWord::literal(""));
            values.set(&assignment.name, Value::of(value.clone()));
            let text = format!("{}={}", assignment.name, value.text);
            assignments.push(ScriptWord { text, certainty: value.certainty });
        }
        // Before a command the values hold for that command only.
        if !invocation.words.is_empty() {
            values.clone_from(&before);
        }
        declare(&words, values);
        if !invocation.redirections.is_empty() && !invocation.words.is_empty() {
            // A redirection that fails leaves the command undone.
            values.merge(&before);
        }
        let visible = if invocation.words.is_empty() { &*values } else { &before };
        self.listed(assignments, words, &invocation.redirections, visible, standing, first);
    }

    /// Lists a command whose words are known; `first` is the first command of its substitutions.
    fn listed(
        &mut self,
        assignments: Vec<ScriptWord>,
        words: Vec<ScriptWord>,
        redirections: &[Redirection],
        values: &Values<'_>,
        standing: Standing,
        first: usize,
    ) {
        let mut redirects = Vec::new();
        let mut input = None;
        for redirection in redirections {
            let (word, access) = match &redirection.operation {
                Operation::Read(word) => (word, RedirectAccess::Read),
                Operation::Write(word) | Operation::WriteBoth(word) => (word, RedirectAccess::Write),
                Operation::Append(word) | Operation::AppendBoth(word) => (word, RedirectAccess::Append),
                Operation::HereString(word) => {
                    input = self.word(word, Splitting::Single, values, standing).pop();
                    continue;
                }
                Operation::HereDocument(index) => {
                    let body = self.program.documents.get(*index);
                    input = body.and_then(|body| self.word(body, Splitting::Single, values, standing).pop());
                    continue;
                }
                Operation::Duplicate(_) | Operation::Close => continue,
            };
            redirects.push(Redirect { target: self.target(word, values, standing), access });
        }
        let index = self.output.commands.len();
        if let Some(input) = input {
            self.output.inputs.insert(index, input);
        }
        let fed_by = standing.fed_by.or((first < index).then_some(first));
        self.push(SimpleCommand { assignments, words, redirects, fed_by, ..bare(standing) });
    }

    /// The file of a redirection. Several words are an error when it runs, so they are not certain.
    fn target(&mut self, word: &Word, values: &Values<'_>, standing: Standing) -> ScriptWord {
        let mut fields = self.word(word, Splitting::Fields, values, standing);
        match (fields.pop(), fields.is_empty()) {
            (Some(target), true) => target,
            (last, _) => {
                let texts: Vec<String> = fields.into_iter().chain(last).map(|field| field.text).collect();
                ScriptWord { text: texts.join(" "), certainty: Certainty::Unknown }
            }
        }
    }

    fn push(&mut self, command: SimpleCommand) {
        self.output.list(command, 0);
    }
}

/// A command without words at some place.
fn bare(standing: Standing) -> SimpleCommand {
    SimpleCommand {
        assignments: Vec::new(),
        words: Vec::new(),
        redirects: Vec::new(),
        through: Vec::new(),
        shell: standing.shell,
        course: standing.course,
        fed_by: standing.fed_by,
    }
}

/// Follows what `export` and `unset` do to variables.
fn declare(words: &[ScriptWord], values: &mut Values<'_>) {
    let Some(name) = words.first().and_then(ScriptWord::as_literal) else { return };
    match Builtin::named(name) {
        Some(Builtin::Export) => {
            for word in &words[1..] {
                if let Some((name, value)) = word.text.split_once('=') {
                    let value = ScriptWord { text: value.to_owned(), certainty: word.certainty };
                    values.set(name, Value::of(value));
                }
            }
        }
        Some(Builtin::Unset) => {
            for word in &words[1..] {
                values.set(&word.text, Value::Literal(String::new()));
            }
        }
        _ => {}
    }
}

impl UnaryTest {
    /// The operator as it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Exists => "-e",
            Self::File => "-f",
            Self::Directory => "-d",
            Self::Filled => "-s",
            Self::Readable => "-r",
            Self::Writable => "-w",
            Self::Executable => "-x",
            Self::SymbolicLink => "-L",
            Self::Empty => "-z",
            Self::NotEmpty => "-n",
        }
    }
}
