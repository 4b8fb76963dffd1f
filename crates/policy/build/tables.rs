//! One grammar file after another becomes Rust code: statics that need no work at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use toml::{Table, Value};

use crate::vocabulary::{Kind, Spec, Style, named};

/// Generated code, and the names that are taken.
#[derive(Default)]
pub(crate) struct Tables {
    statics: String,
    /// Program names with the number of their grammar.
    names: BTreeMap<String, usize>,
    count: usize,
}

/// One verb with all that its file says about it.
struct Verb {
    tables: Vec<String>,
    operands: Vec<Spec>,
    after: Vec<Spec>,
    effects: u32,
    bare: u32,
    numbers: bool,
    harmless: bool,
    /// Options of the program count behind the verb as well.
    globals: bool,
}

type Options = BTreeMap<String, Spec>;

/// Option tables that the verbs of one file share.
struct Shared {
    groups: BTreeMap<String, (String, bool)>,
    globals: Option<(String, bool)>,
    globals_anywhere: bool,
    /// The table of options that every program has.
    common: String,
}

impl Tables {
    /// Adds the programs of one file.
    pub(crate) fn add(&mut self, file: &Table) -> Result<(), String> {
        let known = [
            "names", "style", "globals", "options", "group", "verb", "operands", "after", "effects", "bare", "numbers",
        ];
        if let Some(key) = file.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("`{key}` is no key of a grammar"));
        }
        for name in strings(file.get("names"))? {
            if self.names.insert(name.clone(), self.count).is_some() {
                return Err(format!("`{name}` has a grammar already"));
            }
        }
        let style = file.get("style").map_or(Ok("getopt"), |value| value.as_str().ok_or("`style` is a text"))?;
        let style = named(Style::ALL, style)?;
        let globals_anywhere = match file.get("globals").and_then(Value::as_str) {
            None | Some("anywhere") => true,
            Some("before") => false,
            Some(other) => return Err(format!("`globals` is \"anywhere\" or \"before\", not \"{other}\"")),
        };
        let groups = self.groups(file)?;
        let globals = match file.get("options") {
            Some(table) => {
                let options = options(table.as_table().ok_or("`options` is a table")?)?;
                Some((self.option_table(&options), options.values().all(|spec| spec.is_harmless())))
            }
            None => None,
        };
        // Every program says what it is.
        let common: Table =
            [("--help --version", "flag instead dry")].map(|(k, v)| (k.to_owned(), v.into())).into_iter().collect();
        let common = options(&common)?;
        let common = self.option_table(&common);
        let shared = Shared { groups, globals, globals_anywhere, common };
        let program = self.verb(file, &shared, true)?;
        let mut verbs = Vec::new();
        if let Some(table) = file.get("verb") {
            for (names, verb) in table.as_table().ok_or("`verb` is a table")? {
                let verb = self
                    .verb(verb.as_table().ok_or("a verb is a table")?, &shared, false)
                    .map_err(|problem| format!("verb {names}: {problem}"))?;
                // Several verbs that are alike stand in one heading: `build, b`.
                for name in names.split(',') {
                    verbs.push((name.trim().to_owned(), render(name.trim(), &verb)));
                }
            }
        }
        verbs.sort();
        if let Some(pair) = verbs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("the verb `{}` stands there twice", pair[0].0));
        }
        let verbs: Vec<String> = verbs.into_iter().map(|(_, code)| code).collect();
        let number = self.count;
        writeln!(
            self.statics,
            "static GRAMMAR_{number}: Grammar = Grammar {{ style: Style::{style:?}, \
             program: {}, verbs: &[{}] }};",
            render("", &program),
            verbs.join(",")
        )
        .map_err(|error| error.to_string())?;
        self.count += 1;
        Ok(())
    }

    fn groups(&mut self, file: &Table) -> Result<BTreeMap<String, (String, bool)>, String> {
        let mut groups = BTreeMap::new();
        let Some(table) = file.get("group") else { return Ok(groups) };
        for (name, group) in table.as_table().ok_or("`group` is a table")? {
            let options = options(group.as_table().ok_or("a group is a table")?)?;
            let harmless = options.values().all(|spec| spec.is_harmless());
            groups.insert(name.clone(), (self.option_table(&options), harmless));
        }
        Ok(groups)
    }

    fn verb(&mut self, table: &Table, shared: &Shared, is_program: bool) -> Result<Verb, String> {
        let specs = |key: &str| -> Result<Vec<Spec>, String> {
            let text = table.get(key).map_or(Ok(""), |value| value.as_str().ok_or("operands are a text"))?;
            text.split_whitespace().map(|slot| Spec::parse(slot, '+')).collect()
        };
        let mut verb = Verb {
            tables: Vec::new(),
            operands: specs("operands")?,
            after: specs("after")?,
            effects: traits(table, "effects")?,
            bare: traits(table, "bare")?,
            numbers: table.get("numbers").and_then(Value::as_bool).unwrap_or(false),
            harmless: true,
            globals: is_program || shared.globals_anywhere,
        };
        if !is_program {
            let own: Table =
                table.iter().filter(|(key, _)| key.starts_with('-')).map(|(k, v)| (k.clone(), v.clone())).collect();
            let known = ["use", "operands", "after", "effects", "bare", "numbers"];
            if let Some(key) = table.keys().find(|key| !key.starts_with('-') && !known.contains(&key.as_str())) {
                return Err(format!("`{key}` is no key of a verb"));
            }
            let own = options(&own)?;
            verb.harmless &= own.values().all(|spec| spec.is_harmless());
            verb.tables.push(self.option_table(&own));
            for name in table.get("use").and_then(Value::as_str).unwrap_or_default().split_whitespace() {
                let (table, harmless) = shared.groups.get(name).ok_or_else(|| format!("there is no group `{name}`"))?;
                verb.tables.push(table.clone());
                verb.harmless &= harmless;
            }
        }
        if let (true, Some((table, harmless))) = (verb.globals, &shared.globals) {
            verb.tables.push(table.clone());
            verb.harmless &= harmless;
        }
        verb.tables.push(shared.common.clone());
        Ok(verb)
    }

    fn option_table(&mut self, options: &Options) -> String {
        let name = format!("OPTIONS_{}", self.statics.len());
        let rows: Vec<String> = options.iter().map(|(name, spec)| format!("({name:?}, {})", code(*spec))).collect();
        self.statics.push_str(&format!("static {name}: &[(&str, Spec)] = &[{}];\n", rows.join(",")));
        name
    }

    /// All of it as Rust.
    pub(crate) fn code(&self) -> String {
        let names: Vec<String> =
            self.names.iter().map(|(name, number)| format!("({name:?}, &GRAMMAR_{number})")).collect();
        format!("{}pub(super) static GRAMMARS: &[(&str, &Grammar)] = &[{}];\n", self.statics, names.join(",\n"))
    }
}

/// Options by name; each name once.
fn options(table: &Table) -> Result<Options, String> {
    let mut options = Options::new();
    let mut seen = BTreeSet::new();
    for (names, spec) in table {
        let spec = Spec::parse(spec.as_str().ok_or_else(|| format!("`{names}` has no text"))?, ' ')
            .map_err(|problem| format!("`{names}`: {problem}"))?;
        if spec.kind == Kind::Commit || spec.repeated {
            return Err(format!("`{names}`: only an operand can be that"));
        }
        for name in names.split_whitespace() {
            if !seen.insert(name.to_owned()) {
                return Err(format!("`{name}` stands there twice"));
            }
            options.insert(name.to_owned(), spec);
        }
    }
    Ok(options)
}

/// The effects that a key names.
fn traits(table: &Table, key: &str) -> Result<u32, String> {
    match table.get(key).and_then(Value::as_str) {
        Some(effects) => Ok(Spec::parse(&format!("flag {effects}"), ' ')?.traits),
        None => Ok(0),
    }
}

fn strings(value: Option<&Value>) -> Result<Vec<String>, String> {
    let list = value.and_then(Value::as_array).ok_or("`names` is a list")?;
    list.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(|| "a name is a text".to_owned())).collect()
}

fn render(name: &str, verb: &Verb) -> String {
    let specs = |specs: &[Spec]| specs.iter().map(|spec| code(*spec)).collect::<Vec<_>>().join(",");
    format!(
        "Verb {{ name: {name:?}, tables: &[{}], operands: &[{}], after: &[{}], traits: {}, bare: {}, numbers: {}, harmless: {} }}",
        verb.tables.join(","),
        specs(&verb.operands),
        specs(&verb.after),
        verb.effects,
        verb.bare,
        verb.numbers,
        verb.harmless
    )
}

fn code(spec: Spec) -> String {
    let Spec { kind, optional, repeated, traits } = spec;
    format!("Spec {{ kind: Kind::{kind:?}, optional: {optional}, repeated: {repeated}, traits: {traits} }}")
}
