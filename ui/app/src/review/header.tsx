import type { RefObject } from "preact";

import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { Counts } from "../theme/counts.js";
import { Deadline, Waiting } from "./clock.js";
import type { Review, Reviewer } from "./model.js";
import type { PanelState } from "./state.js";
import { questionOf, questionText } from "./titles.js";

export interface HeaderProps {
  state: PanelState;
  reviewers: Reviewer[];
  headerRef: RefObject<HTMLElement>;
  titleId: string;
}

/** Question, reason and warnings. It stays visible while the diff scrolls beneath it. */
export function PanelHeader({ state, reviewers, headerRef, titleId }: HeaderProps) {
  const { review, cursor, phase } = state;
  const file = review.files[cursor.file];
  const question = questionOf(review, file);
  const warnings = review.notes.filter((note) => note.severity !== "info");
  const isStale = phase.kind === "refreshed";
  return (
    <header ref={headerRef} class="panel-header">
      <div class="panel-title">
        <Icon name={isStale ? "stale" : "waiting"} />
        <h2 id={titleId} aria-label={questionText(question)}>
          {question.before}
          {question.code !== undefined && (
            <>
              {" "}
              <code>{question.code}</code>
            </>
          )}
          {question.after}
        </h2>
        <span class="grow" />
        <Meta state={state} />
      </div>
      <Reason review={review} />
      {warnings.map((note) => (
        <p key={note.text} class={`panel-warning ${note.severity}`}>
          <Icon name="warning" small />
          <span>
            {note.severity === "critical" && <span class="visually-hidden">critical: </span>}
            {escapeUntrusted(note.text)}
          </span>
        </p>
      ))}
      {review.placement === "inPlace" && (
        <p class="panel-fact">These changes are on disk already. Deny takes them back.</p>
      )}
      {reviewers.length > 0 && (
        <p class="panel-fact">Also open in {reviewers.map(reviewerName).join(", ")}. The first decision counts.</p>
      )}
      {review.predecessors.length > 0 && (
        <p class="panel-fact">
          Builds on {review.predecessors.map((change) => `change ${change}`).join(", ")}, which{" "}
          {review.predecessors.length === 1 ? "waits" : "wait"} too.
        </p>
      )}
    </header>
  );
}

function reviewerName({ kind, name }: Reviewer): string {
  return name === "" ? `the ${kind}` : `${kind} “${escapeUntrusted(name)}”`;
}

/** Words of the agent, as text. */
function Reason({ review }: { review: Review }) {
  const { agentReason, rule } = review;
  return (
    <>
      {agentReason !== undefined && agentReason !== "" && <p class="panel-reason">“{escapeUntrusted(agentReason)}”</p>}
      {rule?.reason !== undefined && (
        <p class="panel-fact">
          Rule {escapeUntrusted(rule.name)} asks: {escapeUntrusted(rule.reason)}
        </p>
      )}
    </>
  );
}

function Meta({ state }: { state: PanelState }) {
  const { review, cursor } = state;
  const { files } = review;
  const file = files[cursor.file];
  const hunks = files.reduce((sum, each) => sum + each.hunks, 0);
  const before = files.slice(0, cursor.file).reduce((sum, each) => sum + each.hunks, 0);
  const parts = [
    files.length > 1 && <span>{`file ${cursor.file + 1} of ${files.length}`}</span>,
    hunks > 0 && file !== undefined && file.hunks > 0 && (
      <span>{`hunk ${before + Math.max(1, cursor.hunk)} of ${hunks}`}</span>
    ),
    files.length > 0 && <Counts added={sumOf(review, "added")} removed={sumOf(review, "removed")} />,
    lineCount(review) !== undefined && <span>{lineCount(review)}</span>,
    review.agent !== undefined && <span>{escapeUntrusted(review.agent)}</span>,
    <span>
      <Waiting since={review.sinceMs} />
    </span>,
    review.deadlineMs !== undefined && <Deadline at={review.deadlineMs} />,
  ].filter((part) => part !== false);
  return (
    <span class="panel-meta numeric">
      {parts.map((part, index) => (
        <span key={index}>
          {index > 0 && <span class="dot">·</span>}
          {part}
        </span>
      ))}
    </span>
  );
}

function sumOf({ files }: Review, side: "added" | "removed"): number {
  return files.reduce((sum, file) => sum + file[side], 0);
}

function lineCount({ subject }: Review): string | undefined {
  if (subject.kind !== "command") return undefined;
  const lines = subject.command.script.replace(/\n$/, "").split("\n").length;
  return lines === 1 ? "1 line" : `${lines} lines`;
}
