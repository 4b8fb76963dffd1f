import "../diff/diff.css";

import type { VirtualItem } from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { rowAt, useFocusedRow } from "../diff/elements.js";
import type { RowPages } from "../diff/rowPages.js";
import type { DiffRow } from "../diff/rows.js";
import { columnsOf, useVirtualizer, wrappedLines, type RowVirtualizer } from "../diff/virtual.js";
import { FileBlock } from "./fileBlock.js";
import { ListLayout } from "./layout.js";
import { PageSet } from "./pageSet.js";
import type { PanelActions } from "./props.js";
import { cursorAt, rowOfCursor, useBodyControl } from "./rowMoves.js";
import { useSeen } from "./seen.js";
import type { Input, PanelState } from "./state.js";
import type { Panel } from "./usePanel.js";

export interface BodyProps {
  state: PanelState;
  dispatch: (input: Input) => void;
  panel: Panel;
  scroller: HTMLElement | null;
  actions: PanelActions;
  /** Heights of the header and the decision bar, which cover the scroller. */
  headerHeight: number;
  barHeight: number;
}

export const ROW_HEIGHT = 19;
const HUNK_HEADER = 26;
const FILE_HEADER = 31;

/** All files and hunks of the change in one list. Rows near the visible part are in the document. */
export function PanelBody(props: BodyProps) {
  const { state, dispatch, panel, scroller, actions, headerHeight, barHeight } = props;
  const { files } = state.review;
  const body = useRef<HTMLDivElement>(null);
  const [set] = useState(() => new PageSet(actions));
  useLayoutEffect(() => set.use(actions), [set, actions]);
  const pages = files.map((file) => set.of(file, state));
  for (const each of pages) each.watch();
  const rows = files.map((file, index) => rowCount(file, pages[index]));
  const lengths = rows.join();
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the lengths stand for the rows
  const layout = useMemo(() => new ListLayout(rows), [lengths]);
  const columns = columnsOf(scroller?.clientWidth ?? 900, 130, 12);
  const virtualizer = useVirtualizer({
    count: layout.count,
    scroller,
    body,
    itemKey: useItemKey(layout, pages),
    estimate: (index) => estimate(layout, pages, columns, index),
    paddingStart: headerHeight + FILE_HEADER,
    paddingEnd: barHeight,
  });
  const items = virtualizer.getVirtualItems();
  useEffect(() => () => set.close(), [set]);
  // Sizes of an earlier preview are those of other rows.
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, state.review.previewHash]);
  useNeededPages(items, layout, pages);
  useLoadedHunks(pages, state, dispatch);
  const at = { layout, pages, files, virtualizer };
  useBodyControl({ ...at, state, dispatch, panel, actions });
  const cursorRow = rowOfCursor(state.cursor, pages);
  useFocusedRow(body, cursorRow);
  useSeen({ body, scroller, headerHeight, barHeight, dispatch });
  useShiftedCursor(state, pages, dispatch);

  const groups = byFile(items, layout);
  const first = groups[0];
  const above = first === undefined ? 0 : offset(virtualizer, layout.start(first.file));
  return (
    <div
      ref={body}
      class="panel-body"
      style={{ minHeight: `${virtualizer.getTotalSize()}px`, paddingTop: `${above}px` }}
      onClick={(event) => {
        const row = rowAt(event.target);
        const file = fileAt(event.target);
        if (row !== undefined && file !== undefined)
          dispatch({ kind: "cursor", cursor: cursorAt(file, row, pages[file]) });
      }}
    >
      {groups.map((group) => {
        const filePages = pages[group.file];
        const file = files[group.file];
        if (filePages === undefined || file === undefined) return null;
        return (
          <FileBlock
            key={file.path}
            {...props}
            {...at}
            file={file}
            index={group.file}
            pages={filePages}
            items={group.items}
            measure={virtualizer.measureElement}
            cursorRow={state.cursor.file === group.file ? cursorRow : undefined}
          />
        );
      })}
    </div>
  );
}

const MAX_ROWS = 10_000_000;

/** Keys of the items. A page that arrives makes better estimates, and thereby a new function. */
function useItemKey(layout: ListLayout, pages: RowPages[]): (index: number) => number {
  const version = pages.reduce((sum, each) => sum + each.version.value, 0);
  return useMemo(
    () => (index: number) => {
      const { file, row } = layout.at(index);
      return file * MAX_ROWS + row + 1;
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a new version makes a new function
    [layout, version],
  );
}

/** Rows of a file. Before the first page they are estimated from the counts. */
function rowCount(
  file: { hunks: number; added: number; removed: number; noDiff?: string; problem?: string },
  pages: RowPages | undefined,
): number {
  if (pages?.totalRows !== undefined) return pages.totalRows;
  if (file.problem !== undefined || file.hunks === 0) return 0;
  return file.added + file.removed + file.hunks * 4;
}

function estimate(layout: ListLayout, pages: RowPages[], columns: number, index: number): number {
  const { file, row } = layout.at(index);
  if (row < 0) return FILE_HEADER;
  const line = pages[file]?.row(row);
  if (line === undefined) return ROW_HEIGHT;
  if (line.kind === "fold") return 0;
  const header = pages[file]?.hunkAt(row) === undefined ? 0 : HUNK_HEADER;
  return header + ROW_HEIGHT * wrappedLines(line.content.text, columns);
}

/** Start of an item within the body. */
export function offset(virtualizer: RowVirtualizer, index: number): number {
  const item = virtualizer.measurementsCache[index];
  if (item !== undefined) return item.start - virtualizer.options.scrollMargin;
  return virtualizer.getTotalSize();
}

interface FileItems {
  file: number;
  items: VirtualItem[];
}

function byFile(items: VirtualItem[], layout: ListLayout): FileItems[] {
  const groups: FileItems[] = [];
  for (const item of items) {
    const { file } = layout.at(item.index);
    const last = groups.at(-1);
    if (last?.file === file) last.items.push(item);
    else groups.push({ file, items: [item] });
  }
  return groups;
}

function useNeededPages(items: VirtualItem[], layout: ListLayout, pages: RowPages[]): void {
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    const from = layout.at(first);
    const to = layout.at(last);
    for (let file = from.file; file <= to.file; file++) {
      const start = file === from.file ? Math.max(0, from.row) : 0;
      const end = file === to.file ? Math.max(0, to.row) : layout.start(file + 1) - layout.start(file) - 2;
      void pages[file]?.need(start, Math.max(start, end));
    }
  });
}

/** Tells the state machine the numbers of parts. */
function useLoadedHunks(pages: RowPages[], state: PanelState, dispatch: (input: Input) => void): void {
  const sizes = pages.map((each) => each.hunks.size).join();
  useEffect(() => {
    pages.forEach((each, index) => {
      const path = state.review.files[index]?.path;
      if (path === undefined || each.hunks.size === 0) return;
      const parts = Object.fromEntries([...each.hunks.values()].map((hunk) => [hunk.number, hunk.parts]));
      dispatch({ kind: "hunksLoaded", path, parts });
    });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the sizes stand for the pages
  }, [sizes, state.review, dispatch]);
}

/** The cursor of an opened panel gets its row once the first page is there. */
function useShiftedCursor(state: PanelState, pages: RowPages[], dispatch: (input: Input) => void): void {
  const { cursor } = state;
  const row = cursor.row === undefined ? firstChanged(pages[cursor.file], cursor.hunk) : undefined;
  useLayoutEffect(() => {
    if (row !== undefined) dispatch({ kind: "cursor", cursor: cursorAt(cursor.file, row, pages[cursor.file]) });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only a new place moves the cursor
  }, [row, cursor.file]);
}

function firstChanged(pages: RowPages | undefined, hunk: number): number | undefined {
  const place = pages?.hunks.get(hunk);
  if (pages === undefined || place === undefined) return undefined;
  for (let row = place.firstRow; row < place.firstRow + place.rows; row++) {
    if (isChanged(pages.row(row))) return row;
  }
  return place.firstRow;
}

function isChanged(row: DiffRow | undefined): boolean {
  return row?.kind === "added" || row?.kind === "removed";
}

function fileAt(target: EventTarget | null): number | undefined {
  if (!(target instanceof Element)) return undefined;
  const file = target.closest<HTMLElement>("[data-file]")?.dataset.file;
  return file === undefined ? undefined : Number(file);
}
