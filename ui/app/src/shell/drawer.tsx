import { useEffect, useRef } from "preact/hooks";

import { Change_Status } from "@sayso/client/proto/change";

import { SubagentsPane } from "../session/subagents.js";
import { useApp } from "../context.js";
import { Icon } from "../icon.js";
import { preferences } from "../preferences.js";
import { FullDiff, HistoryView, RequestView, SubagentMonitor, TodosPane } from "../parts.js";
import type { Drawer, Route } from "../router.js";

/** The one drawer on the right. It informs; the stream decides. */
export function DrawerPane({ drawer, route }: { drawer: Drawer; route: Route }) {
  const { router } = useApp();
  const pane = useRef<HTMLElement>(null);
  const opener = useRef<Element | null>(document.activeElement);
  // The focus enters the drawer, and goes back to where it was.
  useEffect(() => {
    const before = opener.current;
    pane.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const close = () => router.show(null);
  const isWide = drawer.kind === "diff" || drawer.kind === "turn-diff";
  return (
    <aside
      class={`drawer${isWide ? " wide" : ""}${drawer.kind === "request" ? " with-request" : ""}`}
      ref={pane}
      tabIndex={-1}
      aria-label={NAMES[drawer.kind]}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.preventDefault();
        close();
      }}
    >
      {isWide ? (
        <DiffPane drawer={drawer} onClose={close} />
      ) : (
        <>
          <header class="drawer-header">
            <h2>{NAMES[drawer.kind]}</h2>
            <span class="grow" />
            <button type="button" class="button quiet small" aria-keyshortcuts="q" onClick={close}>
              <Icon name="close" small />
              Close
            </button>
          </header>
          <div class="drawer-body">
            <Pane drawer={drawer} route={route} />
          </div>
        </>
      )}
    </aside>
  );
}

const NAMES: Record<Drawer["kind"], string> = {
  diff: "Full diff",
  "turn-diff": "Full diff of the turn",
  request: "Request",
  todos: "Todos",
  subagents: "Subagents",
  history: "History of the session",
};

function Pane({ drawer, route }: { drawer: Drawer; route: Route }) {
  const session = route.view === "session" ? route.session : "";
  switch (drawer.kind) {
    case "todos":
      return <TodosPane session={session} />;
    case "subagents":
      return (
        <>
          <SubagentsPane session={session} />
          <SubagentMonitor session={session} />
        </>
      );
    case "history":
      return <HistoryView session={session} />;
    case "request":
      return <RequestView request={drawer.request} isDrawer />;
    default:
      return null;
  }
}

function DiffPane({ drawer, onClose }: { drawer: Drawer; onClose: () => void }) {
  const { store, router } = useApp();
  if (drawer.kind === "turn-diff") {
    const { session, turn } = drawer;
    return (
      <FullDiff subject={{ subject: { case: "turn", value: { session, turn } } }} title="Turn" onClose={onClose} />
    );
  }
  if (drawer.kind !== "diff") return null;
  const change = store.change(drawer.change).value;
  const isPending = change?.status === Change_Status.PENDING;
  const back = {
    label: isPending ? "Back to the review panel" : "Back to the stream",
    onClick: () => {
      onClose();
      if (change) router.go({ view: "session", session: change.origin?.session ?? "" });
      preferences.scrollToChange.value = drawer.change;
    },
  };
  const subject = isPending || !change?.applied ? "change" : "appliedChange";
  return (
    <FullDiff
      subject={{ subject: { case: subject, value: drawer.change } }}
      title={`Change ${drawer.change}`}
      onClose={onClose}
      back={back}
    />
  );
}
