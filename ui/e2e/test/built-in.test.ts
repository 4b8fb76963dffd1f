import { readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";

import { approve } from "../src/decide.js";
import { useFixture } from "../src/fixture.js";
import { until } from "../src/wait.js";

const fixture = useFixture();
let session: string;
let page: Page;

beforeAll(async () => {
  await fixture.engine.write("src/main.rs", "fn main() {}\n");
  const started = await fixture.engine.api.agent.startSession({
    settings: { model: "claude-sonnet-4-5", dialect: "anthropic-messages", upstream: "anthropic" },
  });
  session = started.session?.session ?? "";
  page = await fixture.open(`/session/${session}`);
});

const field = () => page.getByLabel("Message", { exact: true });

test("prompt_with_file_leads_to_approved_write", async () => {
  const content = 'fn main() {\n    println!("hi");\n}\n';
  fixture.model.responses.push(
    [
      { thinking: "The file is short." },
      { text: "I will **write** it." },
      { call: "c1", tool: "Read", input: { path: "src/main.rs" } },
    ],
    [{ call: "c2", tool: "Write", input: { path: "src/main.rs", content } }],
    [{ text: "It says hi now." }],
  );
  await field().fill("Say hi in main @src/ma");
  await page.getByRole("option", { name: "src/main.rs" }).waitFor();
  await page.keyboard.press("Tab");
  expect(await field().inputValue()).toBe("Say hi in main @src/main.rs ");
  await page.keyboard.press("Enter");
  await approve(page);
  await page.getByText("It says hi now.").first().waitFor();
  expect(await readFile(join(fixture.engine.workspace, "src/main.rs"), "utf8")).toBe(content);
  await page.getByText("Turn ended").waitFor();
  // Each text is shown once: live parts give way to the blocks of the conversation.
  await until(async () => (await page.getByText("It says hi now.").count()) === 1);
  expect(await page.locator(".markdown strong", { hasText: "write" }).count()).toBe(1);
  await until(async () => (await page.title()).startsWith("ledger-cli"));
});

test("todos_are_shared_with_engine", async () => {
  await page.getByRole("button", { name: /^Todos/ }).click();
  await page.getByLabel("New todo").fill("Test the greeting");
  await page.keyboard.press("Enter");
  await page.getByRole("checkbox", { name: "Test the greeting" }).waitFor();
  await until(async () => {
    const { todos } = await fixture.engine.api.agent.getTodos({ session });
    return todos.some((todo) => todo.text === "Test the greeting");
  });
  await page.getByRole("button", { name: "Close" }).click();
});

test("command_is_no_prompt", async () => {
  await field().fill("/keys");
  await page.getByRole("option", { name: /keys/ }).waitFor();
  await page.keyboard.press("Escape");
  await field().press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  const { blocks } = await fixture.engine.api.conversation.getConversationPreview({ session });
  expect(blocks.some((block) => block.text.includes("/keys"))).toBe(false);
});

test("draft_outlives_view", async () => {
  await field().fill("half a thought");
  await field().blur();
  await page.keyboard.press("4");
  await page.getByRole("heading", { name: "History" }).waitFor();
  await page.keyboard.press("1");
  await until(async () => (await field().inputValue()) === "half a thought");
});
