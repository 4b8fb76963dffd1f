import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { expect, test } from "vitest";

import { useFixture } from "../src/fixture.js";
import { playOthers, playScene } from "../src/scene.js";
import { until } from "../src/wait.js";

/** The README shows it on every visit. */
const MAX_BYTES = 300_000;

const fixture = useFixture();

test("picture_of_app_is_small_and_complete", async () => {
  const { agent } = await playScene(fixture.engine, fixture.model);
  await playOthers(fixture.engine, fixture.model);
  const page = await fixture.open(`/session/${agent.session}`, { width: 1280, height: 860, theme: "light" });
  const panel = page.locator(".panel");
  await panel.locator("tr.line").first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  await until(async () => ((await panel.boundingBox())?.y ?? 1_000) < 400);
  // All rows in view are read, also after the last scroll.
  await until(async () => (await panel.locator("tr.loading").count()) === 0);
  const picture = await page.screenshot({ animations: "disabled" });
  expect(picture.byteLength).toBeLessThan(MAX_BYTES);
  expect(fixture.problems).toEqual([]);
  // Set by `make picture`.
  const { SAYSO_PICTURE } = process.env;
  if (SAYSO_PICTURE !== undefined) {
    const path = join(import.meta.dirname, "..", SAYSO_PICTURE);
    await writeFile(path, picture);
    expect((await stat(path)).size).toBe(picture.byteLength);
  }
});
