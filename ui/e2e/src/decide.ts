import type { Page } from "playwright-core";

import { until } from "./wait.js";

/** Approves the panel of a page. A new panel ignores decisions at first, so the click is repeated until it counts. */
export async function approve(page: Page): Promise<void> {
  const panel = page.locator(".panel");
  await panel.waitFor();
  await until(async () => {
    const button = panel.getByRole("button", { name: /^Approve/ });
    if ((await panel.count()) === 0) return true;
    await button.click({ timeout: 500 }).catch(() => undefined);
    return false;
  });
}
