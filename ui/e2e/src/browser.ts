import { existsSync } from "node:fs";

import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const PROGRAM = process.env.SAYSO_CHROMIUM ?? "/usr/bin/chromium";

/** Without these, Chromium looks for hosts on the network at each start. */
const ARGUMENTS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync"],
];

export async function startBrowser(): Promise<Browser> {
  if (!existsSync(PROGRAM)) {
    throw new Error(
      `${PROGRAM} does not exist. Install Debian's package chromium, or name the program in SAYSO_CHROMIUM.`,
    );
  }
  return chromium.launch({ executablePath: PROGRAM, args: ARGUMENTS });
}

export interface Look {
  width: number;
  height: number;
  theme: "light" | "dark";
  /** A phone: touch, and no mouse. */
  touch?: boolean;
}

export const DESKTOP: Look = { width: 1280, height: 900, theme: "light" };

/** Opens a page that is logged in by a link. Fails the test that reads `problems` if the page logs an error. */
export async function openPage(
  browser: Browser,
  link: string,
  look: Look = DESKTOP,
): Promise<{ page: Page; context: BrowserContext; problems: string[] }> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.theme,
    reducedMotion: "reduce",
    ...(look.touch === true && { hasTouch: true, isMobile: true }),
  });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("response", (response) => {
    if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`);
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  await page.goto(link);
  return { page, context, problems };
}
