import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { useApp } from "../context.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { RequestParts } from "../request/request-parts.js";
import { type Route } from "../router.js";
import { locationName, sessionTitle } from "../session/name.js";
import { formatDollars } from "../times.js";

const TABS = [
  { key: "1", name: "Stream", views: ["session", "change", "turn"] },
  { key: "2", name: "Review", views: ["home"] },
  { key: "3", name: "Requests", views: ["requests", "request"] },
  { key: "4", name: "History", views: ["history"] },
  { key: "5", name: "Sessions", views: ["sessions"] },
] as const;

/** Route of a tab. The stream is that of the present session, or of the one with the latest event. */
export function tabRoute(key: string, app: Pick<ReturnType<typeof useApp>, "store" | "router">): Route | null {
  switch (key) {
    case "1": {
      const session = presentSession(app) ?? latestSession(app);
      return session === null ? { view: "home" } : { view: "session", session };
    }
    case "2":
      return { view: "home" };
    case "3":
      return { view: "requests" };
    case "4":
      return { view: "history" };
    case "5":
      return { view: "sessions" };
    default:
      return null;
  }
}

let lastSession: string | null = null;

function presentSession({ router, store }: Pick<ReturnType<typeof useApp>, "store" | "router">): string | null {
  const { route } = router.location.value;
  if (route.view === "session") lastSession = route.session;
  if (route.view === "change") return store.change(route.change).value?.origin?.session ?? lastSession;
  return lastSession;
}

function latestSession({ store }: Pick<ReturnType<typeof useApp>, "store">): string | null {
  const sessions = [...store.sessions.all.value.values()];
  if (sessions.length === 0) return null;
  return sessions.reduce((a, b) => (a.activeMs >= b.activeMs ? a : b)).session;
}

export function TopBar({ onMenu }: { onMenu: () => void }) {
  const app = useApp();
  const { store, router } = app;
  const { route } = router.location.value;
  const waiting = store.inbox.value.length;
  presentSession(app);
  return (
    <header class="top-bar">
      <button type="button" class="button quiet icon-only menu-button" aria-label="Sessions" onClick={onMenu}>
        <Icon name="menu" />
      </button>
      <Heading route={route} />
      <span class="grow" />
      {waiting > 0 && (
        <a
          class="phone-waiting"
          href="/"
          onClick={(event) => {
            event.preventDefault();
            router.go({ view: "home" });
          }}
        >
          {waiting} waiting
        </a>
      )}
      <RequestParts class="in-bar" />
      <nav class="tabs" aria-label="Views">
        {TABS.map(({ key, name, views }) => {
          const isPresent = (views as readonly string[]).includes(route.view);
          const target = tabRoute(key, app) ?? { view: "home" };
          return (
            <a
              key={key}
              class="tab"
              href={router.href(target)}
              aria-current={isPresent ? "page" : undefined}
              aria-keyshortcuts={key}
              onClick={(event) => {
                event.preventDefault();
                router.go(target);
              }}
            >
              {name}
              {key === "2" && waiting > 0 && (
                <span class="badge" aria-label={`${waiting} waiting`}>
                  {waiting}
                </span>
              )}
              <kbd aria-hidden="true">{key}</kbd>
            </a>
          );
        })}
      </nav>
    </header>
  );
}

function Heading({ route }: { route: Route }) {
  const { store } = useApp();
  const change = route.view === "change" ? store.change(route.change).value : undefined;
  const session = route.view === "session" ? route.session : change?.origin?.session;
  if (session !== undefined) return <SessionHeading session={session} />;
  const names: Partial<Record<Route["view"], string>> = {
    history: "History",
    requests: "Requests",
    sessions: "Sessions",
    home: store.sessions.all.value.size === 0 ? "No session" : "Review",
    request: route.view === "request" ? `Request ${route.request}` : "Request",
    change: route.view === "change" ? `Change ${route.change}` : "Change",
  };
  return <h1 class="ellipsis">{names[route.view] ?? "sayso"}</h1>;
}

function SessionHeading({ session }: { session: string }) {
  const { store } = useApp();
  const info = store.sessions.all.value.get(session);
  const branch = useBranch();
  const cost = useComputed(() => {
    let sum = 0n;
    for (const entry of store.timeline(session).entries.value) {
      if (entry.kind === "request") sum += store.request(entry.request).value?.cost?.nanoDollars ?? 0n;
    }
    return sum;
  }).value;
  useEffect(() => store.loadTitle(session), [store, session]);
  const facts: ComponentChildren[] = [];
  if (info?.agent !== undefined) facts.push(escapeUntrusted(info.agent));
  const place = locationName(info?.location ?? store.engine.value?.workspace);
  if (place !== undefined) facts.push(place);
  if (branch !== null) {
    facts.push(
      <>
        <Icon name="branch" small /> {escapeUntrusted(branch)}
      </>,
    );
  }
  if (cost > 0n) facts.push(formatDollars(cost));
  return (
    <>
      <h1 class="ellipsis">{sessionTitle(info, session)}</h1>
      <span class="heading-facts secondary numeric ellipsis">
        {facts.map((fact, index) => (
          <span key={index}>
            {index > 0 && <span class="dot">·</span>}
            {fact}
          </span>
        ))}
      </span>
    </>
  );
}

/** Branch of the workspace's repository. */
function useBranch(): string | null {
  const { api, store } = useApp();
  const [branch, setBranch] = useState<string | null>(null);
  const isLive = store.connection.value.state === "live";
  useEffect(() => {
    if (!isLive) return;
    api.workspace.getBranch({}).then(
      (answer) => setBranch(answer.branch ?? null),
      // Without git there is no branch to show.
      () => setBranch(null),
    );
  }, [api, isLive]);
  return branch;
}
