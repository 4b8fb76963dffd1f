//! The commands of a program before it runs, as a [`Script`].

mod expand;
mod values;

use crate::script_builder::ScriptBuilder;
use crate::{Certainty, Flow, Redirect, RedirectAccess, Script, SimpleCommand, Uncertainty, Word as ScriptWord};

use super::{
    AndOr, Builtin, Command, Compound, Condition, Connector, Construct, Invocation, List, Operation, Pipeline,
};
use super::{Program, Redirection, UnaryTest, UnexpandedWord};
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
        let mut forecast = Forecast { program: self, builder: ScriptBuilder::new(), iterations: 1 };
        let mut values = Values::new(known);
        forecast.list(&self.body, &mut values, CommandContext { shell: 0, flow: Flow::Unconditional, fed_by: None });
        forecast.builder.settle_inputs();
        forecast.builder.into_script()
    }
}

struct Forecast<'p> {
    program: &'p Program,
    builder: ScriptBuilder,
    /// Iterations of the unrolled loops around the current command.
    iterations: usize,
}

/// Surroundings of a command.
#[derive(Clone, Copy)]
struct CommandContext {
    shell: usize,
    flow: Flow,
    fed_by: Option<usize>,
}

impl CommandContext {
    fn in_branch(self) -> Self {
        Self { flow: Flow::Conditional, ..self }
    }
}

impl Forecast<'_> {
    fn list(&mut self, list: &List, values: &mut Values<'_>, context: CommandContext) {
        for item in &list.items {
            if self.builder.is_full() {
                self.builder.uncertain(Uncertainty::TooMany);
                return;
            }
            self.and_or(item, values, context);
        }
    }

    fn and_or(&mut self, item: &AndOr, values: &mut Values<'_>, mut context: CommandContext) {
        self.pipeline(&item.first, values, context);
        if item.rest.is_empty() {
            return;
        }
        // The values if the rest is not reached, or only partly.
        let mut skipped = values.clone();
        for (connector, pipeline) in &item.rest {
            if *connector == Connector::Or {
                context = context.in_branch();
            }
            if context.flow == Flow::Conditional {
                values.merge(&skipped);
            }
            self.pipeline(pipeline, values, context);
            skipped.merge(values);
        }
        *values = skipped;
    }

    fn pipeline(&mut self, pipeline: &Pipeline, values: &mut Values<'_>, context: CommandContext) {
        if let [stage] = pipeline.stages.as_slice() {
            self.command(&stage.command, values, context);
            return;
        }
        let mut fed_by = context.fed_by;
        for stage in &pipeline.stages {
            let first = self.builder.commands.len();
            let shell = self.builder.shell_within(context.shell);
            self.command(&stage.command, &mut values.clone(), CommandContext { shell, fed_by, ..context });
            fed_by = Some(first);
        }
    }

    fn command(&mut self, command: &Command, values: &mut Values<'_>, context: CommandContext) {
        match command {
            Command::Simple(invocation) => self.invocation(invocation, values, context),
            Command::Compound(compound) => self.compound(compound, values, context),
        }
    }

    fn compound(&mut self, compound: &Compound, values: &mut Values<'_>, context: CommandContext) {
        if compound.redirections.is_empty() {
            self.construct(&compound.construct, values, context);
            return;
        }
        // A redirection that fails leaves the construct undone.
        let before = values.clone();
        self.construct(&compound.construct, values, context);
        values.merge(&before);
        self.listed(Vec::new(), Vec::new(), &compound.redirections, &before, context, self.builder.commands.len());
    }

    fn construct(&mut self, construct: &Construct, values: &mut Values<'_>, context: CommandContext) {
        match construct {
            Construct::Subshell(body) => {
                let shell = self.builder.shell_within(context.shell);
                self.list(body, &mut values.clone(), CommandContext { shell, ..context });
            }
            Construct::Group(body) => self.list(body, values, context),
            Construct::For { variable, words, body } => self.for_loop(variable, words, body, values, context),
            Construct::If { branches, otherwise } => self.branches(branches, otherwise.as_ref(), values, context),
            Construct::Case { subject, arms } => self.case(subject, arms, values, context),
            Construct::WhileRead { variable, body, .. } => {
                self.read(variable, context.in_branch());
                self.loop_body(variable, Value::Unknown, body, values, context);
            }
            Construct::Condition(condition) => self.condition(condition, values, context),
        }
    }

    fn for_loop(
        &mut self,
        variable: &str,
        words: &[UnexpandedWord],
        body: &List,
        values: &mut Values<'_>,
        context: CommandContext,
    ) {
        let mut items = Vec::new();
        for word in words {
            items.extend(self.word(word, Splitting::Fields, values, context));
        }
        let is_known = items.iter().all(|item| item.certainty != Certainty::Unknown);
        let total = self.iterations * items.len().max(1);
        if !is_known || items.len() > MAX_UNROLLED_WORDS || total > MAX_ITERATIONS {
            self.loop_body(variable, Value::Unknown, body, values, context);
            return;
        }
        let outer = std::mem::replace(&mut self.iterations, total);
        let is_exact = items.iter().all(|item| item.certainty == Certainty::Literal);
        for item in items {
            if is_exact {
                values.set(variable, Value::Literal(item.text));
                self.list(body, values, context.in_branch());
            } else {
                self.loop_body(variable, Value::of(item), body, values, context);
            }
        }
        self.iterations = outer;
    }

    /// Forecasts a body that runs any number of times.
    fn loop_body(
        &mut self,
        variable: &str,
        value: Value,
        body: &List,
        values: &mut Values<'_>,
        context: CommandContext,
    ) {
        values.forget_assigned(body);
        values.set(variable, value);
        self.list(body, values, context.in_branch());
        values.forget_assigned(body);
        values.set(variable, Value::Unknown);
    }

    fn branches(
        &mut self,
        branches: &[(List, List)],
        otherwise: Option<&List>,
        values: &mut Values<'_>,
        context: CommandContext,
    ) {
        let context = context.in_branch();
        let mut ends = Vec::new();
        for (condition, body) in branches {
            self.list(condition, values, context);
            let mut taken = values.clone();
            self.list(body, &mut taken, context);
            ends.push(taken);
        }
        if let Some(body) = otherwise {
            self.list(body, values, context);
        }
        for end in &ends {
            values.merge(end);
        }
    }

    fn case(
        &mut self,
        subject: &UnexpandedWord,
        arms: &[(Vec<UnexpandedWord>, List)],
        values: &mut Values<'_>,
        context: CommandContext,
    ) {
        let context = context.in_branch();
        self.word(subject, Splitting::Single, values, context);
        let before = values.clone();
        for (patterns, body) in arms {
            for pattern in patterns {
                self.word(pattern, Splitting::Single, &before, context);
            }
            let mut taken = before.clone();
            self.list(body, &mut taken, context);
            values.merge(&taken);
        }
    }

    /// Lists the `read` of a loop.
    fn read(&mut self, variable: &str, context: CommandContext) {
        let words = ["read", "-r", variable].map(ScriptWord::literal).to_vec();
        self.push(SimpleCommand { words, ..bare(context) });
    }

    fn condition(&mut self, condition: &Condition, values: &Values<'_>, context: CommandContext) {
        let first = self.builder.commands.len();
        let mut words = vec![ScriptWord::literal("[[")];
        self.condition_words(condition, values, context, &mut words);
        words.push(ScriptWord::literal("]]"));
        let index = self.builder.commands.len();
        let fed_by = context.fed_by.or((first < index).then_some(first));
        self.push(SimpleCommand { words, fed_by, ..bare(context) });
    }

    fn condition_words(
        &mut self,
        condition: &Condition,
        values: &Values<'_>,
        context: CommandContext,
        words: &mut Vec<ScriptWord>,
    ) {
        match condition {
            Condition::Not(inner) => {
                words.push(ScriptWord::literal("!"));
                self.condition_words(inner, values, context, words);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let sign = if matches!(condition, Condition::And(..)) { "&&" } else { "||" };
                self.condition_words(left, values, context, words);
                words.push(ScriptWord::literal(sign));
                self.condition_words(right, values, context, words);
            }
            Condition::Unary(test, operand) => {
                words.push(ScriptWord::literal(test.sign()));
                words.extend(self.word(operand, Splitting::Single, values, context));
            }
            Condition::Matches(left, right) | Condition::Differs(left, right) => {
                let sign = if matches!(condition, Condition::Matches(..)) { "==" } else { "!=" };
                words.extend(self.word(left, Splitting::Single, values, context));
                words.push(ScriptWord::literal(sign));
                words.extend(self.word(right, Splitting::Single, values, context));
            }
        }
    }

    fn invocation(&mut self, invocation: &Invocation, values: &mut Values<'_>, context: CommandContext) {
        let first = self.builder.commands.len();
        let mut words = Vec::new();
        for word in &invocation.words {
            words.extend(self.word(word, Splitting::Fields, values, context));
        }
        let before = values.clone();
        let mut assignments = Vec::new();
        for assignment in &invocation.assignments {
            let mut word = self.word(&assignment.value, Splitting::Single, values, context);
            let value = word.pop().unwrap_or_else(|| ScriptWord::literal(""));
            values.set(&assignment.name, Value::of(value.clone()));
            let text = format!("{}={}", assignment.name, value.text);
            assignments.push(ScriptWord { text, certainty: value.certainty });
        }
        // Before a command the values hold for that command only. Words that may all vanish leave no command.
        let is_command = words.iter().any(|word| word.certainty != Certainty::Unknown);
        if is_command {
            values.clone_from(&before);
        } else if !words.is_empty() {
            values.merge(&before);
        }
        declare(&words, values);
        let visible = if is_command { &before } else { &*values };
        // Uncertainties of a command are about its name.
        self.builder.current_span = invocation.words.first().map(|word| word.span.clone());
        self.listed(assignments, words, &invocation.redirections, visible, context, first);
        self.builder.current_span = None;
        if !invocation.redirections.is_empty() && !invocation.words.is_empty() {
            // A redirection that fails leaves the command undone.
            values.merge(&before);
        }
    }

    /// Lists a command whose words are known; `first` is the first command of its substitutions.
    fn listed(
        &mut self,
        assignments: Vec<ScriptWord>,
        words: Vec<ScriptWord>,
        redirections: &[Redirection],
        values: &Values<'_>,
        context: CommandContext,
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
                    input = self.word(word, Splitting::Single, values, context).pop();
                    continue;
                }
                Operation::HereDocument(index) => {
                    let body = self.program.documents.get(*index);
                    input = body.and_then(|body| self.word(body, Splitting::Single, values, context).pop());
                    continue;
                }
                Operation::Duplicate(_) | Operation::Close => continue,
            };
            redirects.push(Redirect { target: self.target(word, values, context), access });
        }
        let index = self.builder.commands.len();
        if let Some(input) = input {
            self.builder.inputs.insert(index, input);
        }
        let fed_by = context.fed_by.or((first < index).then_some(first));
        self.push(SimpleCommand { assignments, words, redirects, fed_by, ..bare(context) });
    }

    /// The file of a redirection. Several words are an error when it runs, so they are not certain.
    fn target(&mut self, word: &UnexpandedWord, values: &Values<'_>, context: CommandContext) -> ScriptWord {
        let mut fields = self.word(word, Splitting::Fields, values, context);
        match (fields.pop(), fields.is_empty()) {
            (Some(target), true) => target,
            (last, _) => {
                let texts: Vec<String> = fields.into_iter().chain(last).map(|field| field.text).collect();
                ScriptWord { text: texts.join(" "), certainty: Certainty::Unknown }
            }
        }
    }

    fn push(&mut self, command: SimpleCommand) {
        self.builder.list(command, 0);
    }
}

/// A command without words at some place.
fn bare(context: CommandContext) -> SimpleCommand {
    SimpleCommand {
        assignments: Vec::new(),
        words: Vec::new(),
        redirects: Vec::new(),
        wrappers: Vec::new(),
        shell: context.shell,
        flow: context.flow,
        fed_by: context.fed_by,
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
