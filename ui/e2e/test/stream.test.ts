import { readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";

import { AskMode } from "@sayso/client/proto/intent_service";

import { type Agent, write } from "../src/agent.js";
import { approve } from "../src/decide.js";
import { useFixture } from "../src/fixture.js";
import { startProxy } from "../src/proxy.js";
import { playScene } from "../src/scene.js";
import { openPage } from "../src/browser.js";
import { until } from "../src/wait.js";

const fixture = useFixture();
let agent: Agent;
let pending: bigint;

beforeAll(async () => {
  ({ agent, pending } = await playScene(fixture.engine, fixture.model));
});

const stream = (page: Page) => page.getByTestId("stream");
const toTop = async (page: Page) => {
  await stream(page).hover({ position: { x: 8, y: 100 } });
  await page.mouse.wheel(0, -100_000);
};
const present = (path: string) => readFile(join(fixture.engine.workspace, path), "utf8");

test("open_session_shows_what_waits", async () => {
  const page = await fixture.open(`/session/${agent.session}`);
  const panel = page.locator(".panel");
  await panel.waitFor();
  await until(async () => ((await panel.boundingBox())?.y ?? -1) >= 0);
  await until(async () => (await page.title()).startsWith("(1)"));
  expect(await page.getAttribute("link[rel=icon]", "href")).toBe("/favicon-waiting.svg");
  await page.context().close();
});

test("stream_is_feed_of_articles_in_order", async () => {
  const page = await fixture.open(`/session/${agent.session}`);
  await page.locator(".panel").waitFor();
  await toTop(page);
  await page.getByRole("article", { name: "Prompt" }).first().waitFor();
  const names = await page
    .getByRole("feed")
    .getByRole("article")
    .evaluateAll((articles) => articles.slice(0, 6).map((article) => article.getAttribute("aria-label")));
  expect(names).toEqual(["Prompt", "Request", "Thinking", "Assistant", "Tool call", "Tool call"]);
  const diff = page.locator(".inline-diff").first();
  expect(await diff.locator(".diff-add").first().textContent()).toMatch(/^\+ /);
  expect(await diff.locator(".diff-remove").first().textContent()).toMatch(/^- /);
  expect(await diff.locator(".diff-truncated").textContent()).toMatch(/^\.\.\. \d+ more lines$/);
  await page.context().close();
});

test("thinking_hides_and_returns", async () => {
  const page = await fixture.open(`/session/${agent.session}`);
  await page.locator(".panel").waitFor();
  await toTop(page);
  const thinking = page.getByRole("article", { name: "Thinking" });
  await thinking.first().waitFor();
  await stream(page).focus();
  await page.keyboard.press("t");
  await until(async () => (await thinking.count()) === 0);
  await page.keyboard.press("t");
  await thinking.first().waitFor();
  await page.context().close();
});

test("cut_connection_loses_no_event", async () => {
  const proxy = await startProxy(fixture.engine.url, process.env.SAYSO_DIST);
  const link = (await fixture.engine.loginLink("/history")).replace(fixture.engine.url, proxy.url);
  const { page, context } = await openPage(fixture.browser, link);
  await page.getByText("Connected", { exact: true }).waitFor();
  proxy.cut();
  await page.getByText("Connection lost at").waitFor();
  const during = await agent.changeFiles([write("src/during.rs", "pub fn during() {}\n")], undefined, AskMode.ALWAYS);
  proxy.mend();
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.getByText("Connected", { exact: true }).waitFor();
  await page.getByText("during.rs").first().waitFor();
  expect(await page.getByText("Connection lost at").count()).toBe(0);
  await fixture.engine.intents.withdraw({ change: during.change });
  await context.close();
  await proxy.stop();
});

test("first_verdict_wins_in_two_browsers", async () => {
  const [first, second] = [await fixture.open(`/session/${agent.session}`), await fixture.open(`/change/${pending}`)];
  await first.locator(".panel").waitFor();
  await second.locator(".panel").waitFor();
  const before = await present("src/cli.rs");
  await approve(first);
  await until(async () => (await present("src/cli.rs")) !== before);
  expect(await present("src/cli.rs")).toContain("json: bool");
  expect(await present("tests/list.rs")).toContain("two_changes_print_two_lines");
  for (const page of [first, second]) {
    await page.locator(`[data-change="${pending}"] .state.applied`).waitFor();
    expect(await page.locator(".panel").count()).toBe(0);
    await page.context().close();
  }
});

test("undo_shows_its_effect_then_restores", async () => {
  const page = await fixture.open("/history");
  const row = page.locator(".history-row", { hasText: "table.rs" });
  await row.getByRole("button", { name: "Undo" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("-use serde::Serialize;").waitFor();
  expect(await present("src/table.rs")).toContain("serde");
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  await row.getByText("undone").waitFor();
  expect(await present("src/table.rs")).not.toContain("serde");
  await row.getByRole("button", { name: "Redo" }).click();
  await dialog.getByRole("button", { name: "Redo", exact: true }).click();
  await until(async () => (await present("src/table.rs")).includes("serde"));
  await page.context().close();
});

test("history_filters_by_path_and_state", async () => {
  const page = await fixture.open("/history");
  await page.locator(".history-row").first().waitFor();
  await page.getByRole("searchbox").fill("table");
  await until(async () =>
    (await page.locator(".history-row").allTextContents()).every((text) => text.includes("table")),
  );
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "denied" }).click();
  await page.getByText("No change matches the filter.").waitFor();
  await page.context().close();
});

test("keys_reach_every_view", async () => {
  const page = await fixture.open("/");
  await page.getByText("Connected", { exact: true }).waitFor();
  for (const [key, path] of [
    ["4", "/history"],
    ["3", "/requests"],
    ["5", "/sessions"],
    ["2", "/"],
  ] as const) {
    await page.keyboard.press(key);
    await until(() => Promise.resolve(new URL(page.url()).pathname === path));
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Review panel").waitFor();
  await page.keyboard.press("Escape");
  await until(async () => (await page.getByRole("dialog").count()) === 0);
  await page.context().close();
});
