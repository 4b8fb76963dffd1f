export { createApi, type Api } from "./api.js";
export { createBrowserTransport, type TransportOptions } from "./transport.js";
export type { Connection, Store } from "./store/store.js";
