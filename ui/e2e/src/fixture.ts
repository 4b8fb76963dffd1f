import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

import { DESKTOP, type Look, openPage, startBrowser } from "./browser.js";
import { type Engine, startEngine } from "./engine.js";
import { type ScriptedModel, startModel } from "./model.js";
import { startProxy } from "./proxy.js";

export interface Fixture {
  engine: Engine;
  model: ScriptedModel;
  browser: Browser;
  /** Opens a view, logged in. */
  open(view: string, look?: Look): Promise<Page>;
  /** Address that browsers use: the engine's, or that of a proxy with the files of `SAYSO_DIST` while the app is developed. */
  url: string;
  /** Errors that the pages logged. */
  problems: string[];
}

/** An engine, a model and a browser for the tests of a file. */
export function useFixture(): Fixture {
  const fixture = { problems: [] as string[] } as Fixture;
  const stops: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    fixture.model = await startModel();
    stops.push(() => fixture.model.stop());
    // The built-in agent sends its requests to the scripted model.
    fixture.engine = await startEngine({ SAYSO_ANTHROPIC_UPSTREAM: fixture.model.url, ANTHROPIC_API_KEY: "sk-none" });
    stops.push(() => fixture.engine.stop());
    fixture.browser = await startBrowser();
    stops.push(() => fixture.browser.close());
    fixture.url = fixture.engine.url;
    if (process.env.SAYSO_DIST !== undefined) {
      const proxy = await startProxy(fixture.engine.url, process.env.SAYSO_DIST);
      stops.push(() => proxy.stop());
      fixture.url = proxy.url;
    }
    fixture.open = async (view, look = DESKTOP) => {
      const link = (await fixture.engine.loginLink(view)).replace(fixture.engine.url, fixture.url);
      const { page, problems } = await openPage(fixture.browser, link, look);
      fixture.problems = problems;
      return page;
    };
  });
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop();
  });
  return fixture;
}
