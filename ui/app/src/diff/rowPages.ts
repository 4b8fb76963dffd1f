import { signal, type Signal } from "@preact/signals";

import type { DiffFile, DiffHunk, DiffLayout, DiffPage, DiffRow, FetchPage, PairedRow } from "./rows.js";

const PAGE_ROWS = 500;

export interface RowPagesOptions {
  path: string;
  layout: DiffLayout;
  wholeFile: boolean;
  fetchPage: FetchPage;
  /** Hash that every page must have. Another hash means that the preview was refreshed. */
  previewHash?: string;
  onOtherHash?: (hash: string) => void;
}

/**
 * Rows of one file, fetched page by page as they come into view.
 *
 * `version` changes after each page, so that a component that reads it draws again.
 */
export class RowPages {
  readonly version: Signal<number> = signal(0);
  readonly error: Signal<string | undefined> = signal(undefined);
  readonly hunks = new Map<number, DiffHunk>();
  file: DiffFile | undefined;
  private readonly rows: DiffRow[] = [];
  private readonly pairs: PairedRow[] = [];
  private readonly pending = new Map<number, Promise<void>>();
  private readonly firstRows = new Map<number, number>();
  private total: number | undefined;
  private closed = false;

  constructor(private readonly options: RowPagesOptions) {}

  /** Draws the component that calls it again after each page. */
  watch(): number {
    return this.version.value;
  }

  /** Number of rows. `undefined` until the first page. */
  get totalRows(): number | undefined {
    return this.total;
  }

  row(index: number): DiffRow | undefined {
    return this.rows[index];
  }

  pair(index: number): PairedRow | undefined {
    return this.pairs[index];
  }

  has(index: number): boolean {
    return (this.options.layout === "unified" ? this.rows[index] : this.pairs[index]) !== undefined;
  }

  /** The hunk that begins at a row. */
  hunkAt(index: number): DiffHunk | undefined {
    const number = this.firstRows.get(index);
    return number === undefined ? undefined : this.hunks.get(number);
  }

  /** Fetches the pages of a range of rows. Both ends are inclusive. */
  need(from: number, to: number): Promise<void> {
    const pages: Promise<void>[] = [];
    const last = this.total === undefined ? Math.max(from, to) : Math.min(to, this.total - 1);
    for (let index = Math.max(0, from); index <= last || (this.total === undefined && pages.length === 0); index++) {
      if (this.has(index)) continue;
      const start = this.pageStart(index);
      pages.push(this.fetch(start));
      index = start + PAGE_ROWS - 1;
    }
    return Promise.all(pages).then(() => undefined);
  }

  /** First row of a hunk. Fetches the page that begins with it if it is not known. */
  async seekHunk(number: number): Promise<number | undefined> {
    if (!this.hunks.has(number) && !this.closed) {
      const { path, layout, wholeFile, fetchPage } = this.options;
      try {
        this.accept(await fetchPage({ path, fromRow: 0, rows: PAGE_ROWS, layout, wholeFile, fromHunk: number }));
      } catch (error) {
        this.error.value = error instanceof Error ? error.message : String(error);
      }
      this.version.value++;
    }
    return this.hunks.get(number)?.firstRow;
  }

  /** Discards a failure and fetches the range again. */
  retry(from: number, to: number): Promise<void> {
    this.error.value = undefined;
    return this.need(from, to);
  }

  /** Ignores pages that arrive later. */
  close(): void {
    this.closed = true;
  }

  /** A short page leaves a gap at its end, which the next fetch starts at. */
  private pageStart(index: number): number {
    const start = index - (index % PAGE_ROWS);
    let first = index;
    while (first > start && !this.has(first - 1)) first--;
    return first;
  }

  private fetch(fromRow: number): Promise<void> {
    const known = this.pending.get(fromRow);
    if (known) return known;
    if (this.error.value !== undefined) return Promise.resolve();
    const { path, layout, wholeFile, fetchPage } = this.options;
    const rows = PAGE_ROWS - (fromRow % PAGE_ROWS);
    const promise = fetchPage({ path, fromRow, rows, layout, wholeFile })
      .then((page) => {
        if (!this.closed) this.accept(page);
      })
      .catch((error: unknown) => {
        if (!this.closed) this.error.value = error instanceof Error ? error.message : String(error);
      })
      .finally(() => {
        this.pending.delete(fromRow);
        if (!this.closed) this.version.value++;
      });
    this.pending.set(fromRow, promise);
    return promise;
  }

  private accept(page: DiffPage): void {
    const { previewHash, onOtherHash } = this.options;
    if (previewHash !== undefined && page.previewHash !== previewHash) {
      onOtherHash?.(page.previewHash);
      return;
    }
    this.file = page.file;
    page.rows.forEach((row, offset) => (this.rows[page.fromRow + offset] = row));
    page.pairs.forEach((pair, offset) => (this.pairs[page.fromRow + offset] = pair));
    for (const hunk of page.hunks) {
      this.hunks.set(hunk.number, hunk);
      this.firstRows.set(hunk.firstRow, hunk.number);
    }
    const read = page.fromRow + Math.max(page.rows.length, page.pairs.length);
    if (read === page.fromRow && (page.file.totalRows ?? 0) > page.fromRow) {
      throw new Error(`The engine returned no rows from row ${page.fromRow} of ${page.file.path}.`);
    }
    this.total = page.file.totalRows ?? (page.hasMore ? Math.max(this.total ?? 0, read + 1) : read);
  }
}
