import { expect, test } from "vitest";

import { openPage } from "../src/browser.js";
import { useFixture } from "../src/fixture.js";

const fixture = useFixture();

test("login_link_opens_view_and_leaves_no_secret", async () => {
  const page = await fixture.open("/history");
  await page.getByRole("heading", { name: "History" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/history");
  const cookies = await page.context().cookies();
  expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([
    { httpOnly: true, sameSite: "Strict" },
  ]);
  expect(await page.evaluate(() => document.cookie)).toBe("");
});

test("used_login_link_says_how_to_get_another", async () => {
  const link = await fixture.engine.loginLink();
  await (await openPage(fixture.browser, link)).context.close();
  const { page } = await openPage(fixture.browser, link);
  expect(await page.textContent("body")).toContain("sayso open");
});

test("page_without_login_says_how_to_log_in", async () => {
  const { page } = await openPage(fixture.browser, `${fixture.url}/history`);
  await page.getByRole("heading", { name: "This page is not logged in" }).waitFor();
  expect(await page.textContent("main")).toContain("sayso open");
});

test("empty_workspace_names_first_commands", async () => {
  const page = await fixture.open("/");
  await page.getByRole("heading", { name: "Nothing has asked for anything yet" }).waitFor();
  expect(await page.textContent("main")).toContain("sayso run -- claude");
});

test("unknown_address_names_itself", async () => {
  const page = await fixture.open("/");
  await page.goto(`${fixture.url}/change/0`);
  await page.getByText("The address /change/0 names no session").waitFor();
});
