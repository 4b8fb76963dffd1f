import { useState } from "preact/hooks";

import { Icon, type IconName } from "../icon.js";
import { ConflictView } from "./conflict.js";
import type { LineComment, Review, Settled, SettledStatus } from "./model.js";
import type { PanelActions } from "./props.js";
import { questionOf, questionText, settledSentence, statusWord } from "./titles.js";

const ICONS: Record<SettledStatus, IconName> = {
  approved: "applied",
  applied: "applied",
  appliedInPart: "applied",
  denied: "denied",
  stale: "stale",
  cancelled: "undone",
  failed: "failed",
};

const CLASSES: Record<SettledStatus, string> = {
  approved: "applied",
  applied: "applied",
  appliedInPart: "applied",
  denied: "denied",
  stale: "stale",
  cancelled: "cancelled",
  failed: "failed",
};

export interface EndedProps {
  review: Review;
  settled: Settled;
  /** Comments that were not sent. */
  comments: readonly LineComment[];
  actions: PanelActions;
}

/** Panel of a change that no longer waits: its state, and what can be done now. */
export function EndedPanel({ review, settled, comments, actions }: EndedProps) {
  const [conflictAt, setConflictAt] = useState<string>();
  const { mergedChange } = settled;
  const title = questionText(questionOf(review, review.files[0])).replace(/\?$/, "");
  const unsent = settled.by === "here" ? [] : comments;
  return (
    <section class={`panel ended ${CLASSES[settled.status]}`} aria-label={title}>
      <div class="ended-line">
        <span class={`state ${CLASSES[settled.status]}`}>
          <Icon name={ICONS[settled.status]} small />
          {statusWord(settled)}
        </span>
        <span class="ended-title ellipsis">{title}</span>
        <span class="grow" />
        {settled.status === "stale" && review.files.length > 0 && (
          <button
            type="button"
            class="button small"
            aria-expanded={conflictAt !== undefined}
            onClick={() => setConflictAt(conflictAt === undefined ? review.files[0]?.path : undefined)}
          >
            Base, theirs, yours
          </button>
        )}
        {mergedChange !== undefined && (
          <button type="button" class="button small" onClick={() => actions.openChange(mergedChange)}>
            Review the merged change
          </button>
        )}
      </div>
      <p class="ended-text">{settledSentence(settled)}</p>
      {unsent.length > 0 && (
        <div class="ended-text">
          Your comments were not sent:
          <ul>
            {unsent.map((comment) => (
              <li key={`${comment.path}:${comment.line}`}>
                <code>
                  {comment.path}:{comment.line}
                </code>{" "}
                {comment.text}
              </li>
            ))}
          </ul>
        </div>
      )}
      {conflictAt !== undefined && <ConflictView path={conflictAt} fetchConflict={actions.fetchConflict} />}
    </section>
  );
}
