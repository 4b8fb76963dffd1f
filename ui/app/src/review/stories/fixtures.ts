/** Changes for the stories, after the pictures of the design. */

import type { ConflictRow, DiffFile } from "../../diff/rows.js";
import type { Review } from "../model.js";
import { fileFrom, foldRow, pageServer, rowFrom, type FileFixture } from "./notation.js";

const CLI = fileFrom(
  "src/cli.rs",
  `@@ 12 12
 #[derive(Debug, clap::Args)]
 pub struct List {
-    /// Show ⟦every column⟧
+    /// Show ⟦all columns, not only the first four⟧
     #[arg(long, short)]
     verbose: bool,
+
+    /// Print one JSON object a line instead of a table
+    #[arg(long, conflicts_with = "verbose")]
+    json: bool,
 }
@@ 58 62
         let rows = store.rows(&self.filter)?;
-        table::print(⟦&rows⟧, self.verbose)?;
-        Ok(())
+        if self.json {
+            return json::print_lines(&mut out, &rows);
+        }
+        table::print(⟦&mut out, &rows⟧, self.verbose)
     }`,
  {
    oldFormat: { encoding: "UTF-8", lineEnding: "CRLF", byteOrderMark: false, finalNewline: true, lines: 148 },
    newFormat: { encoding: "UTF-8", lineEnding: "LF", byteOrderMark: false, finalNewline: true, lines: 154 },
  },
);

const LIST = fileFrom(
  "src/commands/list.rs",
  `@@ 7 7
 use crate::store::{Filter, Row};
+use crate::output::json;
 use crate::table;
@@ 31 32
 impl Listing {
-    pub fn write(&self, out: &mut ⟦Stdout⟧) -> Result<()> {
-        for row in &self.rows {
+    pub fn write(&self, out: &mut ⟦impl Write⟧) -> Result<()> {
+        let last = self.rows.len().saturating_sub(1);
+        for (at, row) in self.rows.iter().enumerate() {
+            if at == last {
+                out.flush()?;
+            }
             row.write(out)?;`,
);

const TEST_LINES = [
  "use sayso_test::Sandbox;",
  "",
  "#[test]",
  "fn list_json_prints_one_object_a_line() {",
  "    let sandbox = Sandbox::with_changes(2);",
  '    let output = sandbox.run(["list", "--json"]);',
  "    assert_eq!(output.lines().count(), 2);",
  '    assert!(output.ends_with("}\\n"));',
  "}",
  "",
  "#[test]",
  "fn list_without_json_is_unchanged() {",
  "    let sandbox = Sandbox::with_changes(2);",
  '    assert_eq!(sandbox.run(["list"]), include_str!("list.txt"));',
  "}",
  "",
  "#[test]",
  "fn list_json_excludes_verbose() {",
  '    let output = Sandbox::empty().fail(["list", "--json", "--verbose"]);',
  "    assert_eq!(output.code, 2);",
  "}",
  "",
  "#[test]",
  "fn list_json_of_nothing_is_empty() {}",
];

const TESTS = fileFrom("tests/list.rs", `@@ 0 1\n${TEST_LINES.map((line) => `+${line}`).join("\n")}`, {
  operation: "create",
  before: { kind: "absent" },
});

export const FILES: FileFixture[] = [CLI, LIST, TESTS];

export const REVIEW: Review = {
  change: 41,
  previewHash: "preview-41",
  subject: { kind: "files" },
  placement: "proposed",
  files: FILES.map(({ file }) => file),
  agent: "claude",
  agentReason: "Adding the flag, the JSON writer and a test for both.",
  notes: [{ severity: "warning", text: "Line endings of src/cli.rs change from CRLF to LF" }],
  sinceMs: Date.now() - 12_000,
  predecessors: [],
};

/** Whole file of the full diff, with a folded region. */
export const WHOLE_CLI: FileFixture = wholeCli();

function wholeCli(): FileFixture {
  const head = [
    "//! Command line of `ledger`.",
    "",
    "use std::io::{self, Write};",
    "",
    "use anyhow::Result;",
    "use clap::Parser;",
    "",
    "use crate::store::{Filter, Store};",
    "use crate::table;",
    "",
    "/// List recorded changes",
  ].map((line, index) => rowFrom(` ${line}`, { old: index + 1, new: index + 1 }));
  const [first, second] = CLI.hunks;
  const inner = ["", "impl List {"].map((line, index) => rowFrom(` ${line}`, { old: 18 + index, new: 22 + index }));
  const run = [
    "    pub fn run(&self, store: &Store) -> Result<()> {",
    "        let mut out = io::stdout().lock();",
    "        self.filter.check()?;",
    "",
  ].map((line, index) => rowFrom(` ${line}`, { old: 54 + index, new: 58 + index }));
  const of = (hunk: number) => CLI.rows.filter((row) => row.hunk === hunk);
  const rows = [...head, ...of(1), ...inner, foldRow(34, 20, 24), ...run, ...of(2), foldRow(86, 62, 68)];
  const hunks = [
    { ...(first as NonNullable<typeof first>), firstRow: head.length },
    { ...(second as NonNullable<typeof second>), firstRow: rows.indexOf(of(2)[0] as (typeof rows)[0]) },
  ];
  return { file: CLI.file, rows, hunks };
}

const SCRIPT =
  'cargo build --release -p ledger-cli\nrm -rf target/package && cargo package -p ledger-cli\ncurl -sS "$RELEASE_URL/hooks/published" -d @target/package/meta.json\n';

const spanOf = (text: string) => ({ start: SCRIPT.indexOf(text), end: SCRIPT.indexOf(text) + text.length });

export const COMMAND_REVIEW: Review = {
  ...REVIEW,
  change: 42,
  previewHash: "preview-42",
  files: [],
  agentReason: "Building the release and telling the release page.",
  notes: [{ severity: "warning", text: "Sends a file to a host that cannot be shown before it runs" }],
  deadlineMs: Date.now() + 42_000,
  subject: {
    kind: "command",
    command: {
      script: SCRIPT,
      directory: "crates/ledger-cli",
      description: "Build, package and publish",
      effects: [
        { kind: "deletes", severity: "critical", text: "target/package/, 38 files, ignored by git" },
        { kind: "network", severity: "warning", text: "POST to the host in $RELEASE_URL, sends meta.json" },
        { kind: "writes", severity: "info", text: "target/release/, target/package/, ignored by git" },
      ],
      doubts: [
        { text: "RELEASE_URL is not set in this session. The shell may set it.", ...spanOf("$RELEASE_URL") },
        { text: "No rule covers curl, and it has not run here before.", ...spanOf("curl") },
      ],
      syntax: { result: "valid", message: "" },
      dryRun: ["cargo", "package", "--list"],
    },
  },
};

export const TOOL_REVIEW: Review = {
  ...REVIEW,
  change: 43,
  previewHash: "preview-43",
  files: [],
  notes: [],
  agentReason: "Filing the flaky test so that it is not lost.",
  subject: {
    kind: "tool",
    tool: {
      name: "mcp__tracker__create_issue",
      argumentsJson: '{"title":"Flaky resize test","labels":["flaky"],"priority":2}',
      arguments: [
        { name: "title", valueJson: '"Flaky resize test"', type: "string", description: "One line.", required: true },
        { name: "labels", valueJson: '["flaky"]', type: "array", required: false },
        { name: "priority", valueJson: "2", type: "number", description: "1 is highest.", required: false },
        { name: "<img src=x onerror=alert(1)>", valueJson: '"\\u202egpj.exe"', required: false },
      ],
      mismatches: ["`body` is required by the schema and missing"],
      paths: [],
    },
  },
};

export const DELEGATION_REVIEW: Review = {
  ...REVIEW,
  change: 44,
  previewHash: "preview-44",
  files: [],
  notes: [],
  subject: {
    kind: "tool",
    tool: {
      name: "Task",
      argumentsJson: '{"prompt":"…"}',
      arguments: [],
      mismatches: [],
      paths: [],
      delegation: {
        agent: "researcher",
        description: "Find all writers of the journal",
        prompt:
          "List every function that appends to the journal.\nFor each, name the lock it holds.\nDo not change files.",
        tools: ["Read", "Glob", "Grep"],
      },
    },
  },
};

const TEMPLATE = CLI.file;

function plain(facts: Partial<DiffFile>): DiffFile {
  const file: DiffFile = { ...TEMPLATE, hunks: 0, added: 0, removed: 0, ...facts };
  delete file.oldFormat;
  delete file.newFormat;
  return file;
}

/** Files that have no lines, and files with facts. */
export const ODD_FILES: FileFixture[] = [
  {
    file: plain({
      path: "assets/logo.png",
      noDiff: "binary",
      before: { kind: "file", size: 20_412, mode: 0o100644 },
      after: { kind: "file", size: 48_000, mode: 0o100644 },
    }),
    rows: [],
    hunks: [],
  },
  {
    file: plain({
      path: "scripts/release.sh",
      noDiff: "unchanged",
      before: { kind: "file", size: 400, mode: 0o100644 },
      after: { kind: "file", size: 400, mode: 0o100755 },
    }),
    rows: [],
    hunks: [],
  },
  { file: plain({ path: "docs/same.md", noDiff: "unchanged" }), rows: [], hunks: [] },
  {
    file: plain({ path: "src/gone.rs", problem: "`old_string` occurs 3 times; it must be unique" }),
    rows: [],
    hunks: [],
  },
  fileFrom(
    "data/names-\u202efdp.txt",
    `@@ 1 1
-Müller
+M⟦u⟧ller \\u{202e}txt.exe
+a very long line that has to wrap because a pending change is never cut: ${"lorem ipsum dolor sit amet ".repeat(9)}`,
    {
      newFormat: { encoding: "Windows-1252", lineEnding: "LF", byteOrderMark: false, finalNewline: false, lines: 2 },
      notes: [{ severity: "critical", text: "The file name contains characters that change the reading direction" }],
    },
  ),
];

/** Change of twenty thousand rows. */
export function hugeFile(rows: number): FileFixture {
  const text: string[] = [];
  for (let hunk = 0; hunk * 40 < rows; hunk++) {
    text.push(`@@ ${hunk * 50 + 1} ${hunk * 50 + 1}`);
    for (let line = 0; line < 40; line++) {
      const sign = line % 8 === 3 ? "-" : line % 8 === 4 || line % 8 === 5 ? "+" : " ";
      text.push(`${sign}    let value_${hunk}_${line} = compute(${line}, "text of line ${line}")?; // hunk ${hunk}`);
    }
  }
  return fileFrom("src/huge.rs", text.join("\n"));
}

export const CONFLICT_ROWS: ConflictRow[] = [
  ["context", 12, 12, 12, "pub struct List {", "pub struct List {", "pub struct List {"],
  ["theirs", 13, 13, 13, "    verbose: bool,", "    verbose: u8,", "    verbose: bool,"],
  ["yours", undefined, undefined, 14, undefined, undefined, "    json: bool,"],
  ["conflict", 14, 14, 15, "    all: bool,", "    everything: bool,", "    all: Option<bool>,"],
  ["context", 15, 15, 16, "}", "}", "}"],
].map(([kind, base, theirs, yours, baseText, theirsText, yoursText]) => ({
  kind,
  folded: 0,
  ...(kind === "conflict" && { conflict: 1 }),
  ...(base !== undefined && { baseLine: base }),
  ...(theirs !== undefined && { theirsLine: theirs }),
  ...(yours !== undefined && { yoursLine: yours }),
  ...(baseText !== undefined && { base: contentFrom(baseText as string) }),
  ...(theirsText !== undefined && { theirs: contentFrom(theirsText as string) }),
  ...(yoursText !== undefined && { yours: contentFrom(yoursText as string) }),
})) as ConflictRow[];

function contentFrom(text: string) {
  return rowFrom(` ${text}`, { old: 1, new: 1 }).content;
}

export { pageServer };
