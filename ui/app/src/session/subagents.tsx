import { useComputed } from "@preact/signals";

import { useApp } from "../context.js";
import { sessionRows, SessionRow } from "../shell/sidebar.js";
import { useNow } from "../times.js";

/** Sessions that a session delegated to. */
export function SubagentsPane({ session }: { session: string }) {
  const { store } = useApp();
  const now = useNow(10_000);
  const rows = useComputed(() => sessionRows(store)).value.filter(({ info }) => info.parent === session);
  if (rows.length === 0) return <p class="stream-note">This session has delegated nothing.</p>;
  return (
    <div class="sessions-list">
      {rows.map((row) => (
        <SessionRow key={row.info.session} row={row} now={now} isPresent={false} onOpen={() => undefined} />
      ))}
    </div>
  );
}
