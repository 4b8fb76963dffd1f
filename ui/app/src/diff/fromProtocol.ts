/** Conversion of the engine's diff messages to rows. */

import {
  DiffFile_NoDiffReason as Reason,
  DiffLayout as ProtoLayout,
  DiffRow_Kind as Kind,
  LineContent_Terminator as Terminator,
  SyntaxClass,
  TextFormat_Encoding as Encoding,
  TextFormat_LineEnding as Ending,
  ConflictRow_Kind as Conflict,
  type ConflictRow as ProtoConflictRow,
  type DiffFile as ProtoFile,
  type DiffHunk as ProtoHunk,
  type DiffRow as ProtoRow,
  type EscapedSpan as ProtoEscape,
  type LineContent as ProtoContent,
  type SideBySideRow,
  type TextFormat as ProtoFormat,
} from "@sayso/client/proto/diff";
import {
  Operation,
  Severity as ProtoSeverity,
  type Fingerprint,
  type Note as ProtoNote,
} from "@sayso/client/proto/file";
import type { GetDiffResponse } from "@sayso/client/proto/review_service";

import { utf16Offsets } from "./segments.js";
import type {
  ConflictKind,
  ConflictRow,
  DiffFile,
  DiffHunk,
  DiffLayout,
  DiffPage,
  DiffRow,
  EscapedSpan,
  FileOperation,
  FileSide,
  LineContent,
  NoDiffReason,
  Note,
  PairedRow,
  RowKind,
  Severity,
  TextFormat,
  TokenClass,
} from "./rows.js";
import { EMPTY_CONTENT } from "./rows.js";

const TOKENS: Partial<Record<SyntaxClass, TokenClass>> = {
  [SyntaxClass.KEYWORD]: "keyword",
  [SyntaxClass.TYPE]: "type",
  [SyntaxClass.TAG]: "type",
  [SyntaxClass.FUNCTION]: "function",
  [SyntaxClass.STRING]: "string",
  [SyntaxClass.ESCAPE]: "string",
  [SyntaxClass.NUMBER]: "number",
  [SyntaxClass.CONSTANT]: "number",
  [SyntaxClass.COMMENT]: "comment",
  [SyntaxClass.ATTRIBUTE]: "attribute",
};

const KINDS: Record<Kind, RowKind> = {
  [Kind.UNSPECIFIED]: "context",
  [Kind.CONTEXT]: "context",
  [Kind.ADDED]: "added",
  [Kind.REMOVED]: "removed",
  [Kind.FOLD]: "fold",
  [Kind.NO_FINAL_NEWLINE]: "noFinalNewline",
};

const TERMINATORS: Record<Terminator, LineContent["terminator"]> = {
  [Terminator.UNSPECIFIED]: "none",
  [Terminator.LF]: "lf",
  [Terminator.CRLF]: "crlf",
};

export function contentOf(content: ProtoContent | undefined): LineContent {
  if (content === undefined) return EMPTY_CONTENT;
  const at = utf16Offsets(content.text);
  const span = ({ start, end }: { start: number; end: number }) => ({ start: at(start), end: at(end) });
  return {
    text: content.text,
    terminator: TERMINATORS[content.terminator],
    words: content.words.map(span),
    syntax: content.syntax.flatMap((token) => {
      const name = TOKENS[token.class];
      return name === undefined ? [] : [{ ...span(token), token: name }];
    }),
    escapes: content.escapes.map((escape): EscapedSpan => ({ ...span(escape), original: originalOf(escape) })),
  };
}

function originalOf({ original }: ProtoEscape): string {
  switch (original.case) {
    case "characters":
      return Array.from(original.value, (character) => `U+${hex(character.codePointAt(0) ?? 0, 4)}`).join(" ");
    case "undecoded":
      return `bytes ${[...original.value].map((byte) => hex(byte, 2)).join(" ")}`;
    default:
      return "hidden character";
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, "0");
}

export function rowOf(row: ProtoRow): DiffRow {
  return {
    kind: KINDS[row.kind],
    content: contentOf(row.content),
    folded: Number(row.folded),
    ...(row.oldLine !== undefined && { oldLine: Number(row.oldLine) }),
    ...(row.newLine !== undefined && { newLine: Number(row.newLine) }),
    ...(row.hunk !== undefined && { hunk: row.hunk }),
    ...(row.part !== undefined && { part: row.part }),
  };
}

function pairOf(row: SideBySideRow): PairedRow {
  return {
    ...(row.both !== undefined && { both: rowOf(row.both) }),
    ...(row.old !== undefined && { old: rowOf(row.old) }),
    ...(row.new !== undefined && { new: rowOf(row.new) }),
  };
}

const CONFLICTS: Record<Conflict, ConflictKind> = {
  [Conflict.UNSPECIFIED]: "context",
  [Conflict.CONTEXT]: "context",
  [Conflict.THEIRS]: "theirs",
  [Conflict.YOURS]: "yours",
  [Conflict.SAME]: "same",
  [Conflict.CONFLICT]: "conflict",
  [Conflict.FOLD]: "fold",
};

export function conflictRowOf(row: ProtoConflictRow): ConflictRow {
  return {
    kind: CONFLICTS[row.kind],
    folded: Number(row.folded),
    ...(row.conflict !== undefined && { conflict: row.conflict }),
    ...(row.baseLine !== undefined && { baseLine: Number(row.baseLine) }),
    ...(row.theirsLine !== undefined && { theirsLine: Number(row.theirsLine) }),
    ...(row.yoursLine !== undefined && { yoursLine: Number(row.yoursLine) }),
    ...(row.base !== undefined && { base: contentOf(row.base) }),
    ...(row.theirs !== undefined && { theirs: contentOf(row.theirs) }),
    ...(row.yours !== undefined && { yours: contentOf(row.yours) }),
  };
}

export function hunkOf(hunk: ProtoHunk): DiffHunk {
  return {
    number: hunk.number,
    parts: hunk.parts,
    added: Number(hunk.added),
    removed: Number(hunk.removed),
    oldStart: Number(hunk.oldStart),
    oldLines: Number(hunk.oldLines),
    newStart: Number(hunk.newStart),
    newLines: Number(hunk.newLines),
    firstRow: Number(hunk.firstRow),
    rows: Number(hunk.rows),
  };
}

const ENCODINGS: Partial<Record<Encoding, NonNullable<TextFormat["encoding"]>>> = {
  [Encoding.UTF8]: "UTF-8",
  [Encoding.UTF16_LE]: "UTF-16 LE",
  [Encoding.UTF16_BE]: "UTF-16 BE",
  [Encoding.LATIN1]: "Windows-1252",
};

const ENDINGS: Partial<Record<Ending, NonNullable<TextFormat["lineEnding"]>>> = {
  [Ending.LF]: "LF",
  [Ending.CRLF]: "CRLF",
  [Ending.MIXED]: "mixed",
};

function formatOf(format: ProtoFormat): TextFormat {
  const encoding = ENCODINGS[format.encoding];
  const lineEnding = ENDINGS[format.lineEnding];
  return {
    byteOrderMark: format.bom,
    finalNewline: format.finalNewline,
    lines: Number(format.lines),
    ...(encoding !== undefined && { encoding }),
    ...(lineEnding !== undefined && { lineEnding }),
  };
}

export function sideOf(fingerprint: Fingerprint | undefined): FileSide {
  const state = fingerprint?.state;
  switch (state?.case) {
    case "file":
      return { kind: "file", size: Number(state.value.size), mode: state.value.mode, hash: state.value.hash };
    case "link":
      return { kind: "link", target: state.value.target };
    default:
      return { kind: "absent" };
  }
}

const OPERATIONS: Record<Operation, FileOperation> = {
  [Operation.UNSPECIFIED]: "update",
  [Operation.CREATE]: "create",
  [Operation.UPDATE]: "update",
  [Operation.DELETE]: "delete",
  [Operation.RENAME]: "rename",
};

const REASONS: Partial<Record<Reason, NoDiffReason>> = {
  [Reason.UNCHANGED]: "unchanged",
  [Reason.BINARY]: "binary",
  [Reason.CONTENT_GONE]: "contentGone",
  [Reason.WITHHELD]: "withheld",
  [Reason.NOT_COMPARED]: "notCompared",
};

export function fileOf(file: ProtoFile): DiffFile {
  const noDiff = REASONS[file.noDiffReason];
  return {
    path: file.path,
    operation: OPERATIONS[file.operation],
    before: sideOf(file.before),
    after: sideOf(file.after),
    added: Number(file.added),
    removed: Number(file.removed),
    hunks: file.hunks,
    conflicts: file.conflicts,
    ...(file.label !== undefined && { label: file.label }),
    ...(file.renamedFrom !== undefined && { renamedFrom: file.renamedFrom }),
    ...(file.oldFormat !== undefined && { oldFormat: formatOf(file.oldFormat) }),
    ...(file.newFormat !== undefined && { newFormat: formatOf(file.newFormat) }),
    ...(file.totalRows !== undefined && { totalRows: Number(file.totalRows) }),
    ...(file.problem !== undefined && { problem: file.problem.text }),
    ...(noDiff !== undefined && { noDiff }),
  };
}

const SEVERITIES: Record<ProtoSeverity, Severity> = {
  [ProtoSeverity.UNSPECIFIED]: "info",
  [ProtoSeverity.INFO]: "info",
  [ProtoSeverity.WARNING]: "warning",
  [ProtoSeverity.CRITICAL]: "critical",
};

export function severityOf(severity: ProtoSeverity): Severity {
  return SEVERITIES[severity];
}

export function noteOf(note: ProtoNote): Note {
  return { severity: severityOf(note.severity), text: note.text };
}

export const LAYOUTS: Record<DiffLayout, ProtoLayout> = {
  unified: ProtoLayout.UNIFIED,
  sideBySide: ProtoLayout.SIDE_BY_SIDE,
};

/** Page of the requested file. The response of another file is an error of the engine. */
export function pageOf(response: GetDiffResponse, path: string): DiffPage {
  const file = response.files.find((candidate) => candidate.path === path);
  if (file === undefined) throw new Error(`The engine returned no diff of ${path}.`);
  return {
    previewHash: response.previewHash,
    file: fileOf(file),
    fromRow: Number(response.fromRow),
    rows: response.rows.map(rowOf),
    pairs: response.sideBySideRows.map(pairOf),
    hunks: response.hunks.map(hunkOf),
    hasMore: response.hasMore,
  };
}
