// Before the styles of the views, which refine these.
import "./theme/tokens.css";
import "./theme/base.css";

import { render } from "preact";

import { createApi, createBrowserTransport, Store } from "@sayso/client";

import { AppProvider } from "./context.js";
import { loadAll } from "./lazy.js";
import { browserAddressBar, createRouter } from "./router.js";
import { Shell } from "./shell/shell.js";
import { Theme } from "./theme/theme.js";

const api = createApi(createBrowserTransport({ baseUrl: window.location.origin }));
const store = new Store({ api, surfaceName: browserName(navigator.userAgent) });
const router = createRouter(browserAddressBar(window));
const theme = new Theme(document.documentElement, safeStorage());
theme.start();
store.start();
window.addEventListener("online", () => store.setOnline(true));
window.addEventListener("offline", () => store.setOnline(false));
// A page that a browser froze in the background connects as soon as it is looked at.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && store.connection.peek().state === "reconnecting") store.retryNow();
});

const root = document.getElementById("app");
if (root) {
  render(
    <AppProvider value={{ api, store, router, theme }}>
      <Shell />
    </AppProvider>,
    root,
  );
}

// Not during the first paint. Safari has no idle callback.
setTimeout(loadAll, 1_000);

function safeStorage(): Storage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}

function browserName(userAgent: string): string {
  return /Firefox|Edg|Chrome|Safari/.exec(userAgent)?.[0].replace("Edg", "Edge") ?? "browser";
}
