import { type Verdict, VerdictSchema } from "@sayso/client/proto/change";
import { create } from "@bufbuild/protobuf";
import { AskMode } from "@sayso/client/proto/intent_service";

import { Agent, write } from "./agent.js";
import type { Engine } from "./engine.js";
import type { ScriptedModel } from "./model.js";

const OLD_TABLE = `use std::fmt;

#[derive(Debug)]
#[derive(Clone)]
pub struct Row {
    pub id: u64,
    pub name: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}
`;

const NEW_TABLE = OLD_TABLE.replace("use std::fmt;", "use std::fmt;\nuse serde::Serialize;")
  .replace(
    "#[derive(Debug)]\n#[derive(Clone)]",
    '#[derive(Debug, Clone, Serialize)]\n#[serde(rename_all = "kebab-case")]',
  )
  .replace("pub id: u64", 'pub id: ChangeId,\n    #[serde(with = "unix_seconds")]\n    pub time: u64');

function lines(count: number, line: (number: number) => string): string {
  return Array.from({ length: count }, (_, index) => line(index + 1)).join("\n");
}

const OLD_CLI = `//! Command line of \`ledger\`.

use clap::Parser;

/// List recorded changes
#[derive(Debug, clap::Args)]
pub struct List {
    /// Show every column
    #[arg(long, short)]
    verbose: bool,
}

${lines(30, (number) => `pub const STEP_${number}: usize = ${number};`)}

impl List {
    pub fn run(&self, store: &Store) -> Result<()> {
        let rows = store.rows(&self.filter)?;
        table::print(&rows, self.verbose)?;
        Ok(())
    }
}
`;

const NEW_CLI = OLD_CLI.replace("/// Show every column", "/// Show all columns, not only the first four")
  .replace(
    "    verbose: bool,\n",
    '    verbose: bool,\n\n    /// Print one JSON object a line instead of a table\n    #[arg(long, conflicts_with = "verbose")]\n    json: bool,\n',
  )
  .replace(
    "        table::print(&rows, self.verbose)?;\n        Ok(())\n",
    "        if self.json {\n            return json::print_lines(&mut out, &rows);\n        }\n        table::print(&mut out, &rows, self.verbose)\n",
  );

const TEST = `use ledger_cli::list;

#[test]
fn two_changes_print_two_lines() {
    let output = list(&["--json"]);
    assert_eq!(output.lines().count(), 2);
}
`;

const approve = (previewHash: string): Verdict =>
  create(VerdictSchema, { previewHash, answer: { answer: { case: "approve", value: {} } } });

/** Files of a small Rust project. */
export async function writeProject(engine: Engine): Promise<void> {
  await engine.write("src/table.rs", OLD_TABLE);
  await engine.write("src/cli.rs", OLD_CLI);
  await engine.write("Cargo.toml", '[package]\nname = "ledger-cli"\n');
}

/** The scene of the design: a finished edit, a finished command, and a change of two files that waits. */
export async function playScene(engine: Engine, model: ScriptedModel): Promise<{ agent: Agent; pending: bigint }> {
  await writeProject(engine);
  const agent = await Agent.start(engine, model, "0f9a41c2-add-json");
  await agent.prompt(
    "Add a `--json` flag to `ledger list` that prints one object a line. Keep the default output as it is, and test it.",
    [
      { thinking: "The table printer builds strings. Serialising the rows is simpler." },
      {
        text: "`list` builds its rows in `src/table.rs` and prints them from `src/cli.rs`. Three steps:\n\n1. Let `Row` be serialised, so both outputs share one type.\n2. Add `--json`; it excludes `--verbose`, which only widens the table.\n3. Test that two changes print two lines.",
      },
      { call: "call_read", tool: "Read", input: { file_path: "src/table.rs", offset: 1, limit: 148 } },
      { call: "call_edit", tool: "Edit", input: { file_path: "src/table.rs", old_string: "…", new_string: "…" } },
    ],
  );
  const edit = await agent.changeFiles([write("src/table.rs", NEW_TABLE)], "call_edit", AskMode.ALWAYS);
  await engine.api.review.decide({ change: edit.change, verdict: approve(edit.previewHash) });
  await agent.results({ call_read: OLD_TABLE, call_edit: "The file was edited." }, [
    { text: "Now the tests." },
    { call: "call_run", tool: "Bash", input: { command: "cargo test -p ledger-cli list -- --nocapture" } },
  ]);
  const run = await agent.submit(
    {
      case: "runCommand",
      value: { command: "cargo test -p ledger-cli list -- --nocapture", description: "Run the tests of list" } as never,
    },
    "call_run",
    AskMode.ALWAYS,
  );
  await engine.api.review.decide({ change: run.change, verdict: approve(run.previewHash) });
  await engine.intents.finish({ change: run.change, exitCode: 0, call: "call_run", session: agent.session });
  const output = [
    "   Compiling ledger-store v0.7.2",
    "   Compiling ledger-cli v0.7.2",
    "    Finished `test` profile [unoptimized + debuginfo] in 14.31s",
    "test list::default_output_is_unchanged ... ok",
    "test list::filter_by_state ... ok",
    "test result: ok. 2 passed; 0 failed",
  ];
  await agent.results({ call_run: output.join("\n") }, [
    { text: "Adding the flag and a test for it." },
    { call: "call_write", tool: "MultiEdit", input: { file_path: "src/cli.rs" } },
  ]);
  const pending = await agent.changeFiles(
    [write("src/cli.rs", NEW_CLI.replace(/\n/g, "\n")), write("tests/list.rs", TEST)],
    "call_write",
    AskMode.ALWAYS,
  );
  return { agent, pending: pending.change };
}

/** Sessions of other agents, in the states of the list. */
export async function playOthers(engine: Engine, model: ScriptedModel): Promise<void> {
  const done = await Agent.start(engine, model, "77aa01-rename", "codex");
  await done.prompt("Rename Req to ModelRequest", [{ text: "Done." }]);
  const change = await done.changeFiles([write("src/wire.rs", "pub struct ModelRequest;\n")], "call_1", AskMode.ALWAYS);
  await engine.api.review.decide({ change: change.change, verdict: approve(change.previewHash) });
  await done.endTurn();

  const denied = await Agent.start(engine, model, "91bc11-drop", "gemini");
  await denied.prompt("Drop the legacy importer", [{ text: "Removing it." }]);
  const drop = await denied.changeFiles(
    [{ case: "delete", value: { path: "src/cli.rs" } } as never],
    "call_2",
    AskMode.ALWAYS,
  );
  await engine.api.review.decide({
    change: drop.change,
    verdict: create(VerdictSchema, {
      previewHash: drop.previewHash,
      answer: { answer: { case: "deny", value: { reason: "It is still used by the tests" } } },
    }),
  });
  await denied.endTurn();

  const running = await Agent.start(engine, model, "a0ff22-split", "opencode");
  await running.prompt("Split the wire parser", [{ text: "Reading the parser first." }]);
}
