import type { Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

export interface TransportOptions {
  /** Address of the engine, such as `http://127.0.0.1:7777`. In a browser: the origin of the page. */
  baseUrl: string;
  /** Replaces the fetch of the browser, such as by one that a webview's host carries out. */
  fetch?: typeof globalThis.fetch;
}

/** Creates the transport of a page. The login cookie, or the fetch of the host, carries the credential. */
export function createBrowserTransport(options: TransportOptions): Transport {
  const { baseUrl, fetch } = options;
  return createConnectTransport({
    baseUrl,
    useBinaryFormat: true,
    ...(fetch === undefined ? {} : { fetch }),
  });
}
