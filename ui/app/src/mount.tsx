import { render } from "preact";

import { createApi, createBrowserTransport, Store, type TransportOptions } from "@sayso/client";
import type { Surface_Kind } from "@sayso/client/proto/change";

import { AppProvider } from "./context.js";
import { loadAll } from "./lazy.js";
import { type AddressBar, createRouter } from "./router.js";
import { Shell } from "./shell/shell.js";
import { Theme } from "./theme/theme.js";

/** What the app needs of its host: a browser's page, or a webview of an editor. */
export interface Host {
  transport: TransportOptions;
  addressBar: AddressBar;
  /** Name of this surface for other surfaces, such as `Firefox`. */
  surfaceName: string;
  surfaceKind: Surface_Kind;
}

/** Starts the app in an element. Returns a function that stops it. */
export function mount(root: HTMLElement, host: Host): () => void {
  const api = createApi(createBrowserTransport(host.transport));
  const store = new Store({ api, surfaceName: host.surfaceName, surfaceKind: host.surfaceKind });
  const router = createRouter(host.addressBar);
  const theme = new Theme(document.documentElement, safeStorage());
  const stopTheme = theme.start();
  const onOnline = () => store.setOnline(true);
  const onOffline = () => store.setOnline(false);
  // A page that a browser froze in the background connects as soon as it is looked at.
  const onVisible = () => {
    if (!document.hidden && store.connection.peek().state === "reconnecting") store.retryNow();
  };
  window.addEventListener("online", onOnline);
  window.addEventListener("offline", onOffline);
  document.addEventListener("visibilitychange", onVisible);
  store.start();
  render(
    <AppProvider value={{ api, store, router, theme }}>
      <Shell />
    </AppProvider>,
    root,
  );
  // Not during the first paint. Safari has no idle callback.
  const idle = setTimeout(loadAll, 1_000);
  return () => {
    clearTimeout(idle);
    window.removeEventListener("online", onOnline);
    window.removeEventListener("offline", onOffline);
    document.removeEventListener("visibilitychange", onVisible);
    store.stop();
    stopTheme();
    render(null, root);
  };
}

function safeStorage(): Storage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}
