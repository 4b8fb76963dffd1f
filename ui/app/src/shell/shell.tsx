import { useSignal } from "@preact/signals";

import { announcement } from "../announce.js";
import { useApp } from "../context.js";
import {
  ChangeView,
  Composer,
  HistoryView,
  KeysDialog,
  NewSessionDialog,
  RequestsView,
  RequestView,
  ReversalDialog,
  SessionsView,
  StreamView,
} from "../parts.js";
import type { Route } from "../router.js";
import { ReviewList } from "../review-list.js";
import { ConnectionBanners } from "./banners.js";
import { reversal } from "../history/reversal.js";
import { dialogs } from "./dialogs.js";
import { DrawerPane } from "./drawer.js";
import { useShortcuts } from "./keys.js";
import { LoginExpired } from "./login.js";
import { Rail } from "./rail.js";
import "./shell.css";
import { Sidebar } from "./sidebar.js";
import { TopBar } from "./top-bar.js";
import { useWaitingMarks } from "./waiting.js";

/** The whole page: sessions, the view, and the drawer. */
export function Shell() {
  const { store, router } = useApp();
  const isMenuOpen = useSignal(false);
  useShortcuts();
  useWaitingMarks();
  const connection = store.connection.value;
  const { route, drawer } = router.location.value;
  if (connection.state === "login-expired") return <LoginExpired />;
  const isCold = connection.state === "reconnecting" || connection.state === "offline";
  const session = route.view === "session" ? route.session : null;
  return (
    <div class={`shell${isCold ? " cold" : ""}${session === null ? " without-rail" : ""}`}>
      <a class="skip-link" href="#view">
        Skip to the view
      </a>
      <Sidebar isOpen={isMenuOpen} />
      <div class="main">
        <TopBar onMenu={() => (isMenuOpen.value = !isMenuOpen.value)} />
        <ConnectionBanners />
        <main class="view" id="view" tabIndex={-1}>
          <View route={route} />
        </main>
        {session !== null && <Composer session={session} />}
        {drawer && <DrawerPane drawer={drawer} route={route} />}
      </div>
      {session !== null && <Rail session={session} />}
      {reversal.value && <ReversalDialog />}
      {dialogs.keys.value && <KeysDialog />}
      {dialogs.newSession.value && <NewSessionDialog />}
      <div class="visually-hidden" role="status" aria-live="polite" data-testid="announcement">
        {announcement.value}
      </div>
    </div>
  );
}

function View({ route }: { route: Route }) {
  switch (route.view) {
    case "home":
      return <ReviewList />;
    case "session":
      return <StreamView key={route.session} session={route.session} />;
    case "turn":
      return <StreamView key={route.session} session={route.session} />;
    case "change":
      return <ChangeView key={String(route.change)} change={route.change} />;
    case "history":
      return <HistoryView />;
    case "requests":
      return <RequestsView key={route.part ?? "editor"} {...(route.part && { part: route.part })} />;
    case "request":
      return <RequestView request={route.request} />;
    case "sessions":
      return <SessionsView />;
    case "unknown":
      return (
        <div class="page">
          <h2>No such page</h2>
          <p class="secondary">The address {route.path} names no session, change or request.</p>
        </div>
      );
  }
}
