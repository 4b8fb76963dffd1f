import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

import type { Page } from "playwright-core";
import { beforeAll, beforeEach, expect, test } from "vitest";

import { RequestMode } from "@sayso/client/proto/request";
import { HeldRequests } from "@sayso/client/proto/request_service";

import { useFixture } from "../src/fixture.js";
import { until } from "../src/wait.js";

const fixture = useFixture();
let url = "";
/** Edits apply to the rest of a turn, so each test has a session of its own. */
let present = "";
let tests = 0;

beforeAll(async () => {
  const { endpoint } = await fixture.engine.api.requests.openEndpoint({
    agent: "claude",
    upstreams: { anthropic: fixture.model.url },
  });
  url = `${endpoint?.url ?? ""}/anthropic/v1/messages`;
});

beforeEach(async () => {
  tests += 1;
  present = `6f0c1d2e-88b4-4c19-${tests}-9f3c`;
  // Requests that a failed test left are cancelled.
  await setMode(RequestMode.OFF);
  await setMode(RequestMode.INTERCEPT_ALWAYS);
  fixture.model.bodies.length = 0;
});

async function setMode(mode: RequestMode, session?: string): Promise<void> {
  await fixture.engine.api.requests.setMode({
    mode,
    heldRequests: HeldRequests.CANCEL,
    ...(session !== undefined && { session }),
  });
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}

type Message = { role: string; content: unknown[] };

const QUESTION = { type: "text", text: "Add a --json flag to ledger list." };
const TURN: Message[] = [
  { role: "user", content: [QUESTION] },
  { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Grep", input: { pattern: "println!" } }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "214 matches" }] },
];

/** Sends a request as an agent does. Resolves with the status of the response. */
async function send(messages: Message[] = TURN, session = present): Promise<number> {
  fixture.model.responses.push([{ text: "Done." }]);
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-api-key": "sk-none",
      "anthropic-version": "2023-06-01",
      "x-claude-code-session-id": session,
    },
    body: JSON.stringify({
      model: "claude-sonnet-4-5",
      max_tokens: 4096,
      system: "You write Rust.",
      tools: [{ name: "Grep", description: "Searches", input_schema: { type: "object" } }],
      messages,
    }),
  });
  await response.text();
  return response.status;
}

async function held(): Promise<bigint> {
  let number = 0n;
  await until(async () => {
    const { requests } = await fixture.engine.api.requests.listRequests({ held: true });
    number = requests.at(-1)?.request ?? 0n;
    return number !== 0n;
  });
  return number;
}

async function openPaused(page?: Page): Promise<Page> {
  const opened = page ?? (await fixture.open("/requests"));
  await opened.getByRole("heading", { name: "Request paused" }).waitFor();
  await opened.locator("[data-section]").first().waitFor();
  return opened;
}

const cardOf = (page: Page, path: string) =>
  page.locator("[data-section]").filter({ has: page.locator(`.section-title[title="${path}"]`) });

test("leaf_edited_in_browser_reaches_upstream", async () => {
  const answer = send();
  await held();
  const page = await openPaused();
  const card = cardOf(page, "messages[0]");
  await card.hover();
  await card.getByRole("button", { name: "Edit", exact: true }).click();
  await page.locator('[data-leaf="messages[0].content[0].text"]').click();
  await page.getByRole("textbox", { name: "Value of messages[0].content[0].text" }).fill("Count the rows instead.");
  await page.keyboard.press("Control+Enter");
  await page.getByText("1 edit", { exact: true }).waitFor();
  await page.getByRole("button", { name: /Resume send/ }).click();
  expect(await answer).toBe(200);
  const sent = JSON.parse(fixture.model.bodies[0] ?? "{}") as { messages: Message[] };
  expect(sent.messages[0]).toEqual({ role: "user", content: [{ type: "text", text: "Count the rows instead." }] });
  expect(sent.messages.slice(1)).toEqual(TURN.slice(1));
  await page.getByRole("heading", { name: "Recorded request" }).waitFor();
  // An engine without the built-in agent answers its calls with 404.
  expect(fixture.problems.filter((problem) => !/AgentService|\(Not Found\)/.test(problem))).toEqual([]);
  await page.context().close();
});

test("editor_is_used_by_keyboard_alone", async () => {
  const answer = send();
  await held();
  const page = await openPaused();
  const press = (key: string) => page.keyboard.press(key);
  const edit = cardOf(page, "messages[0]").getByRole("button", { name: "Edit", exact: true });
  await edit.focus();
  await press("Enter");
  await page.locator('[data-leaf="messages[0].role"]').focus();
  await press("End");
  expect(await page.evaluate("document.activeElement.dataset.leaf")).toBe("messages[0].content[0].text");
  await press("Enter");
  await page.locator("textarea:focus").waitFor();
  await page.keyboard.type(" Test it.");
  await press("Control+Enter");
  await page.getByText("1 edit", { exact: true }).waitFor();
  await page.locator('[data-leaf="messages[0].content[0].text"]:focus').waitFor();
  await press("Control+z");
  await page.getByText("1 edit", { exact: true }).waitFor({ state: "detached" });
  await page.getByText("No edits", { exact: true }).waitFor({ state: "attached" });
  await page.locator(".banner-decision .ask[aria-disabled=false]").waitFor();
  await press("Control+Shift+Z");
  await page.getByText("1 edit", { exact: true }).waitFor();
  await page.locator(".banner-decision .ask[aria-disabled=false]").waitFor();
  await press("r");
  expect(await answer).toBe(200);
  expect(fixture.model.bodies[0]).toContain("ledger list. Test it.");
  await page.context().close();
});

test("deleted_call_takes_its_result_along", async () => {
  const answer = send();
  await held();
  const page = await openPaused();
  const card = cardOf(page, "messages[1]");
  await card.hover();
  await card.getByRole("button", { name: "Delete", exact: true }).first().click();
  await page
    .getByRole("alertdialog")
    .getByText(/Its pair goes with it/)
    .waitFor();
  await page.getByRole("button", { name: "Delete both" }).click();
  await page.getByText("2 edits", { exact: true }).waitFor();
  await page.locator(".banner-decision .ask[aria-disabled=false]").click();
  expect(await answer).toBe(200);
  expect((JSON.parse(fixture.model.bodies[0] ?? "{}") as { messages: Message[] }).messages).toEqual([TURN[0]]);
  await page.context().close();
});

test("broken_request_is_blocked_and_repaired", async () => {
  const answer = send();
  await held();
  const page = await openPaused();
  const card = cardOf(page, "messages[2]");
  await card.hover();
  await card.getByRole("button", { name: "Delete", exact: true }).first().click();
  await page.getByRole("button", { name: "Only this one" }).click();
  await page.getByText(/the upstream would reject this request/).waitFor();
  expect(await page.getByRole("button", { name: /Resume send/ }).getAttribute("aria-disabled")).toBe("true");
  await page.keyboard.press("r");
  expect(fixture.model.bodies).toEqual([]);
  await page.locator(".problems").getByRole("button").first().click();
  await page.locator(".problems").waitFor({ state: "detached" });
  await page.locator(".banner-decision .ask[aria-disabled=false]").click();
  expect(await answer).toBe(200);
  await page.context().close();
});

test("cancelled_request_never_reaches_upstream", async () => {
  const answer = send();
  await held();
  const page = await openPaused();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  expect(await answer).toBeGreaterThanOrEqual(400);
  await page.getByRole("heading", { name: "Request not sent" }).waitFor();
  expect(fixture.model.bodies).toEqual([]);
  await page.context().close();
});

test("newest_paused_request_is_followed", async () => {
  const first = send();
  const before = await held();
  const page = await openPaused();
  const second = send(TURN, "77aa01-other-1c2d");
  await page.locator(`[data-request="${before + 1n}"]`).waitFor();
  await setMode(RequestMode.OFF);
  await Promise.all([first, second]);
  await page.context().close();
});

test("captured_edit_applies_to_next_turns", async () => {
  const session = "aa11bb-capture-5e6f";
  await setMode(RequestMode.AUTO_OVERRIDE);
  const answer = send(TURN, session);
  await held();
  const page = await openPaused();
  await page.getByText(/^Capturing next turn/).waitFor();
  const card = cardOf(page, "system");
  await card.hover();
  await card.getByRole("button", { name: "Edit", exact: true }).click();
  await page.locator('[data-leaf="system"]').click();
  await page.getByRole("textbox", { name: "Value of system" }).fill("You write Go.");
  await page.keyboard.press("Control+Enter");
  await page.getByText("1 edit", { exact: true }).waitFor();
  await page.locator(".banner-decision .ask[aria-disabled=false]").click();
  expect(await answer).toBe(200);
  await page.getByText(/^Applying \(saved/).waitFor();
  expect(await send(TURN, session)).toBe(200);
  expect(await send([...TURN, { role: "user", content: [QUESTION] }], session)).toBe(200);
  expect(fixture.model.bodies.map((body) => (JSON.parse(body) as { system: unknown }).system)).toEqual([
    "You write Go.",
    "You write Go.",
    "You write Go.",
  ]);
  await page.context().close();
});

test("request_of_400_messages_is_drawn_in_part", async () => {
  const text = "lorem ipsum dolor sit amet ".repeat(190);
  const messages = Array.from({ length: 400 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: [{ type: "text", text: `Message ${index}. ${text}` }],
  }));
  const answer = send(messages, "large-400");
  await held();
  const page = await openPaused();
  expect(await page.locator("[data-section]").count()).toBeLessThan(60);
  await page.locator(".section-scroller").evaluate((scroller) => scroller.scrollTo({ top: 4_000 }));
  await page.locator("[data-section]").first().waitFor();
  expect(await page.locator("[data-section]").count()).toBeLessThan(60);
  await setMode(RequestMode.OFF);
  await answer;
  await page.context().close();
});

test.each([
  [360, "light"],
  [1280, "dark"],
  [1280, "light"],
] as const)("axe_accepts_editor_at_%i_%s", async (width, theme) => {
  const answer = send();
  await held();
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const page = await fixture.open("/requests", { width, height: 900, theme, touch: width < 720 });
  await openPaused(page);
  const serious: string[] = [];
  for (const view of ["", "/requests/log", "/requests/cost", "/requests/subagents"]) {
    if (view !== "") await page.goto(fixture.url + view);
    await page.locator(".request-editor, .requests-part").first().waitFor();
    const violations = await page.evaluate<Violation[]>(
      `${axe}; axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)`,
    );
    for (const { id, impact, nodes } of violations) {
      if (impact === "serious" || impact === "critical") serious.push(`${view} ${id}: ${nodes[0]?.html ?? ""}`);
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
  }
  expect(serious).toEqual([]);
  await setMode(RequestMode.OFF);
  await answer;
  await page.context().close();
});
