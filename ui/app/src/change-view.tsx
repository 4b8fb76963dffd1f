import { useEffect } from "preact/hooks";

import { Change_Status } from "@sayso/client/proto/change";

import { useApp } from "./context.js";
import { Icon } from "./icon.js";
import { FullDiff, ReviewPanel } from "./parts.js";
import { ChangeCard } from "./stream/change-card.js";

/** One change by its link: the review panel while it is pending, then its card and its full diff. */
export function ChangeView({ change: number }: { change: bigint }) {
  const { store, router } = useApp();
  const change = store.change(number).value;
  useEffect(() => store.refreshChange(number), [store, number]);
  if (!change) {
    return (
      <p class="stream-note" role="status">
        Loading change {String(number)}… If it does not appear, the journal has no such change.
      </p>
    );
  }
  const session = change.origin?.session ?? "";
  const toSession = () => router.go({ view: "session", session });
  return (
    <div class="stream change-page" tabIndex={0} aria-label={`Change ${number}`}>
      <div class="column">
        <p class="back-line">
          <button type="button" class="button link" onClick={toSession}>
            <Icon name="left" small /> Stream of the session
          </button>
        </p>
        {change.status === Change_Status.PENDING ? (
          <ReviewPanel change={number} placement="page" />
        ) : (
          <>
            <ChangeCard change={number} tool={null} />
            {change.files.length > 0 && (
              <div class="page-diff">
                <FullDiff
                  subject={{ subject: { case: "change", value: number } }}
                  title={`Change ${number}`}
                  onClose={toSession}
                />
              </div>
            )}
          </>
        )}
      </div>
    </div>
  );
}
