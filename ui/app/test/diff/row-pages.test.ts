import { describe, expect, it } from "vitest";

import { RowPages } from "../../src/diff/rowPages.js";
import type { DiffPage, PageRequest } from "../../src/diff/rows.js";
import { findRow } from "../../src/diff/search.js";
import { pageOfUnified } from "../../src/diff/unifiedText.js";
import { hugeFile } from "../../src/review/stories/fixtures.js";
import { pageServer } from "../../src/review/stories/notation.js";

const HUGE = hugeFile(2_000);
const SERVE = pageServer([HUGE], "hash");

function pagesOf(fetchPage: (request: PageRequest) => Promise<DiffPage>, more: object = {}): RowPages {
  return new RowPages({ path: "src/huge.rs", layout: "unified", wholeFile: false, fetchPage, ...more });
}

describe("pages of rows", () => {
  it("range_fetches_its_pages_once", async () => {
    const requests: number[] = [];
    const pages = pagesOf((request) => {
      requests.push(request.fromRow);
      return SERVE(request);
    });
    await Promise.all([pages.need(0, 10), pages.need(0, 20)]);
    await pages.need(490, 510);
    await pages.need(495, 505);
    expect(requests).toEqual([0, 500]);
    expect(pages.totalRows).toBe(HUGE.rows.length);
    expect(pages.row(501)).toBe(HUGE.rows[501]);
  });

  it("short_page_is_continued_at_its_end", async () => {
    const requests: number[] = [];
    const pages = pagesOf((request) => {
      requests.push(request.fromRow);
      return SERVE({ ...request, rows: Math.min(request.rows, 100) });
    });
    await pages.need(0, 150);
    await pages.need(0, 150);
    expect(requests).toEqual([0, 100]);
    expect(pages.has(150)).toBe(true);
  });

  it("failure_is_kept_until_retry", async () => {
    let attempts = 0;
    const pages = pagesOf((request) =>
      ++attempts === 1 ? Promise.reject(new Error("connection lost")) : SERVE(request),
    );
    await pages.need(0, 0);
    await pages.need(0, 0);
    expect([attempts, pages.error.value]).toEqual([1, "connection lost"]);
    await pages.retry(0, 0);
    expect([pages.error.value, pages.has(0)]).toEqual([undefined, true]);
  });

  it("page_of_another_preview_is_rejected", async () => {
    const hashes: string[] = [];
    const pages = pagesOf(SERVE, { previewHash: "older", onOtherHash: (hash: string) => hashes.push(hash) });
    await pages.need(0, 0);
    expect([hashes, pages.has(0)]).toEqual([["hash"], false]);
  });

  it("empty_page_is_an_error", async () => {
    const pages = pagesOf(async (request) => ({ ...(await SERVE(request)), rows: [] }));
    await pages.need(0, 0);
    expect(pages.error.value).toBe("The engine returned no rows from row 0 of src/huge.rs.");
  });

  it("hunk_is_found_without_earlier_pages", async () => {
    const pages = pagesOf(SERVE);
    const hunk = HUGE.hunks[40];
    expect(await pages.seekHunk(41)).toBe(hunk?.firstRow);
    expect(pages.has(0)).toBe(false);
    expect(pages.hunkAt(hunk?.firstRow ?? -1)?.number).toBe(41);
  });

  it("search_loads_pages_and_wraps", async () => {
    const pages = pagesOf(SERVE);
    const wanted = HUGE.rows.findIndex((row) => row.content.text.includes("value_30_7 "));
    expect(await findRow(pages, "unified", "VALUE_30_7 ", 5)).toBe(wanted);
    expect(await findRow(pages, "unified", "value_30_7 ", wanted)).toBe(wanted);
    expect(await findRow(pages, "unified", "no such text", 0)).toBeUndefined();
  });

  it("unified_text_has_rows_and_counts", () => {
    const text = "--- a\n+++ b\n@@ -3,3 +3,3 @@\n same\n-old\n+new\n last\n\\ No newline at end of file\n";
    const page = pageOfUnified(text, HUGE.file, "h");
    expect(page.rows.map(({ kind, oldLine, newLine }) => [kind, oldLine, newLine])).toEqual([
      ["context", 3, 3],
      ["removed", 4, undefined],
      ["added", undefined, 4],
      ["context", 5, 5],
      ["noFinalNewline", undefined, undefined],
    ]);
    expect(page.file).toMatchObject({ added: 1, removed: 1, hunks: 1, totalRows: 5 });
  });
});
