/** Diffs for stories and tests in a short notation: ` `, `-` and `+` before a line, `⟦…⟧` around changed words. */

import type { DiffFile, DiffHunk, DiffPage, DiffRow, PageRequest, PairedRow, SyntaxSpan } from "../../diff/rows.js";

export interface FileFixture {
  file: DiffFile;
  rows: DiffRow[];
  hunks: DiffHunk[];
}

const TOKENS: [RegExp, SyntaxSpan["token"]][] = [
  [/\/\/[/!]?.*/y, "comment"],
  [/#\[.*?\]$/y, "attribute"],
  [/"(?:[^"\\]|\\.)*"/y, "string"],
  [/\b(?:use|pub|struct|impl|fn|let|for|in|if|return|mut|self|crate|match|else)\b/y, "keyword"],
  [/\b[A-Z]\w*\b/y, "type"],
  [/\b[a-z_]\w*(?=!?\()/y, "function"],
  [/\b\d+\b/y, "number"],
];

function syntaxOf(text: string): SyntaxSpan[] {
  const spans: SyntaxSpan[] = [];
  for (let at = 0; at < text.length;) {
    const found = TOKENS.map(([pattern, token]) => {
      pattern.lastIndex = at;
      return { token, length: pattern.exec(text)?.[0].length ?? 0 };
    }).find(({ length }) => length > 0);
    if (found) spans.push({ start: at, end: at + found.length, token: found.token });
    const word = /\w+/y;
    word.lastIndex = at;
    at += found?.length ?? word.exec(text)?.[0].length ?? 1;
  }
  return spans;
}

export function rowFrom(line: string, place: { old: number; new: number; hunk?: number; part?: number }): DiffRow {
  const marked = line.slice(1);
  const words = [];
  let text = "";
  let start = 0;
  for (const character of marked) {
    if (character === "⟦") start = text.length;
    else if (character === "⟧") words.push({ start, end: text.length });
    else text += character;
  }
  const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "context";
  return {
    kind,
    folded: 0,
    content: { text, words, syntax: syntaxOf(text), escapes: [], terminator: "lf" },
    ...(kind !== "added" && { oldLine: place.old }),
    ...(kind !== "removed" && { newLine: place.new }),
    ...(place.hunk !== undefined && { hunk: place.hunk }),
    ...(kind !== "context" && place.part !== undefined && { part: place.part }),
  };
}

/** File with hunks. Each hunk begins with `@@ OLD NEW`. */
export function fileFrom(path: string, text: string, facts: Partial<DiffFile> = {}): FileFixture {
  const rows: DiffRow[] = [];
  const hunks: DiffHunk[] = [];
  const place = { old: 1, new: 1, hunk: 0, part: 0 };
  let wasChanged = false;
  for (const line of text.split("\n")) {
    const head = /^@@ (\d+) (\d+)/.exec(line);
    if (head) {
      Object.assign(place, { old: Number(head[1]), new: Number(head[2]), hunk: hunks.length + 1, part: 0 });
      hunks.push({
        number: place.hunk,
        parts: 0,
        added: 0,
        removed: 0,
        oldStart: place.old,
        oldLines: 0,
        newStart: place.new,
        newLines: 0,
        firstRow: rows.length,
        rows: 0,
      });
      wasChanged = false;
      continue;
    }
    const hunk = hunks.at(-1);
    if (hunk === undefined) continue;
    const isChange = !line.startsWith(" ");
    if (isChange && !wasChanged) hunk.parts = ++place.part;
    wasChanged = isChange;
    const row = rowFrom(line === "" ? " " : line, place);
    rows.push(row);
    hunk.rows++;
    if (row.oldLine !== undefined) hunk.oldLines++;
    if (row.newLine !== undefined) hunk.newLines++;
    if (row.kind === "added") hunk.added++;
    if (row.kind === "removed") hunk.removed++;
    if (row.oldLine !== undefined) place.old++;
    if (row.newLine !== undefined) place.new++;
  }
  const format = { encoding: "UTF-8" as const, lineEnding: "LF" as const, byteOrderMark: false, finalNewline: true };
  const file: DiffFile = {
    path,
    operation: "update",
    before: { kind: "file", size: 4200, mode: 0o100644, hash: `${path} before` },
    after: { kind: "file", size: 4300, mode: 0o100644, hash: `${path} after` },
    oldFormat: { ...format, lines: 148 },
    newFormat: { ...format, lines: 154 },
    added: hunks.reduce((sum, hunk) => sum + hunk.added, 0),
    removed: hunks.reduce((sum, hunk) => sum + hunk.removed, 0),
    hunks: hunks.length,
    conflicts: 0,
    ...facts,
  };
  return { file, rows, hunks };
}

/** Serves pages of fixtures, as an engine does. */
export function pageServer(files: FileFixture[], previewHash: string): (request: PageRequest) => Promise<DiffPage> {
  return (request) => {
    const fixture = files.find(({ file }) => file.path === request.path);
    if (!fixture) return Promise.reject(new Error(`no fixture for ${request.path}`));
    const { file, rows, hunks } = fixture;
    const pairs = request.layout === "sideBySide" ? pairsOnce(fixture) : [];
    const list = request.layout === "sideBySide" ? pairs : rows;
    const first = request.fromHunk === undefined ? request.fromRow : (hunks[request.fromHunk - 1]?.firstRow ?? 0);
    const last = Math.min(list.length, first + request.rows);
    return Promise.resolve({
      previewHash,
      file: { ...file, totalRows: list.length },
      fromRow: first,
      rows: request.layout === "unified" ? rows.slice(first, last) : [],
      pairs: pairs.slice(first, last),
      hunks: hunks.filter((hunk) => hunk.firstRow < last && hunk.firstRow + hunk.rows > first),
      hasMore: last < list.length,
    });
  };
}

const paired = new WeakMap<FileFixture, PairedRow[]>();

function pairsOnce(fixture: FileFixture): PairedRow[] {
  const pairs = paired.get(fixture) ?? pairsOf(fixture.rows);
  paired.set(fixture, pairs);
  return pairs;
}

export function pairsOf(rows: DiffRow[]): PairedRow[] {
  const pairs: PairedRow[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at] as DiffRow;
    if (row.kind !== "added" && row.kind !== "removed") {
      pairs.push({ both: row });
      at++;
      continue;
    }
    const end = rows.findIndex((other, index) => index > at && other.kind !== "added" && other.kind !== "removed");
    const block = rows.slice(at, end < 0 ? rows.length : end);
    const removed = block.filter(({ kind }) => kind === "removed");
    const added = block.filter(({ kind }) => kind === "added");
    for (let index = 0; index < Math.max(removed.length, added.length); index++) {
      const [old, now] = [removed[index], added[index]];
      pairs.push({ ...(old && { old }), ...(now && { new: now }) });
    }
    at += block.length;
  }
  return pairs;
}

export function foldRow(folded: number, old: number, now: number): DiffRow {
  return {
    kind: "fold",
    folded,
    oldLine: old,
    newLine: now,
    content: { text: "", words: [], syntax: [], escapes: [], terminator: "lf" },
  };
}
