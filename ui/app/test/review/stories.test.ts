// @vitest-environment node
/** The stories in Chromium: keys, seen marks, accessibility and the cost of scrolling. */

import { createReadStream, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";

import { chromium, type Browser, type Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const CHROMIUM = "/usr/bin/chromium";
const APP = join(import.meta.dirname, "../..");
const STORIES = join(APP, "src/review/stories/index.html");
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

let server: Server;
let browser: Browser;
let address: string;

beforeAll(async () => {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: apt-get install -y chromium`);
  const outDir = mkdtempSync(join(tmpdir(), "sayso-stories-"));
  await build({
    root: APP,
    configFile: false,
    logLevel: "error",
    build: { outDir, rolldownOptions: { input: STORIES } },
  });
  server = createServer((request, response) => {
    const file = join(outDir, (request.url ?? "/").split("?")[0] ?? "");
    if (!existsSync(file) || extname(file) === "") {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" });
    createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("The server has no port.");
  address = `http://127.0.0.1:${bound.port}/src/review/stories/index.html`;
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}, 120_000);

afterAll(async () => {
  await browser.close();
  server.close();
});

async function open(story: string, theme = "dark", width = 1000): Promise<Page> {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  await page.goto(`${address}?story=${story}&theme=${theme}`);
  await page.waitForSelector(".panel, .full-diff, .inline-diff");
  return page;
}

/** Waits until the guard of an opened panel has ended, by the page's own clock. */
async function pastGuard(page: Page): Promise<void> {
  await page.waitForSelector(".diff-table tr.current");
  const start = await page.evaluate(() => performance.now());
  await page.waitForFunction((from) => performance.now() > from + 450, start);
}

const calls = (page: Page, name: string): Promise<unknown[][]> =>
  page.evaluate(
    (wanted) => (window as unknown as { calls: unknown[][] }).calls.filter(([given]) => given === wanted),
    name,
  );

describe("stories in Chromium", { timeout: 120_000 }, () => {
  it("keys_select_comment_and_approve", async () => {
    const page = await open("panel");
    await pastGuard(page);
    await page.keyboard.press("s");
    await page.keyboard.press("Space");
    await page.keyboard.press("c");
    await page.keyboard.type("why not y or n");
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("y");
    const [[, decision] = []] = await calls(page, "decide");
    expect(decision).toMatchObject({
      previewHash: "preview-41",
      answer: { kind: "files", files: { "src/cli.rs": { kind: "hunks", hunks: ["1.2", "2"] } } },
      comments: [{ path: "src/cli.rs", line: 14, side: "current", text: "why not y or n" }],
    });
    await page.close();
  });

  it("hunks_are_seen_when_scrolled_into_view", async () => {
    const page = await open("panel");
    await page.locator('[data-command="approve"]', { hasText: "not seen" }).waitFor();
    await pastGuard(page);
    await page.keyboard.press("}");
    await page.locator('[data-path="src/commands/list.rs"] [data-hunk="2"] .state.seen').waitFor();
    await page.keyboard.press("G");
    await page.locator('[data-command="approve"]', { hasText: /^Approve\s*y$/ }).waitFor();
    expect(
      (await calls(page, "markSeen"))
        .flatMap(([, path, hunks]) => (hunks as number[]).map((h) => `${path as string} ${h}`))
        .sort(),
    ).toEqual(["src/cli.rs 1", "src/cli.rs 2", "src/commands/list.rs 1", "src/commands/list.rs 2", "tests/list.rs 1"]);
    await page.close();
  });

  it("typing_in_the_reason_decides_once", async () => {
    const page = await open("panel");
    await pastGuard(page);
    await page.keyboard.type("nuse serde, y?");
    expect(await calls(page, "decide")).toEqual([]);
    await page.keyboard.press("Enter");
    expect((await calls(page, "decide"))[0]?.[1]).toMatchObject({ answer: { kind: "deny", reason: "use serde, y?" } });
    await page.close();
  });

  it("hostile_names_stay_text", async () => {
    const page = await open("tool");
    expect(await page.locator(".arguments img").count()).toBe(0);
    await page.getByText("<img src=x onerror=alert(1)>").waitFor();
    await page.close();
  });

  it("wide_and_narrow_views_never_scroll_sideways", async () => {
    for (const story of ["panel", "odd", "full", "command", "tool", "stale"]) {
      const page = await open(story, "light", 360);
      const width = await page.evaluate(() => document.scrollingElement?.scrollWidth);
      expect(width, story).toBe(360);
      await page.close();
    }
  });

  it("axe_finds_nothing_serious", async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    for (const story of ["panel", "command", "tool", "odd", "full", "inline", "stale", "disconnected"]) {
      for (const theme of ["light", "dark"]) {
        const page = await open(story, theme);
        await page.evaluate(axe);
        const found = await page.evaluate(async () => {
          const { run } = (
            window as unknown as { axe: { run: () => Promise<{ violations: { id: string; impact: string }[] }> } }
          ).axe;
          return (await run()).violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        });
        expect(
          found.map(({ id }) => id),
          `${story} ${theme}`,
        ).toEqual([]);
        await page.close();
      }
    }
  });

  it("huge_diff_scrolls_in_short_tasks", async () => {
    for (const story of ["huge", "fullHuge"]) {
      const page = await open(story);
      await page.waitForSelector(".diff-table .added");
      await browser.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline"] });
      await page.evaluate(async () => {
        const scroller = document.querySelector(".full-scroller, .stream");
        for (let step = 0; scroller !== null && step < 200; step++) {
          scroller.scrollTop += step % 50 === 49 ? 30_000 : 400;
          await new Promise(requestAnimationFrame);
        }
      });
      const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
      expect(longestTask(trace.traceEvents), story).toBeLessThan(50);
      await page.close();
    }
  });
});

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Processor time in microseconds. */
  tdur?: number;
  args?: { name?: string };
}

/** Processor time of the longest task of the page's main thread in milliseconds. Time of other processes does not count. */
function longestTask(events: TraceEvent[]): number {
  const threads = events.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain");
  const isMain = (event: TraceEvent): boolean => threads.some(({ pid, tid }) => pid === event.pid && tid === event.tid);
  const tasks = events.filter((event) => event.name.endsWith("RunTask") && isMain(event));
  if (tasks.length === 0) throw new Error("The trace has no tasks of the main thread.");
  return Math.max(...tasks.map(({ tdur }) => tdur ?? 0)) / 1000;
}
