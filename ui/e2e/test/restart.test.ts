import { expect, test } from "vitest";

import { useFixture } from "../src/fixture.js";
import { playScene } from "../src/scene.js";
import { until } from "../src/wait.js";

const fixture = useFixture();

test("restarted_engine_asks_for_new_login_and_keeps_history", async () => {
  const { agent } = await playScene(fixture.engine, fixture.model);
  const page = await fixture.open(`/session/${agent.session}`);
  await page.locator(".panel").waitFor();
  await fixture.engine.restart();
  // The login was that of the engine that ended.
  await page.getByRole("heading", { name: "This page is not logged in" }).waitFor();
  const link = await fixture.engine.loginLink(`/session/${agent.session}`);
  await page.goto(link.replace(fixture.engine.url, fixture.url));
  await page.locator(".panel").waitFor();
  await until(async () => (await page.title()).startsWith("(1)"));
});

test("pending_change_is_announced_politely", async () => {
  const page = await fixture.open("/history");
  await page.getByText("Connected", { exact: true }).waitFor();
  const focused = await page.evaluate(() => document.activeElement?.tagName);
  const { agent } = await playScene(fixture.engine, fixture.model);
  await until(async () => (await page.getByTestId("announcement").textContent())?.trim() === "2 waiting");
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe(focused);
  await fixture.engine.intents.endSession({ session: agent.session });
});
