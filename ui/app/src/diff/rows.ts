/** Rows of a diff as the components draw them. The engine computes them; `fromProtocol.ts` converts its messages. */

export type RowKind = "context" | "added" | "removed" | "fold" | "noFinalNewline";

/** Part of a line's text, in UTF-16 code units. `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
}

/** Colour classes of tokens: seven colours for the engine's thirteen syntax classes. */
export type TokenClass = "keyword" | "type" | "function" | "string" | "number" | "comment" | "attribute";

export interface SyntaxSpan extends Span {
  token: TokenClass;
}

/** Part of a text that stands for characters that cannot be seen. */
export interface EscapedSpan extends Span {
  /** Name of the original for a tooltip, such as `U+202E`. */
  original: string;
}

export interface LineContent {
  text: string;
  /** Changed words. */
  words: Span[];
  syntax: SyntaxSpan[];
  escapes: EscapedSpan[];
  terminator: "none" | "lf" | "crlf";
}

export interface DiffRow {
  kind: RowKind;
  /** From 1. Absent for added rows. */
  oldLine?: number;
  /** From 1. Absent for removed rows. */
  newLine?: number;
  content: LineContent;
  /** Number of the hunk. Absent outside of hunks. */
  hunk?: number;
  /** Number of the part within the hunk. Absent for unchanged lines. */
  part?: number;
  /** Number of lines that a fold stands for. */
  folded: number;
}

/** Row of two columns: `both`, or `old` and `new`, of which one may be absent. */
export interface PairedRow {
  both?: DiffRow;
  old?: DiffRow;
  new?: DiffRow;
}

export type ConflictKind = "context" | "theirs" | "yours" | "same" | "conflict" | "fold";

export interface ConflictRow {
  kind: ConflictKind;
  conflict?: number;
  baseLine?: number;
  theirsLine?: number;
  yoursLine?: number;
  base?: LineContent;
  theirs?: LineContent;
  yours?: LineContent;
  folded: number;
}

export interface DiffHunk {
  number: number;
  /** Number of parts it splits into. */
  parts: number;
  added: number;
  removed: number;
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  firstRow: number;
  rows: number;
}

export interface TextFormat {
  encoding?: "UTF-8" | "UTF-16 LE" | "UTF-16 BE" | "Windows-1252";
  lineEnding?: "LF" | "CRLF" | "mixed";
  byteOrderMark: boolean;
  finalNewline: boolean;
  lines: number;
}

export interface FileSide {
  kind: "absent" | "file" | "link";
  size?: number;
  mode?: number;
  target?: string;
  /** Hash of the content. */
  hash?: string;
}

export type FileOperation = "create" | "update" | "delete" | "rename";

export type NoDiffReason = "unchanged" | "binary" | "contentGone" | "withheld" | "notCompared";

export type Severity = "info" | "warning" | "critical";

export interface Note {
  severity: Severity;
  text: string;
}

export interface DiffFile {
  path: string;
  /** Display name of a request's section. */
  label?: string;
  operation: FileOperation;
  renamedFrom?: string;
  before: FileSide;
  after: FileSide;
  oldFormat?: TextFormat;
  newFormat?: TextFormat;
  added: number;
  removed: number;
  hunks: number;
  conflicts: number;
  /** Number of rows in the requested layout. Absent in a list. */
  totalRows?: number;
  /** Reason why the change cannot be applied. */
  problem?: string;
  noDiff?: NoDiffReason;
  notes?: Note[];
  /** Approved earlier and shown for information. */
  settled?: boolean;
}

export type DiffLayout = "unified" | "sideBySide";

/** Request for a page of one file. */
export interface PageRequest {
  path: string;
  fromRow: number;
  rows: number;
  layout: DiffLayout;
  wholeFile: boolean;
  /** Starts at this hunk in place of `fromRow`. */
  fromHunk?: number;
}

/** Page of one file. */
export interface DiffPage {
  /** Hash of the compared versions. A verdict quotes it. */
  previewHash: string;
  file: DiffFile;
  fromRow: number;
  /** In the layout `unified`. */
  rows: DiffRow[];
  /** In the layout `sideBySide`. */
  pairs: PairedRow[];
  hunks: DiffHunk[];
  hasMore: boolean;
}

export type FetchPage = (request: PageRequest) => Promise<DiffPage>;

export const EMPTY_CONTENT: LineContent = { text: "", words: [], syntax: [], escapes: [], terminator: "lf" };
