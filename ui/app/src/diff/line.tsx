import { Component, type ComponentChildren } from "preact";

import type { DiffRow, LineContent, PairedRow } from "./rows.js";
import { segmentsOf, type Segment } from "./segments.js";
import { count, ROW_SIGNS, ROW_WORDS } from "./words.js";

/** Text of a line with tokens, changed words and escapes. `find` marks matches of a search. */
export function Code({ content, find = "" }: { content: LineContent; find?: string }) {
  const segments = segmentsOf(content);
  return <>{segments.map((segment, index) => (find === "" ? run(segment, index) : marked(segment, index, find)))}</>;
}

function run({ text, token, changed, escaped }: Segment, key: number | string): ComponentChildren {
  if (token === undefined && !changed && escaped === undefined) return text;
  const classes = [token !== undefined && `token-${token}`, changed && "word", escaped !== undefined && "escape"];
  return (
    <span key={key} class={classes.filter(Boolean).join(" ")} title={escaped}>
      {text}
    </span>
  );
}

function marked(segment: Segment, key: number, find: string): ComponentChildren {
  const pieces: ComponentChildren[] = [];
  const text = segment.text.toLowerCase();
  let from = 0;
  for (let at = text.indexOf(find); at >= 0; at = text.indexOf(find, from)) {
    if (at > from) pieces.push(run({ ...segment, text: segment.text.slice(from, at) }, `${key}.${from}`));
    const match = run({ ...segment, text: segment.text.slice(at, at + find.length) }, `${key}.${at}m`);
    pieces.push(<mark key={`${key}.${at}`}>{match}</mark>);
    from = at + find.length;
  }
  if (from < segment.text.length) pieces.push(run({ ...segment, text: segment.text.slice(from) }, `${key}.${from}`));
  return pieces;
}

/** Sign at the end of a line that ends with a carriage return, where line endings differ. */
function Ending({ row, shown }: { row: DiffRow; shown: boolean }) {
  const isChanged = row.kind === "added" || row.kind === "removed";
  if (!shown || !isChanged || row.content.terminator !== "crlf") return null;
  return (
    <span class="ending" title="carriage return and line feed">
      ␍
    </span>
  );
}

export interface LineOptions {
  showEndings: boolean;
  find: string;
}

export interface UnifiedLineProps extends LineOptions {
  row: DiffRow;
  /** Index in the list of rows. */
  index: number;
  isCursor: boolean;
  isLeftOut: boolean;
  /** Number of the hunk that ends with this row. Its mark tells an observer that the row is on screen. */
  endsHunk: number | undefined;
  onOpenFold: ((row: DiffRow) => void) | undefined;
}

/** Row of one column. It draws again only if its properties change. */
export class UnifiedLine extends Component<UnifiedLineProps> {
  override shouldComponentUpdate(next: UnifiedLineProps): boolean {
    return differs(this.props, next);
  }

  override render({ row, index, isCursor, isLeftOut, endsHunk, onOpenFold, ...options }: UnifiedLineProps) {
    if (row.kind === "fold")
      return <Fold row={row} columns={4} isCursor={isCursor} index={index} onOpen={onOpenFold} />;
    const classes = ["line", row.kind, isCursor && "current", isLeftOut && "left-out"].filter(Boolean).join(" ");
    return (
      <tr class={classes} data-row={index} tabIndex={isCursor ? 0 : -1}>
        <td class="number">{row.kind === "noFinalNewline" ? "" : row.oldLine}</td>
        <td class="number">{row.kind === "noFinalNewline" ? "" : row.newLine}</td>
        <Sign row={row} />
        <td class="code">
          <Words row={row} {...options} />
          {endsHunk !== undefined && <i class="hunk-end" data-ends-hunk={endsHunk} />}
        </td>
      </tr>
    );
  }
}

function Sign({ row, side = "" }: { row: DiffRow; side?: string }) {
  return (
    <td class={`sign ${side}`} aria-hidden="true">
      {ROW_SIGNS[row.kind]}
    </td>
  );
}

function Words({ row, showEndings, find }: LineOptions & { row: DiffRow }) {
  return (
    <>
      <span class="visually-hidden">{ROW_WORDS[row.kind]} </span>
      <Code content={row.content} find={find} />
      <Ending row={row} shown={showEndings} />
    </>
  );
}

interface FoldProps {
  row: DiffRow;
  columns: number;
  index: number;
  isCursor: boolean;
  onOpen: ((row: DiffRow) => void) | undefined;
}

function Fold({ row, columns, index, isCursor, onOpen }: FoldProps) {
  const text = count(row.folded, "unchanged line");
  return (
    <tr class={isCursor ? "line fold current" : "line fold"} data-row={index} tabIndex={isCursor ? 0 : -1}>
      <td colSpan={columns}>
        <span aria-hidden="true">⋯ </span>
        {onOpen === undefined ? (
          text
        ) : (
          <button type="button" class="fold-open" tabIndex={-1} onClick={() => onOpen(row)}>
            {text}
          </button>
        )}
      </td>
    </tr>
  );
}

export interface PairedLineProps extends LineOptions {
  pair: PairedRow;
  index: number;
  isCursor: boolean;
  onOpenFold: ((row: DiffRow) => void) | undefined;
}

/** Row of two columns. */
export class PairedLine extends Component<PairedLineProps> {
  override shouldComponentUpdate(next: PairedLineProps): boolean {
    return differs(this.props, next);
  }

  override render({ pair, index, isCursor, onOpenFold, ...options }: PairedLineProps) {
    const { both } = pair;
    if (both?.kind === "fold") {
      return <Fold row={both} columns={6} isCursor={isCursor} index={index} onOpen={onOpenFold} />;
    }
    return (
      <tr class={isCursor ? "line current" : "line"} data-row={index} tabIndex={isCursor ? 0 : -1}>
        <Half row={both ?? pair.old} number={(both ?? pair.old)?.oldLine} side="left" {...options} />
        <Half row={both ?? pair.new} number={(both ?? pair.new)?.newLine} side="right" {...options} />
      </tr>
    );
  }
}

interface HalfProps extends LineOptions {
  row: DiffRow | undefined;
  number: number | undefined;
  side: "left" | "right";
}

function Half({ row, number, side, ...options }: HalfProps) {
  if (row === undefined) return <td class={`blank ${side}`} colSpan={3} />;
  const kind = `${row.kind} ${side}`;
  return (
    <>
      <td class={`number ${kind}`}>{row.kind === "noFinalNewline" ? "" : number}</td>
      <Sign row={row} side={kind} />
      <td class={`code ${kind}`}>
        <Words row={row} {...options} />
      </td>
    </>
  );
}

/** Placeholder of a row whose page is on its way. */
export function LoadingLine({ index, columns }: { index: number; columns: number }) {
  return (
    <tr class="line loading" data-row={index} aria-busy="true">
      <td colSpan={columns}>
        <span class="visually-hidden">loading</span>
      </td>
    </tr>
  );
}

function differs<P extends object>(before: Readonly<P>, after: Readonly<P>): boolean {
  const keys = Object.keys(after) as (keyof P)[];
  return keys.length !== Object.keys(before).length || keys.some((key) => before[key] !== after[key]);
}
