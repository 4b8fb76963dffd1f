import { useComputed } from "@preact/signals";
import { useState } from "preact/hooks";

import { useApp } from "../context.js";
import { Icon } from "../icon.js";
import { preferences } from "../preferences.js";
import { EmptyWorkspace } from "../shell/empty.js";
import { sessionRows, SessionRow } from "../shell/sidebar.js";
import { toggleNotifications } from "../shell/waiting.js";
import { useNow } from "../times.js";
import { sessionTitle } from "./name.js";

/** All sessions with agent, state and waiting badge, and the surfaces that are attached. */
export function SessionsView() {
  const { store, router } = useApp();
  const now = useNow(10_000);
  const [search, setSearch] = useState("");
  const rows = useComputed(() => sessionRows(store)).value;
  if (store.loaded.value && rows.length === 0) return <EmptyWorkspace />;
  const shown = rows.filter(({ info }) =>
    [sessionTitle(info, info.session), info.agent ?? "", info.location ?? "", info.session].some((text) =>
      text.toLowerCase().includes(search.toLowerCase()),
    ),
  );
  return (
    <section class="page sessions-page" aria-label="Sessions">
      <div class="history-tools">
        <label class="search-field">
          <Icon name="search" small />
          <span class="visually-hidden">Filter sessions</span>
          <input
            type="search"
            placeholder="Title, agent, directory or id"
            value={search}
            data-search
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <span class="grow" />
        <button
          type="button"
          class="button small"
          aria-pressed={preferences.notify.value}
          onClick={() => void toggleNotifications()}
        >
          Notifications {preferences.notify.value ? "on" : "off"}
        </button>
      </div>
      <div class="sessions-list">
        {shown.map((row) => (
          <SessionRow key={row.info.session} row={row} now={now} isPresent={false} onOpen={() => undefined} />
        ))}
        {shown.length === 0 && <p class="stream-note">No session matches the filter.</p>}
      </div>
      <Surfaces />
      <p class="secondary small-text">
        <a
          href={router.href({ view: "history" })}
          onClick={(event) => {
            event.preventDefault();
            router.go({ view: "history" });
          }}
        >
          All changes of the workspace
        </a>
      </p>
    </section>
  );
}

const SURFACES = ["surface", "terminal", "browser", "editor", "command line"];

function Surfaces() {
  const { store } = useApp();
  const surfaces = store.surfaces.value;
  if (surfaces.length === 0) return null;
  return (
    <section aria-label="Attached surfaces">
      <h3 class="history-day">Attached surfaces</h3>
      <ul class="surfaces">
        {surfaces.map((item) => (
          <li key={String(item.id)}>
            {SURFACES[item.surface?.kind ?? 0]} <span class="secondary">{item.surface?.name}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
