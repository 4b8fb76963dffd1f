import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";

import { Code } from "../diff/line.js";
import type { ConflictKind, ConflictRow, LineContent } from "../diff/rows.js";
import { count } from "../diff/words.js";
import { wordsOf } from "./usePanel.js";

const WORDS: Record<ConflictKind, string> = {
  context: "context",
  theirs: "changed by them",
  yours: "changed by you",
  same: "the same change on both sides",
  conflict: "conflict",
  fold: "unchanged",
};

export interface ConflictViewProps {
  path: string;
  fetchConflict: (path: string) => Promise<ConflictRow[]>;
}

/** Base, theirs and yours of a stale file: three columns, or one below the other on a narrow screen. */
export function ConflictView({ path, fetchConflict }: ConflictViewProps) {
  const [rows, setRows] = useState<ConflictRow[]>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isClosed = false;
    fetchConflict(path).then(
      (fetched) => !isClosed && setRows(fetched),
      (problem: unknown) => !isClosed && setError(wordsOf(problem)),
    );
    return () => {
      isClosed = true;
    };
  }, [path, fetchConflict]);
  if (error !== undefined) {
    return (
      <p class="load-problem" role="alert">
        {error}
      </p>
    );
  }
  if (rows === undefined) return <p class="edit-wait">Reading the versions…</p>;
  return <ConflictTable path={path} rows={rows} />;
}

export function ConflictTable({ path, rows }: { path: string; rows: ConflictRow[] }) {
  const conflicts = new Set(rows.map((row) => row.conflict).filter((number) => number !== undefined)).size;
  return (
    <div class="conflict-view">
      <p class="panel-fact">
        {conflicts === 0
          ? "The edits do not overlap."
          : `${count(conflicts, "conflict")}: both changed the same lines.`}
      </p>
      <table class="diff-table conflict-table" aria-label={`base, theirs and yours of ${path}`}>
        <colgroup>
          {["base", "theirs", "yours"].map((side) => (
            <Fragment key={side}>
              <col class="number" />
              <col />
            </Fragment>
          ))}
        </colgroup>
        <thead>
          <tr>
            <th colSpan={2} scope="colgroup">
              Base
            </th>
            <th colSpan={2} scope="colgroup">
              Theirs<span class="secondary">: on disk now</span>
            </th>
            <th colSpan={2} scope="colgroup">
              Yours<span class="secondary">: approved</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <Row key={index} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ row }: { row: ConflictRow }) {
  if (row.kind === "fold") {
    return (
      <tr class="line fold">
        <td colSpan={6}>⋯ {count(row.folded, "unchanged line")}</td>
      </tr>
    );
  }
  const cells: [string, number | undefined, LineContent | undefined][] = [
    ["base", row.baseLine, row.base],
    ["theirs", row.theirsLine, row.theirs],
    ["yours", row.yoursLine, row.yours],
  ];
  return (
    <tr class={`line conflict-row ${row.kind}`}>
      {cells.map(([side, line, content]) => (
        <Cell key={side} side={side} line={line} content={content} word={side === "base" ? WORDS[row.kind] : ""} />
      ))}
    </tr>
  );
}

interface CellProps {
  side: string;
  line: number | undefined;
  content: LineContent | undefined;
  word: string;
}

function Cell({ side, line, content, word }: CellProps) {
  return (
    <>
      <td class={`number ${side}`}>{line}</td>
      <td class={content === undefined ? `code blank ${side}` : `code ${side}`} data-side={side}>
        {word !== "" && <span class="visually-hidden">{word} </span>}
        {content !== undefined && <Code content={content} />}
      </td>
    </>
  );
}
