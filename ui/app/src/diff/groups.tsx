import type { VirtualItem } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";

import { LoadingLine, PairedLine, UnifiedLine, type LineOptions } from "./line.js";
import type { RowPages } from "./rowPages.js";
import type { DiffLayout, DiffRow } from "./rows.js";
import { hunkName } from "./words.js";

export interface RowGroupsProps extends LineOptions {
  pages: RowPages;
  layout: DiffLayout;
  path: string;
  /** Items of this file near the visible part. */
  items: VirtualItem[];
  /** Index of the item of row 0. */
  firstItem: number;
  /** Measures the element of an item. */
  measure: (element: HTMLElement | null) => void;
  cursorRow: number | undefined;
  /** Number of the hunk among all files, and their total. */
  hunkNumber: (hunk: number) => { number: number; total: number };
  isLeftOut?: (row: DiffRow) => boolean;
  onOpenFold?: (row: DiffRow) => void;
  /** Table rows before and after a row. */
  before?: (row: DiffRow, index: number) => ComponentChildren;
  after?: (row: DiffRow, index: number) => ComponentChildren;
  groupClass?: (hunk: number) => string;
}

interface Group {
  hunk: number | undefined;
  items: VirtualItem[];
}

/** Visible rows of a file: one labelled group with a table for each hunk, and a table for rows outside of hunks. */
export function RowGroups(props: RowGroupsProps) {
  const { pages, items, firstItem, layout } = props;
  // The rows of later pages arrive with the next version.
  pages.watch();
  const groups: Group[] = [];
  for (const item of items) {
    const hunk = hunkOf(pages, layout, item.index - firstItem);
    const last = groups.at(-1);
    if (last?.hunk === hunk && last !== undefined) last.items.push(item);
    else groups.push({ hunk, items: [item] });
  }
  return (
    <>
      {groups.map((group) => (
        <RowGroup key={group.hunk ?? `rows-${(group.items[0]?.index ?? 0) - firstItem}`} group={group} {...props} />
      ))}
    </>
  );
}

function hunkOf(pages: RowPages, layout: DiffLayout, index: number): number | undefined {
  if (layout === "unified") return pages.row(index)?.hunk;
  const pair = pages.pair(index);
  return (pair?.both ?? pair?.old ?? pair?.new)?.hunk;
}

function RowGroup({ group, ...props }: RowGroupsProps & { group: Group }) {
  const { pages, path, hunkNumber, groupClass } = props;
  const table = <RowTable {...props} items={group.items} label={tableName(group, path)} />;
  const hunk = group.hunk === undefined ? undefined : pages.hunks.get(group.hunk);
  if (hunk === undefined || group.hunk === undefined) return table;
  const { number, total } = hunkNumber(group.hunk);
  return (
    <section
      role="group"
      class={`hunk ${groupClass?.(group.hunk) ?? ""}`}
      aria-label={hunkName(hunk, number, total)}
      data-hunk={group.hunk}
    >
      {table}
    </section>
  );
}

function tableName(group: Group, path: string): string {
  return group.hunk === undefined ? `lines of ${path}` : `hunk ${group.hunk} of ${path}`;
}

function RowTable({ label, items, ...props }: RowGroupsProps & { label: string }) {
  const paired = props.layout === "sideBySide";
  return (
    <table class={paired ? "diff-table paired" : "diff-table"} aria-label={label}>
      <colgroup>
        <col class="number" />
        {paired ? <col class="sign" /> : <col class="number" />}
        {paired ? <col /> : <col class="sign" />}
        {paired && <col class="number" />}
        {paired && <col class="sign" />}
        <col />
      </colgroup>
      {items.map((item) => (
        <tbody key={item.key} data-index={item.index} ref={props.measure}>
          <Item index={item.index - props.firstItem} {...props} items={items} />
        </tbody>
      ))}
    </table>
  );
}

function Item({ index, ...props }: RowGroupsProps & { index: number }) {
  const { pages, layout, cursorRow, showEndings, find, onOpenFold } = props;
  if (!pages.has(index)) return <LoadingLine index={index} columns={layout === "unified" ? 4 : 6} />;
  const shared = { index, isCursor: cursorRow === index, showEndings, find, onOpenFold };
  if (layout === "sideBySide") {
    const pair = pages.pair(index);
    return pair === undefined ? null : <PairedLine pair={pair} {...shared} />;
  }
  const row = pages.row(index);
  if (row === undefined) return null;
  return (
    <>
      {props.before?.(row, index)}
      <UnifiedLine
        row={row}
        endsHunk={endOfHunk(pages, row, index)}
        isLeftOut={props.isLeftOut?.(row) ?? false}
        {...shared}
      />
      {props.after?.(row, index)}
    </>
  );
}

function endOfHunk(pages: RowPages, row: DiffRow, index: number): number | undefined {
  const hunk = row.hunk === undefined ? undefined : pages.hunks.get(row.hunk);
  return hunk !== undefined && hunk.firstRow + hunk.rows - 1 === index ? hunk.number : undefined;
}
