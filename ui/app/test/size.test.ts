// @vitest-environment node
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { expect, test } from "vitest";

const DIST = join(import.meta.dirname, "../dist");
const LIMIT = 90_000;

/** Files that a browser fetches before the app draws anything: the page, its scripts with their static imports, its styles. */
function firstLoad(): Set<string> {
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  const files = new Set(["index.html"]);
  const visit = (file: string) => {
    if (files.has(file)) return;
    files.add(file);
    if (!file.endsWith(".js")) return;
    const code = readFileSync(join(DIST, file), "utf8");
    for (const match of code.matchAll(/(?:from|import)\s*["'`]\.\/([\w.-]+\.js)["'`]/g))
      visit(`assets/${match[1] ?? ""}`);
  };
  for (const match of page.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)) visit(match[1] ?? "");
  return files;
}

test("first_load_stays_below_limit", () => {
  expect(existsSync(DIST), "run `npm run build` first").toBe(true);
  const sizes = [...firstLoad()].map((file) => gzipSync(readFileSync(join(DIST, file))).length);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  expect(sizes.length).toBeGreaterThan(2);
  expect(total, `${sizes.length} files`).toBeLessThanOrEqual(LIMIT);
});

test("page_has_no_inline_script_or_style", () => {
  const page = readFileSync(join(DIST, "index.html"), "utf8");
  expect(page).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
  for (const file of readdirSync(join(DIST, "assets"))) {
    const code = readFileSync(join(DIST, "assets", file), "utf8");
    expect(code, file).not.toMatch(/\beval\(|new Function\(/);
  }
});
