import { type Signal, useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { SessionInfo } from "@sayso/client";

import { useApp } from "../context.js";
import { escapeUntrusted, formatDuration } from "../diff/words.js";
import { Icon } from "../icon.js";
import { locationName, sessionTitle } from "../session/name.js";
import { sessionStatus, type SessionStatus } from "../session/status.js";
import { clockTime, dayName, useNow } from "../times.js";
import { dialogs } from "./dialogs.js";

interface Row {
  info: SessionInfo;
  status: SessionStatus;
}

/** Sessions in groups: those that wait for a person, those that run, then the others by day. */
export function Sidebar({ isOpen }: { isOpen: Signal<boolean> }) {
  const { store, router } = useApp();
  const now = useNow(10_000);
  const rows = useComputed(() => sessionRows(store)).value;
  const { route } = router.location.value;
  const present = route.view === "session" ? route.session : null;
  const groups = groupRows(rows, now);
  return (
    <nav class={`sidebar${isOpen.value ? " open" : ""}`} aria-label="Sessions">
      <div class="sidebar-top">
        <a
          class="brand"
          href="/"
          onClick={(event) => {
            event.preventDefault();
            isOpen.value = false;
            router.go({ view: "home" });
          }}
        >
          <Icon name="gate" />
          sayso
        </a>
        <span class="grow" />
        <button
          type="button"
          class="button quiet small"
          title="Keys that work here"
          aria-keyshortcuts="?"
          onClick={() => (dialogs.keys.value = true)}
        >
          <span class="visually-hidden">Keys that work here</span>
          <kbd aria-hidden="true">?</kbd>
        </button>
        <button
          type="button"
          class="button quiet small icon-only"
          aria-label="New session"
          onClick={() => (dialogs.newSession.value = true)}
        >
          <Icon name="add" />
        </button>
      </div>
      <div class="sidebar-list">
        {groups.length === 0 && store.loaded.value && (
          <p class="sidebar-empty secondary">No sessions. One appears here when an agent starts behind the gate.</p>
        )}
        {groups.map(({ name, rows: ofGroup, hasCount }) => (
          <section key={name} aria-label={name}>
            <h2 class="sidebar-group">
              <span>{name}</span>
              {hasCount && <span>{ofGroup.length}</span>}
            </h2>
            {ofGroup.map((row) => (
              <SessionRow
                key={row.info.session}
                row={row}
                now={now}
                isPresent={row.info.session === present}
                onOpen={() => (isOpen.value = false)}
              />
            ))}
          </section>
        ))}
      </div>
      <ConnectionFoot />
    </nav>
  );
}

export function sessionRows(store: ReturnType<typeof useApp>["store"]): Row[] {
  const inbox = store.inbox.value;
  const rows = [...store.sessions.all.value.values()].map((info) => {
    const change = info.lastChange === undefined ? undefined : store.change(info.lastChange).value;
    const request = info.lastRequest === undefined ? undefined : store.request(info.lastRequest).value;
    return { info, status: sessionStatus(info, inbox, change, request) };
  });
  return rows.sort((a, b) => Number(b.info.activeMs - a.info.activeMs));
}

function groupRows(rows: Row[], now: number): { name: string; rows: Row[]; hasCount: boolean }[] {
  const of = (group: SessionStatus["group"]) => rows.filter((row) => row.status.group === group);
  const groups = [
    { name: "Waiting for you", rows: of("waiting"), hasCount: true },
    { name: "Running", rows: of("running"), hasCount: true },
  ];
  const days = new Map<string, Row[]>();
  for (const row of of("past")) {
    const day = dayName(row.info.activeMs, now);
    days.set(day, [...(days.get(day) ?? []), row]);
  }
  for (const [name, ofDay] of days) groups.push({ name, rows: ofDay, hasCount: false });
  return groups.filter((group) => group.rows.length > 0);
}

export function SessionRow(props: { row: Row; now: number; isPresent: boolean; onOpen: () => void }) {
  const { store, router } = useApp();
  const { info, status } = props.row;
  const { session } = info;
  useEffect(() => store.loadTitle(session), [store, session, info.lastRequest]);
  const route = { view: "session", session } as const;
  return (
    <a
      class={`session-row ${status.tone}`}
      href={router.href(route)}
      aria-current={props.isPresent ? "page" : undefined}
      onClick={(event) => {
        event.preventDefault();
        router.go(route);
        props.onOpen();
      }}
    >
      <Icon name={status.icon} />
      <span class="session-title ellipsis">{sessionTitle(info, session)}</span>
      {status.waiting > 0 ? (
        <span class="badge" aria-label={`${status.waiting} waiting`}>
          {status.waiting}
        </span>
      ) : (
        <span class="session-time numeric">
          {status.group === "running" ? formatDuration(props.now - Number(info.activeMs)) : clockTime(info.activeMs)}
        </span>
      )}
      <span class="session-facts ellipsis">
        {[
          info.parent === undefined ? info.agent : `subagent of ${info.agent ?? "a session"}`,
          locationName(info.location),
        ]
          .filter((fact) => fact !== undefined)
          .map((fact) => (
            <span key={fact}>
              {escapeUntrusted(fact)}
              <span class="dot">·</span>
            </span>
          ))}
        <span class="session-state">{escapeUntrusted(status.text)}</span>
      </span>
    </a>
  );
}

function ConnectionFoot() {
  const { store, theme } = useApp();
  const connection = store.connection.value;
  const engine = store.engine.value;
  const isLive = connection.state === "live";
  const words = {
    live: "Connected",
    connecting: "Connecting…",
    reconnecting: "Disconnected",
    offline: "Offline",
    "login-expired": "Not logged in",
  };
  const choice = theme.choice.value;
  return (
    <div class="sidebar-foot">
      <span class={`state ${isLive ? "" : "disconnected"}`}>
        <Icon name={isLive ? "connected" : "disconnected"} small />
        {words[connection.state]}
      </span>
      <span class="grow" />
      <button
        type="button"
        class="button link foot-theme"
        title="Colours: system, light or dark"
        onClick={() => theme.next()}
      >
        {choice}
        <span class="visually-hidden"> colours</span>
      </button>
      {engine && (
        <span class="tertiary" title={engine.workspace}>
          {engine.version}
        </span>
      )}
    </div>
  );
}
