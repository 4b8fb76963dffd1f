import { EMPTY_CONTENT, type DiffFile, type DiffHunk, type DiffPage, type DiffRow } from "./rows.js";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Reads the rows of a unified diff that the engine made. For previews that have no rows of their own. */
export function pageOfUnified(text: string, file: DiffFile, previewHash: string): DiffPage {
  const rows: DiffRow[] = [];
  const hunks: DiffHunk[] = [];
  let oldLine = 0;
  let newLine = 0;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const head = HUNK.exec(line);
    if (head) {
      oldLine = Number(head[1]);
      newLine = Number(head[3]);
      hunks.push(newHunk(hunks.length + 1, rows.length, oldLine, Number(head[2] ?? 1), newLine, Number(head[4] ?? 1)));
      continue;
    }
    const hunk = hunks.at(-1);
    if (hunk === undefined) continue;
    const row = readRow(line, oldLine, newLine, hunk.number);
    if (row === undefined) continue;
    if (row.oldLine !== undefined) oldLine++;
    if (row.newLine !== undefined) newLine++;
    if (row.kind === "added") hunk.added++;
    if (row.kind === "removed") hunk.removed++;
    hunk.rows++;
    rows.push(row);
  }
  const shown: DiffFile = {
    ...file,
    added: hunks.reduce((sum, hunk) => sum + hunk.added, 0),
    removed: hunks.reduce((sum, hunk) => sum + hunk.removed, 0),
    hunks: hunks.length,
    totalRows: rows.length,
  };
  return { previewHash, file: shown, fromRow: 0, rows, pairs: [], hunks, hasMore: false };
}

function newHunk(
  number: number,
  firstRow: number,
  oldStart: number,
  oldLines: number,
  newStart: number,
  newLines: number,
): DiffHunk {
  return { number, parts: 1, added: 0, removed: 0, oldStart, oldLines, newStart, newLines, firstRow, rows: 0 };
}

function readRow(line: string, oldLine: number, newLine: number, hunk: number): DiffRow | undefined {
  const content = { ...EMPTY_CONTENT, text: line.slice(1) };
  switch (line[0]) {
    case "+":
      return { kind: "added", newLine, content, hunk, folded: 0 };
    case "-":
      return { kind: "removed", oldLine, content, hunk, folded: 0 };
    case "\\":
      return { kind: "noFinalNewline", content, hunk, folded: 0 };
    case " ":
    case undefined:
      return { kind: "context", oldLine, newLine, content, hunk, folded: 0 };
    default:
      return undefined;
  }
}
