import { useLayoutEffect } from "preact/hooks";

import type { RowPages } from "../diff/rowPages.js";
import type { DiffFile } from "../diff/rows.js";
import { findRow } from "../diff/search.js";
import type { RowVirtualizer } from "../diff/virtual.js";
import type { ListLayout } from "./layout.js";
import type { PanelActions } from "./props.js";
import type { CommentTarget, Cursor, Input, LineMove, PanelState } from "./state.js";
import type { Panel } from "./usePanel.js";

/** Cursor on a row, with its hunk and part. */
export function cursorAt(file: number, row: number, pages: RowPages | undefined): Cursor {
  const line = pages?.row(row);
  return {
    file,
    hunk: line?.hunk ?? 0,
    row,
    ...(line?.part !== undefined && { part: line.part }),
  };
}

export function rowOfCursor(cursor: Cursor, pages: RowPages[]): number | undefined {
  return cursor.row ?? pages[cursor.file]?.hunks.get(cursor.hunk)?.firstRow;
}

/** Line that a comment at the cursor is about. */
export function commentTarget(
  path: string,
  row: { kind: string; oldLine?: number; newLine?: number },
): CommentTarget | undefined {
  if (row.kind === "removed" && row.oldLine !== undefined) return { path, line: row.oldLine, side: "current" };
  return row.newLine === undefined ? undefined : { path, line: row.newLine, side: "proposed" };
}

export interface BodyControlOptions {
  layout: ListLayout;
  pages: RowPages[];
  files: DiffFile[];
  virtualizer: RowVirtualizer;
  state: PanelState;
  dispatch: (input: Input) => void;
  panel: Panel;
  actions: PanelActions;
}

/** Connects the effects of the state machine with the list. */
export function useBodyControl(options: BodyControlOptions): void {
  useLayoutEffect(() => {
    options.panel.connectView({
      reveal: (cursor) => void reveal(options, cursor),
      moveLine: (move) => moveLine(options, move),
      startComment: () => startComment(options),
      findNext: (text) => void findNext(options, text),
    });
  });
  const { panel } = options;
  useLayoutEffect(() => () => panel.connectView(undefined), [panel]);
}

async function reveal({ layout, pages, virtualizer, dispatch }: BodyControlOptions, cursor: Cursor): Promise<void> {
  const shown = pages[cursor.file];
  const row = cursor.hunk === 0 ? undefined : await shown?.seekHunk(cursor.hunk);
  const index = row === undefined ? layout.start(cursor.file) : layout.indexOf({ file: cursor.file, row });
  virtualizer.scrollToIndex(index, { align: "start" });
  if (row !== undefined) dispatch({ kind: "cursor", cursor: { ...cursor, row } });
}

function moveLine(options: BodyControlOptions, move: LineMove): void {
  const { layout, state, pages, virtualizer } = options;
  const { cursor } = state;
  const row = rowOfCursor(cursor, pages) ?? -1;
  const present = layout.indexOf({ file: cursor.file, row });
  const page = Math.max(1, Math.floor((virtualizer.scrollRect?.height ?? 400) / 19) - 14);
  const steps: Record<LineMove, number> = {
    lineDown: 1,
    lineUp: -1,
    pageDown: page,
    pageUp: -page,
    top: -layout.count,
    bottom: layout.count,
  };
  const wanted = Math.max(0, Math.min(layout.count - 1, present + steps[move]));
  goTo(options, selectable(options, wanted, steps[move] < 0 ? -1 : 1));
}

/** Next item that a cursor can stand on: a row that is no fold, or the header of a file without rows. */
function selectable({ layout, pages }: BodyControlOptions, index: number, by: 1 | -1): number {
  const canStand = (at: number): boolean => {
    const { file, row } = layout.at(at);
    if (row < 0) return layout.start(file + 1) === layout.start(file) + 1;
    return pages[file]?.row(row)?.kind !== "fold";
  };
  for (const direction of [by, by === 1 ? -1 : 1]) {
    for (let at = index; at >= 0 && at < layout.count; at += direction) {
      if (canStand(at)) return at;
    }
  }
  return index;
}

function goTo({ layout, pages, virtualizer, dispatch }: BodyControlOptions, index: number): void {
  const { file, row } = layout.at(index);
  const cursor = row < 0 ? { file, hunk: 0 } : cursorAt(file, row, pages[file]);
  dispatch({ kind: "cursor", cursor });
  virtualizer.scrollToIndex(index, { align: "auto" });
  // A row of a page that is not there yet has no hunk. Its page tells it.
  if (row >= 0 && pages[file]?.row(row) === undefined) {
    void pages[file]?.need(row, row).then(() => dispatch({ kind: "cursor", cursor: cursorAt(file, row, pages[file]) }));
  }
}

function startComment({ state, pages, files, dispatch, actions }: BodyControlOptions): void {
  const { cursor } = state;
  const path = files[cursor.file]?.path;
  const index = rowOfCursor(cursor, pages);
  const row = index === undefined ? undefined : pages[cursor.file]?.row(index);
  const target = path === undefined || row === undefined ? undefined : commentTarget(path, row);
  if (target === undefined) actions.announce("Move to a line to comment on it.");
  else dispatch({ kind: "commentOn", target });
}

/** Finds the next match in this file, then in the following ones. */
async function findNext(options: BodyControlOptions, text: string): Promise<void> {
  const { state, pages, files, layout, actions } = options;
  const { cursor } = state;
  for (let step = 0; step <= files.length; step++) {
    const file = (cursor.file + step) % files.length;
    const shown = pages[file];
    if (shown === undefined || files[file]?.hunks === 0) continue;
    const from = step === 0 ? (rowOfCursor(cursor, pages) ?? -1) : -1;
    const row = await findRow(shown, "unified", text, from);
    // A match at or before the cursor counts after the other files only.
    if (row === undefined || (step === 0 && row <= from && files.length > 1)) continue;
    goTo(options, layout.indexOf({ file, row }));
    return;
  }
  actions.announce(`${text} is not in this change.`);
}
