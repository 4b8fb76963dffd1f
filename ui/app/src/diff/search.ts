import type { RowPages } from "./rowPages.js";
import type { DiffRow, PairedRow } from "./rows.js";

/** `true` if a row contains a text, without regard to case. `wanted` is in lower case. */
export function rowContains(row: DiffRow | undefined, wanted: string): boolean {
  return row !== undefined && row.kind !== "fold" && row.content.text.toLowerCase().includes(wanted);
}

export function pairContains(pair: PairedRow | undefined, wanted: string): boolean {
  return [pair?.both, pair?.old, pair?.new].some((row) => rowContains(row, wanted));
}

const PAGE = 500;

/** Finds the first row after `from` that contains a text, and starts again at the top. Loads pages on the way. */
export async function findRow(
  pages: RowPages,
  layout: "unified" | "sideBySide",
  text: string,
  from: number,
): Promise<number | undefined> {
  const wanted = text.toLowerCase();
  if (wanted === "") return undefined;
  await pages.need(0, 0);
  const total = pages.totalRows ?? 0;
  for (let step = 1; step <= total; step++) {
    const index = (from + step) % total;
    if (!pages.has(index)) await pages.need(index, Math.min(total - 1, index + PAGE));
    if (pages.error.value !== undefined) return undefined;
    const found =
      layout === "unified" ? rowContains(pages.row(index), wanted) : pairContains(pages.pair(index), wanted);
    if (found) return index;
  }
  return undefined;
}
