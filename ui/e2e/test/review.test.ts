import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";

import { Change_Status, Surface_Kind } from "@sayso/client/proto/change";
import { AskMode } from "@sayso/client/proto/intent_service";

import { Agent, write } from "../src/agent.js";
import { approve } from "../src/decide.js";
import { binary } from "../src/engine.js";
import { useFixture } from "../src/fixture.js";
import { until } from "../src/wait.js";

const fixture = useFixture();
let agent: Agent;

beforeAll(async () => {
  agent = await Agent.start(fixture.engine, fixture.model, "review-1");
  await agent.prompt("Change things", [{ text: "Changing." }]);
});

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("");
const present = (path: string) => readFile(join(fixture.engine.workspace, path), "utf8");
const details = async (change: bigint) => {
  const { details } = await fixture.engine.api.review.getChange({ change });
  if (!details?.change) throw new Error(`change ${change} is not known`);
  return details.change;
};
const statusOf = async (change: bigint) => (await details(change)).status;
const applied = (change: bigint) => until(async () => (await statusOf(change)) === Change_Status.APPLIED);

/** Proposes two hunks of a new file with thirty lines. */
async function propose(path: string, agreed = AskMode.ALWAYS) {
  const old = numbers(30);
  await fixture.engine.write(path, old);
  const change = await agent.changeFiles(
    [write(path, old.replace("line 3\n", "line three\n").replace("line 27\n", "line twenty-seven\n"))],
    undefined,
    agreed,
  );
  return { change: change.change, old };
}

async function openChange(change: bigint): Promise<Page> {
  const page = await fixture.open(`/change/${change}`);
  await page.locator(".panel .diff-table").first().waitFor();
  return page;
}

/** Presses a key until an element is there. A new panel ignores deciding keys at first. */
async function pressUntil(page: Page, key: string, selector: string): Promise<void> {
  await until(async () => {
    if ((await page.locator(selector).count()) > 0) return true;
    await page.keyboard.press(key);
    await page.waitForTimeout(150);
    return false;
  });
}

/** Presses `y` until the change is decided. */
async function pressApprove(page: Page, change: bigint): Promise<void> {
  await until(async () => {
    if ((await statusOf(change)) !== Change_Status.PENDING) return true;
    await page.keyboard.press("y");
    await page.waitForTimeout(150);
    return false;
  });
}

test("keyboard_alone_approves_one_hunk", async () => {
  const { change, old } = await propose("hunks.txt");
  const page = await openChange(change);
  await page.keyboard.press("Space");
  await page.locator(".hunk-state", { hasText: "not selected" }).first().waitFor();
  await pressApprove(page, change);
  await until(async () => (await present("hunks.txt")) === old.replace("line 27\n", "line twenty-seven\n"));
  await page.context().close();
});

test("denied_change_tells_reason_to_model", async () => {
  const { engine, model } = fixture;
  const started = await engine.api.agent.startSession({
    settings: { model: "claude-sonnet-4-5", dialect: "anthropic-messages", upstream: "anthropic" },
  });
  const session = started.session?.session ?? "";
  model.responses.push(
    [{ call: "c1", tool: "Write", input: { path: "new.txt", content: "new\n" } }],
    [{ text: "Then I leave it." }],
  );
  const page = await fixture.open(`/session/${session}`);
  await page.getByLabel("Message", { exact: true }).fill("Write new.txt");
  await page.keyboard.press("Enter");
  await page.locator(".panel .diff-table").first().waitFor();
  await page.getByLabel("Message", { exact: true }).blur();
  await pressUntil(page, "n", "input[aria-label='Reason for the agent']");
  await page.getByLabel("Reason for the agent").fill("There is no need for it");
  await page.keyboard.press("Enter");
  await page.getByText("Then I leave it.").first().waitFor();
  expect(model.bodies.at(-1)).toContain("There is no need for it");
  await page.context().close();
});

test("comment_on_line_reaches_agent", async () => {
  const { change } = await propose("comment.txt");
  const page = await openChange(change);
  await pressUntil(page, "c", ".comment.open textarea");
  await page.locator(".comment.open textarea").fill("Spell it out everywhere");
  await page.getByRole("button", { name: /^Keep/ }).click();
  await page.locator(".comment-text", { hasText: "Spell it out everywhere" }).waitFor();
  await approve(page);
  await applied(change);
  expect((await details(change)).agentMessage).toContain("Spell it out everywhere");
  await page.context().close();
});

test("message_with_approval_reaches_agent", async () => {
  const { change } = await propose("message.txt");
  const page = await openChange(change);
  await pressUntil(page, "m", "input[aria-label='Message for the agent']");
  await page.getByLabel("Message for the agent").fill("And document it");
  await page.keyboard.press("Enter");
  await applied(change);
  const { agentMessage, verdict } = await details(change);
  expect(agentMessage).toContain("And document it");
  expect(verdict).toMatchObject({ message: "And document it", comments: [] });
  await page.context().close();
});

test("edited_proposal_is_shown_again_and_written", async () => {
  const { change, old } = await propose("edit.txt");
  const page = await openChange(change);
  await pressUntil(page, "e", ".edit-view .cm-content");
  await page.locator(".edit-view .cm-content").click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("line zero\n");
  await page.getByRole("button", { name: /^Show the result|^Preview|^Done/ }).click();
  await page.getByText("This is the result of your edit.").waitFor();
  await page.locator(".panel .diff-table", { hasText: "line zero" }).waitFor();
  expect(await present("edit.txt")).toBe(old);
  await page.getByRole("button", { name: /^Keep the edit/ }).click();
  await approve(page);
  await applied(change);
  expect(await present("edit.txt")).toMatch(/^line zero\nline 1\nline 2\nline three\n/);
  await page.context().close();
});

test("rule_of_approval_decides_next_change", async () => {
  const { change } = await propose("ruled.txt");
  const page = await openChange(change);
  await pressUntil(page, "A", ".rule-view");
  await page.locator(".rule-text").waitFor();
  await page
    .locator(".rule-view")
    .getByRole("button", { name: /^Approve/ })
    .click();
  await applied(change);
  const next = await propose("ruled.txt", AskMode.POLICY);
  await applied(next.change);
  expect(await present("ruled.txt")).toContain("line three");
  await page.context().close();
});

test("refreshed_preview_pauses_keys", async () => {
  const { change, old } = await propose("stale.txt");
  const page = await openChange(change);
  const before = (await details(change)).previewHash;
  await fixture.engine.write("stale.txt", old.replace("line 15\n", "line fifteen\n"));
  await until(async () => (await details(change)).previewHash !== before);
  await page.locator(".refreshed-note").waitFor();
  await page.keyboard.press("y");
  await page.keyboard.press("y");
  expect(await statusOf(change)).toBe(Change_Status.PENDING);
  await page.keyboard.press("Enter");
  await page.locator(".refreshed-note").waitFor({ state: "detached" });
  await pressApprove(page, change);
  await applied(change);
  expect(await present("stale.txt")).toContain("line fifteen\n");
  expect(await present("stale.txt")).toContain("line three\n");
  await page.context().close();
});

test("edited_command_is_answered", async () => {
  const submitted = await agent.submit(
    { case: "runCommand", value: { command: "git status --short", description: "State of the tree" } as never },
    undefined,
    AskMode.ALWAYS,
  );
  const page = await fixture.open(`/change/${submitted.change}`);
  await page.locator(".panel .script").waitFor();
  await pressUntil(page, "e", ".edit-view .cm-content, .edit-view textarea");
  await page.locator(".edit-view .cm-content, .edit-view textarea").click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("git status --long");
  await page.locator(".edit-head button").last().click();
  await page.locator(".panel .script", { hasText: "git status --long" }).waitFor();
  await page.getByRole("button", { name: /^Keep the edit/ }).click();
  await approve(page);
  await until(async () => (await statusOf(submitted.change)) !== Change_Status.PENDING);
  const { verdict } = await details(submitted.change);
  expect(verdict?.answer?.answer).toEqual({ case: "command", value: "git status --long" });
  await page.context().close();
});

test("first_verdict_wins_over_terminal", async () => {
  const { change, old } = await propose("terminal.txt");
  const page = await openChange(change);
  // `script` gives the program a terminal.
  const terminal = spawn("script", ["-qec", `${binary()} review ${change}`, "/dev/null"], {
    cwd: fixture.engine.workspace,
    env: { ...fixture.engine.environment, TERM: "xterm-256color" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let screen = "";
  terminal.stdout.on("data", (data) => (screen += String(data)));
  const ended = new Promise((resolve) => terminal.once("close", resolve));
  await until(() => Promise.resolve(screen.includes("(1/2) Apply this hunk")));
  await page.keyboard.press("Space");
  await page.locator(".hunk-state", { hasText: "not selected" }).first().waitFor();
  await approve(page);
  const expected = old.replace("line 27\n", "line twenty-seven\n");
  await until(async () => (await present("terminal.txt")) === expected);
  terminal.stdin.write("a\n");
  await ended;
  expect(screen.split("Apply this hunk").at(-1)).toMatch(/decided|no longer|already/);
  expect(await present("terminal.txt")).toBe(expected);
  expect((await details(change)).verdict?.by).toMatchObject({ value: { surface: { kind: Surface_Kind.BROWSER } } });
  await page.context().close();
});
