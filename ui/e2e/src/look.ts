/** Draws every view at every size into `e2e/screenshots`. Run with `npm run look --workspace e2e`, then look at them. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { type Look, openPage, startBrowser } from "./browser.js";
import { startEngine } from "./engine.js";
import { startModel } from "./model.js";
import { startProxy } from "./proxy.js";
import { playOthers, playScene } from "./scene.js";

const OUT = join(import.meta.dirname, "../screenshots");
const SIZES = [
  [360, 800],
  [1280, 900],
  [1440, 1560],
  [3840, 2160],
] as const;

const only = process.argv[2];
await mkdir(OUT, { recursive: true });
const engine = await startEngine();
const model = await startModel();
const proxy = await startProxy(engine.url, process.env.SAYSO_DIST);
const browser = await startBrowser();
const viaProxy = async (view?: string) => (await engine.loginLink(view)).replace(engine.url, proxy.url);
try {
  const shoot = async (
    name: string,
    path: string,
    look: Look,
    act?: (page: Awaited<ReturnType<typeof openPage>>["page"]) => Promise<void>,
  ) => {
    const file = `${name}-${look.width}-${look.theme}`;
    if (only !== undefined && !file.includes(only)) return;
    const { page, context, problems } = await openPage(browser, await viaProxy(), look);
    await page.goto(proxy.url + path);
    await page.waitForLoadState("load");
    // The code of the views, then the rows of a diff.
    await page.waitForTimeout(2_500);
    if (act) {
      await act(page);
      await page.waitForTimeout(700);
    }
    await page.screenshot({ path: join(OUT, `${file}.png`) });
    for (const problem of problems) process.stderr.write(`${file}: ${problem}\n`);
    await context.close();
    proxy.mend();
  };
  const each = async (name: string, path: string, act?: Parameters<typeof shoot>[3]) => {
    for (const [width, height] of SIZES) {
      for (const theme of ["light", "dark"] as const) {
        await shoot(name, path, { width, height, theme, touch: width < 720 }, act);
      }
    }
  };
  await each("empty", "/");
  const { agent, pending } = await playScene(engine, model);
  await playOthers(engine, model);
  await each("stream", `/session/${agent.session}`);
  await each("stream-top", `/session/${agent.session}`, async (page) => {
    await page.locator("[data-testid=stream]").evaluate((element) => element.scrollTo({ top: 0 }));
  });
  await each("change", `/change/${pending}`);
  await each("diff", `/session/${agent.session}?show=diff:${pending}`);
  await each("review", "/");
  await each("history", "/history");
  await each("sessions", "/sessions");
  await each("requests", "/requests");
  await each("disconnected", `/session/${agent.session}`, async () => {
    proxy.cut();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  });
} finally {
  proxy.mend();
  await browser.close();
  await proxy.stop();
  await model.stop();
  await engine.stop();
}
