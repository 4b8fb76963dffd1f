/** Words for numbers, files and hunks, the same in every view. */

import type { DiffFile, DiffHunk, FileSide, RowKind, TextFormat } from "./rows.js";

const NUMBERS = new Intl.NumberFormat("en-US");

export function formatNumber(value: number): string {
  return NUMBERS.format(value);
}

/** Number with a noun: `1 hunk`, `3 hunks`. */
export function count(value: number, noun: string): string {
  return `${formatNumber(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Time since the start of a wait. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function formatSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 10_000_000) return `${formatNumber(Math.ceil(bytes / 1000))} kB`;
  return `${formatNumber(Math.floor(bytes / 1_000_000))} MB`;
}

/** Word for screen readers before the text of a row. */
export const ROW_WORDS: Record<RowKind, string> = {
  context: "context",
  added: "added",
  removed: "removed",
  fold: "unchanged",
  noFinalNewline: "note",
};

export const ROW_SIGNS: Record<RowKind, string> = {
  context: " ",
  added: "+",
  removed: "\u2212",
  fold: " ",
  noFinalNewline: "\\",
};

/** Accessible name of a hunk: `hunk 2 of 5, 3 added, 1 removed`. */
export function hunkName(hunk: DiffHunk, number: number, total: number): string {
  return `hunk ${number} of ${total}, ${formatNumber(hunk.added)} added, ${formatNumber(hunk.removed)} removed`;
}

/** Header of a hunk in the unified format. */
export function hunkRange(hunk: DiffHunk): string {
  const range = (start: number, lines: number): string => {
    if (lines === 1) return `${start}`;
    // An empty side names the line before it.
    return lines === 0 ? `${Math.max(0, start - 1)},0` : `${start},${lines}`;
  };
  return `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`;
}

/** Description of one side of a file: `148 lines, CRLF`. */
export function sideFacts(format: TextFormat | undefined, side: FileSide): string {
  if (side.kind === "absent") return "no file";
  if (side.kind === "link") return `symbolic link to ${side.target ?? ""}`;
  if (!format) return side.size === undefined ? "" : formatSize(side.size);
  const facts = [count(format.lines, "line")];
  if (format.lineEnding) facts.push(format.lineEnding === "mixed" ? "mixed line endings" : format.lineEnding);
  if (format.encoding && format.encoding !== "UTF-8") facts.push(format.encoding);
  if (format.byteOrderMark) facts.push("byte order mark");
  return facts.join(", ");
}

/** Facts about a file that its rows do not show: format, mode and link changes. */
export function fileFacts(file: DiffFile): string[] {
  const facts: string[] = [];
  const { oldFormat: old, newFormat: now, before, after } = file;
  if (old && now) {
    if (old.lineEnding && now.lineEnding && old.lineEnding !== now.lineEnding) {
      facts.push(`line endings change from ${old.lineEnding} to ${now.lineEnding}`);
    }
    if (old.encoding !== now.encoding) {
      facts.push(`encoding changes from ${old.encoding ?? "binary"} to ${now.encoding ?? "binary"}`);
    }
    if (old.byteOrderMark !== now.byteOrderMark) {
      facts.push(now.byteOrderMark ? "a byte order mark is added" : "the byte order mark is removed");
    }
  } else if (now?.encoding && now.encoding !== "UTF-8") {
    facts.push(`encoding is ${now.encoding}`);
  }
  if (before.kind === "file" && after.kind === "file" && before.mode !== after.mode) {
    facts.push(`mode changes from ${octal(before.mode)} to ${octal(after.mode)}`);
  } else if (before.kind === "absent" && after.kind === "file" && ((after.mode ?? 0) & 0o111) !== 0) {
    facts.push("executable");
  }
  if (before.kind === "link" || after.kind === "link") {
    const side = (state: FileSide): string => (state.kind === "link" ? `link to ${state.target ?? ""}` : state.kind);
    facts.push(`${side(before)} becomes ${side(after)}`);
  }
  return facts;
}

function octal(mode: number | undefined): string {
  return `0${((mode ?? 0) & 0o7777).toString(8)}`;
}

/** Sentence in place of rows. Absent if the file has rows. */
export function noDiffSentence(file: DiffFile): string | undefined {
  if (file.problem !== undefined) return `This change cannot be applied: ${file.problem}`;
  switch (file.noDiff) {
    case "unchanged":
      return fileFacts(file).length > 0 || file.operation !== "update"
        ? "The content does not change."
        : "(no changes)";
    case "binary":
      return `Binary content: ${binarySizes(file)}. It is not shown by line.`;
    case "contentGone":
      return "The content is no longer stored.";
    case "withheld":
      return "Policy does not allow this surface to read the file.";
    case "notCompared":
      return "Too large for the list. Open the full diff to compare it.";
    default:
      return undefined;
  }
}

function binarySizes(file: DiffFile): string {
  const size = (side: FileSide): string => (side.kind === "file" ? formatSize(side.size ?? 0) : "none");
  return `${size(file.before)} before, ${size(file.after)} after`;
}

/** Lines above a file's hunks: the markers of seed `004…` for new and deleted files. */
export function fileMarkers(file: DiffFile): string[] | undefined {
  if (file.operation === "create") return ["--- /dev/null", `+++ ${file.path} (new file)`];
  if (file.operation === "delete") return [`--- ${file.path}`, "+++ /dev/null (deleted)"];
  return undefined;
}

/** Word for the operation in a list of files. Empty for an update. */
export function operationWord(file: DiffFile): string {
  return { create: "new", update: "", delete: "deleted", rename: "renamed" }[file.operation];
}

/** Escapes control, bidi and invisible characters of untrusted text for display. Line breaks become spaces. */
export function escapeUntrusted(text: string): string {
  return text
    .replace(/[\n\r\t]+/g, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{115f}\u{1160}\u{3164}\u{ffa0}]/gu, escapeCharacter);
}

/** As `escapeUntrusted`, for text of several lines: line breaks and tabs stay. */
export function escapeUntrustedLines(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{115f}\u{1160}\u{3164}\u{ffa0}]/gu, (character) =>
      character === "\n" || character === "\t" ? character : escapeCharacter(character),
    );
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** `true` if the sign of a carriage return helps. */
export function differentEndings(file: DiffFile): boolean {
  const { oldFormat: old, newFormat: now } = file;
  return (
    [old, now].some((format) => format?.lineEnding === "mixed") || (!!old && !!now && old.lineEnding !== now.lineEnding)
  );
}
