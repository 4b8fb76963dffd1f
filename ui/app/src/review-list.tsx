import type { InboxItem } from "@sayso/client/proto/inbox";
import { Severity } from "@sayso/client/proto/file";

import { useApp } from "./context.js";
import { escapeUntrusted, formatDuration } from "./diff/words.js";
import { Icon } from "./icon.js";
import { openInboxItem } from "./session/open-item.js";
import { waitingText } from "./session/status.js";
import { EmptyWorkspace } from "./shell/empty.js";
import { Counts } from "./theme/counts.js";
import { useNow } from "./times.js";

/** Everything that waits for a person, oldest first. The first page of the app. */
export function ReviewList() {
  const { store } = useApp();
  const now = useNow(1_000);
  const inbox = store.inbox.value;
  if (!store.loaded.value) return <p class="stream-note">Connecting to the engine…</p>;
  if (inbox.length === 0 && store.sessions.all.value.size === 0) return <EmptyWorkspace />;
  return (
    <section class="page review-list" aria-label="Review">
      <h2>{inbox.length === 0 ? "Nothing waits for you" : "Waiting for you"}</h2>
      {inbox.length === 0 && (
        <p class="secondary">What an agent asks next appears here, in its session, and in the title of this page.</p>
      )}
      {inbox.length > 0 && (
        <ul class="inbox">
          {inbox.map((item) => (
            <InboxRow key={item.key} item={item} now={now} />
          ))}
        </ul>
      )}
    </section>
  );
}

function InboxRow({ item, now }: { item: InboxItem; now: number }) {
  const app = useApp();
  const icon = item.subject.case === "request" ? "paused" : item.subject.case === "turn" ? "later" : "waiting";
  const tone = item.subject.case === "turn" ? "later" : "waiting";
  const [warning] = item.notes.filter((note) => note.severity >= Severity.WARNING);
  return (
    <li>
      <button type="button" class="inbox-row" onClick={() => void openInboxItem(app, item)}>
        <span class={`state ${tone}`}>
          <Icon name={icon} />
          <span class="visually-hidden">{waitingText(item)}</span>
        </span>
        <span class="inbox-text">
          <span class="inbox-title ellipsis">{escapeUntrusted(item.summary)}</span>
          {item.agentReason !== undefined && item.agentReason !== "" && (
            <span class="secondary ellipsis">“{escapeUntrusted(item.agentReason)}”</span>
          )}
          {warning && (
            <span class="warning-text ellipsis">
              <Icon name="warning" small /> {escapeUntrusted(warning.text)}
            </span>
          )}
        </span>
        <span class="inbox-facts secondary numeric">
          {(item.added > 0n || item.removed > 0n) && (
            <Counts added={Number(item.added)} removed={Number(item.removed)} />
          )}
          <span>{escapeUntrusted(item.agent ?? "")}</span>
          <span>{formatDuration(now - Number(item.sinceMs))}</span>
        </span>
      </button>
    </li>
  );
}
