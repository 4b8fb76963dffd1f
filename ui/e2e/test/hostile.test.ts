import { expect, test } from "vitest";

import { AskMode } from "@sayso/client/proto/intent_service";

import { Agent, write } from "../src/agent.js";
import { useFixture } from "../src/fixture.js";

const fixture = useFixture();

const PAYLOADS = [
  `<img src=x onerror="window.hacked=1">`,
  `<script>window.hacked=1</script>`,
  `"><svg onload=window.hacked=1>`,
  `[x](javascript:window.hacked=1)`,
  `</textarea><iframe srcdoc="<script>parent.hacked=1</script>">`,
];

test("hostile_text_runs_nothing_in_any_view", async () => {
  const payload = PAYLOADS.join("\n\n");
  const agent = await Agent.start(fixture.engine, fixture.model, "hostile-1", PAYLOADS[0]);
  await agent.prompt(payload, [
    { thinking: payload },
    { text: payload },
    { call: "c1", tool: "mcp__<b>x</b>", input: { [PAYLOADS[0] ?? ""]: payload } },
    { call: "c2", tool: "Bash", input: { command: `echo ${PAYLOADS[0] ?? ""}` } },
  ]);
  await agent.results({ c1: payload, c2: payload }, [{ text: payload }]);
  const change = await agent.changeFiles(
    [write(`<img src=x onerror=window.hacked=1>\u202E.rs`, `${payload}\n`)],
    undefined,
    AskMode.ALWAYS,
  );
  await agent.submit(
    {
      case: "callTool",
      value: { name: `<b onmouseover=window.hacked=1>`, argumentsJson: JSON.stringify({ a: payload }) } as never,
    },
    undefined,
    AskMode.ALWAYS,
  );
  const page = await fixture.open(`/session/${agent.session}`);
  const views: [path: string, shown: string][] = [
    [`/session/${agent.session}`, ".panel"],
    [`/change/${change.change}`, ".panel .diff-table, .panel table"],
    [`/session/${agent.session}?show=diff:${change.change}`, ".drawer table"],
    ["/", ".inbox-row"],
    ["/history", ".history-row"],
    ["/requests", "main button"],
    ["/sessions", ".sessions-list .session-row"],
  ];
  for (const [view, shown] of views) {
    await page.goto(fixture.url + view);
    await page.locator(shown).first().waitFor();
    await page.mouse.wheel(0, -100_000);
    await page.locator("button[aria-expanded=false]").evaluateAll((buttons) => {
      for (const button of buttons) (button as HTMLElement).click();
    });
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
    expect(await page.evaluate(() => "hacked" in window), view).toBe(false);
    expect(await page.locator("main script, main iframe, main img, main object").count(), view).toBe(0);
    // A direction mark would reorder the name of a file.
    expect(await page.evaluate(() => document.body.innerText.includes("\u202E")), view).toBe(false);
  }
  expect(fixture.problems.filter((problem) => problem.includes("Content Security Policy"))).toEqual([]);
});
