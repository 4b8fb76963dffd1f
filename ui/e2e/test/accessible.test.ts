import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

import { beforeAll, expect, test } from "vitest";

import { useFixture } from "../src/fixture.js";
import { playOthers, playScene } from "../src/scene.js";

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

const fixture = useFixture();
const views: [name: string, path: string][] = [];

beforeAll(async () => {
  const { agent, pending } = await playScene(fixture.engine, fixture.model);
  await playOthers(fixture.engine, fixture.model);
  views.push(
    ["stream", `/session/${agent.session}`],
    ["change", `/change/${pending}`],
    ["diff", `/session/${agent.session}?show=diff:${pending}`],
    ["review", "/"],
    ["history", "/history"],
    ["requests", "/requests"],
    ["sessions", "/sessions"],
  );
});

test.each(["light", "dark"] as const)("axe_finds_nothing_serious_in_%s_theme", async (theme) => {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const page = await fixture.open("/", { width: 1280, height: 900, theme });
  const all: string[] = [];
  for (const [name, path] of views) {
    await page.goto(fixture.url + path);
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.waitForTimeout(600);
    // The policy of the page permits no script of ours, so it comes by the debugger.
    const violations = await page.evaluate(
      `${axe}; axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)`,
    );
    const serious = (violations as Violation[]).filter(({ impact }) => impact === "serious" || impact === "critical");
    const found = serious.map(({ id, nodes }) =>
      [`${name}: ${id}`, ...nodes.map(({ html }) => html), nodes[0]?.failureSummary ?? ""].join("\n"),
    );
    all.push(...found);
  }
  expect(all).toEqual([]);
  await page.context().close();
});

test("phone_scrolls_in_one_direction_only", async () => {
  const page = await fixture.open("/", { width: 360, height: 800, theme: "light", touch: true });
  for (const [name, path] of views) {
    await page.goto(fixture.url + path);
    await page.waitForTimeout(600);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width, name).toBeLessThanOrEqual(360);
  }
  await page.context().close();
});
