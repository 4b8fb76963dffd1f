import { signal, type ReadonlySignal } from "@preact/signals";

/** A part of the page of requests. */
export type RequestsPart = "editor" | "log" | "cost" | "subagents";

/** A view of the app with its URL. */
export type Route =
  | { view: "home" }
  | { view: "session"; session: string }
  | { view: "change"; change: bigint }
  | { view: "request"; request: bigint }
  | { view: "turn"; session: string; turn: string }
  | { view: "history" }
  | { view: "requests"; part?: RequestsPart }
  | { view: "sessions" }
  | { view: "unknown"; path: string };

/** Contents of the drawer beside the stream. A part of the URL (`?show=…`), so that a link can open it. */
export type Drawer =
  | { kind: "diff"; change: bigint }
  | { kind: "turn-diff"; session: string; turn: string }
  | { kind: "request"; request: bigint }
  | { kind: "todos" }
  | { kind: "subagents" }
  | { kind: "history" };

export interface Location {
  route: Route;
  drawer: Drawer | null;
}

export interface Router {
  location: ReadonlySignal<Location>;
  go(route: Route, drawer?: Drawer): void;
  /** Opens the drawer beside the present view, or closes it. */
  show(drawer: Drawer | null): void;
  href(route: Route, drawer?: Drawer): string;
}

const number = (text: string | undefined): bigint | null =>
  text !== undefined && /^[1-9]\d{0,18}$/.test(text) ? BigInt(text) : null;

const decode = (text: string | undefined): string => {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return "";
  }
};

export function parseRoute(path: string): Route {
  const [view, id, rest] = path.replace(/^\//, "").split("/");
  switch (view) {
    case "":
      return { view: "home" };
    case "session":
      return decode(id) === "" ? { view: "sessions" } : { view: "session", session: decode(id) };
    case "change": {
      const change = number(id);
      return change === null ? { view: "unknown", path } : { view: "change", change };
    }
    case "request": {
      const request = number(id);
      return request === null ? { view: "unknown", path } : { view: "request", request };
    }
    case "turn":
      return { view: "turn", session: decode(id), turn: decode(rest) };
    case "requests":
      return id === "log" || id === "cost" || id === "subagents" ? { view, part: id } : { view };
    case "history":
    case "sessions":
      return { view };
    default:
      return { view: "unknown", path };
  }
}

export function formatRoute(route: Route): string {
  switch (route.view) {
    case "home":
      return "/";
    case "session":
      return `/session/${encodeURIComponent(route.session)}`;
    case "change":
      return `/change/${route.change}`;
    case "request":
      return `/request/${route.request}`;
    case "turn":
      return `/turn/${encodeURIComponent(route.session)}/${encodeURIComponent(route.turn)}`;
    case "requests":
      return route.part === undefined || route.part === "editor" ? "/requests" : `/requests/${route.part}`;
    case "unknown":
      return route.path;
    default:
      return `/${route.view}`;
  }
}

export function parseDrawer(query: string): Drawer | null {
  const [kind, id, rest] = (new URLSearchParams(query).get("show") ?? "").split(":");
  const at = number(id);
  switch (kind) {
    case "diff":
      return at === null ? null : { kind, change: at };
    case "request":
      return at === null ? null : { kind, request: at };
    case "turn-diff":
      return { kind, session: decode(id), turn: decode(rest) };
    case "todos":
    case "subagents":
    case "history":
      return { kind };
    default:
      return null;
  }
}

export function formatDrawer(drawer: Drawer | null): string {
  if (drawer === null) return "";
  switch (drawer.kind) {
    case "diff":
      return `?show=diff:${drawer.change}`;
    case "request":
      return `?show=request:${drawer.request}`;
    case "turn-diff":
      return `?show=${encodeURIComponent(`turn-diff:${encodeURIComponent(drawer.session)}:${encodeURIComponent(drawer.turn)}`)}`;
    default:
      return `?show=${drawer.kind}`;
  }
}

/** Part of `window` that the router needs. A webview has no address bar, and passes an object in memory. */
export interface AddressBar {
  read(): { path: string; query: string };
  push(url: string): void;
  /** Calls back after the user went back or forward. */
  onChange(callback: () => void): void;
}

export function createRouter(bar: AddressBar): Router {
  const read = (): Location => {
    const { path, query } = bar.read();
    return { route: parseRoute(path), drawer: parseDrawer(query) };
  };
  const location = signal(read());
  bar.onChange(() => (location.value = read()));
  const href = (route: Route, drawer?: Drawer) => formatRoute(route) + formatDrawer(drawer ?? null);
  const go = (route: Route, drawer: Drawer | null) => {
    const url = formatRoute(route) + formatDrawer(drawer);
    const present = location.peek();
    if (url !== formatRoute(present.route) + formatDrawer(present.drawer)) bar.push(url);
    location.value = { route, drawer };
  };
  return {
    location,
    href,
    go: (route, drawer) => go(route, drawer ?? null),
    show: (drawer) => go(location.peek().route, drawer),
  };
}

/** The address bar of a browser. */
export function browserAddressBar(window: Window): AddressBar {
  return {
    read: () => ({ path: window.location.pathname, query: window.location.search }),
    push: (url) => window.history.pushState(null, "", url),
    onChange: (callback) => window.addEventListener("popstate", callback),
  };
}
