import { Change_Status, Ruling, type Change } from "@sayso/client/proto/change";

import { useApp } from "../context.js";
import { count, escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";
import { InlineDiff, ReviewPanel } from "../parts.js";
import { changeState } from "../session/status.js";
import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import { clockTime, fullTime } from "../times.js";
import { planReversal } from "../history/reversal.js";
import type { ToolCall } from "./items.js";
import { JsonText } from "./json-text.js";
import { toolWords, type ToolWords } from "./tool-words.js";

/** A change: the review panel while it is pending, then a card. */
export function ChangeCard({ change: number, tool }: { change: bigint; tool: ToolCall | null }) {
  const { store } = useApp();
  const change = store.change(number).value;
  if (!change) {
    return (
      <div class="row" role="status">
        <Icon name="diff" />
        <span class="line secondary">Loading change {String(number)}…</span>
      </div>
    );
  }
  if (change.status === Change_Status.PENDING) return <ReviewPanel change={number} placement="stream" />;
  return <DecidedCard change={change} tool={tool} />;
}

function DecidedCard({ change, tool }: { change: Change; tool: ToolCall | null }) {
  const isFaded = change.status === Change_Status.DENIED || change.status === Change_Status.CANCELLED;
  return (
    <div class={`change-card${isFaded ? " faded" : ""}`} data-change={String(change.change)}>
      <ChangeRow change={change} tool={tool} />
      <div class="card-body">
        <CardNote change={change} />
        <CardBody change={change} tool={tool} />
      </div>
    </div>
  );
}

/** Row of a change: icon, verb, target, state. */
export function ChangeRow({ change, tool }: { change: Change; tool: ToolCall | null }) {
  const words = changeWords(change, tool);
  const state = changeState(change);
  const ruling = rulingText(change);
  const added = change.files.reduce((sum, file) => sum + Number(file.added), 0);
  const removed = change.files.reduce((sum, file) => sum + Number(file.removed), 0);
  return (
    <div class="row">
      <Icon name={words.icon} />
      <span class="line">
        <span class="verb">{escapeUntrusted(words.verb)}</span>
        {words.path !== null && <Path path={words.path} />}
        {words.target !== null && <code class="ellipsis target">{escapeUntrusted(words.target)}</code>}
        {words.detail !== null && <span class="secondary small-text ellipsis">{escapeUntrusted(words.detail)}</span>}
        {(added > 0 || removed > 0) && <Counts added={added} removed={removed} />}
      </span>
      <span class="end">
        {ruling !== null && <span class="ellipsis ruling">{ruling}</span>}
        <span class={`state ${state.state}`}>
          <Icon name={state.icon} small />
          {state.text}
        </span>
        <time class="numeric tertiary" title={fullTime(change.timeMs)}>
          {clockTime(change.timeMs)}
        </time>
      </span>
    </div>
  );
}

export function changeWords(change: Change, tool: ToolCall | null): ToolWords {
  const base: ToolWords = { icon: "edit", verb: "Edit", path: null, target: null, detail: null };
  const subject = change.subject?.subject;
  if (subject?.case === "command") {
    const { command, directory } = subject.value;
    const place = directory === "" || directory === "." ? null : `in ${directory}`;
    return { ...base, icon: "command", verb: "Run", target: command, detail: place };
  }
  if (subject?.case === "tool") return toolWords(subject.value.name, subject.value.argumentsJson);
  const verb = causeVerb(change) ?? (tool ? toolWords(tool.block.tool ?? "", "").verb : fileVerb(change));
  const [file] = change.files;
  const icon = verb === "Undo" ? "undone" : verb === "Review" ? "later" : "edit";
  if (change.files.length === 1 && file) return { ...base, icon, verb, path: file.path };
  return { ...base, icon, verb, detail: count(change.files.length, "file") };
}

function causeVerb(change: Change): string | null {
  switch (change.cause?.cause.case) {
    case "undo":
      return "Undo";
    case "redo":
      return "Redo";
    case "review":
      return "Review";
    case "restore":
      return "Restore";
    case "rebase":
      return "Merge";
    default:
      return null;
  }
}

function fileVerb(change: Change): string {
  const operations = new Set(change.files.map((file) => file.operation));
  if (operations.size !== 1) return "Edit";
  const [operation] = operations;
  return ["Edit", "Create", "Edit", "Delete", "Rename"][operation ?? 0] ?? "Edit";
}

/** The rule that decided, if no person did. */
function rulingText(change: Change): string | null {
  const by = change.verdict?.by;
  if (by?.case !== "policy") return null;
  const isToReview = change.ruling?.ruling === Ruling.LATER && change.reviewedBy === undefined;
  return `by rule${isToReview ? ", to review later" : ""}`;
}

/** Sentences about a decided change that its state does not tell: reason, failure, differences. */
function CardNote({ change }: { change: Change }) {
  const notes: string[] = [];
  const answer = change.verdict?.answer?.answer;
  if (answer?.case === "deny" && answer.value.reason) notes.push(answer.value.reason);
  if (change.failedReason) notes.push(change.failedReason);
  if (change.runNote) notes.push(change.runNote);
  if (change.status === Change_Status.STALE) notes.push("The files changed after the preview. Nothing was written.");
  for (const file of change.differingFiles) notes.push(`The agent wrote something else than was approved: ${file}`);
  for (const item of change.uncaptured) notes.push(`Undo cannot revert ${item.path}: ${item.reason}`);
  if (notes.length === 0) return null;
  return (
    <ul class="card-notes">
      {notes.map((note) => (
        <li key={note}>{escapeUntrusted(note)}</li>
      ))}
    </ul>
  );
}

function CardBody({ change, tool }: { change: Change; tool: ToolCall | null }) {
  const { router, api } = useApp();
  const canUndo = change.status === Change_Status.APPLIED && change.files.length > 0;
  const onUndo = canUndo ? () => planReversal(api, "undo", change.change) : undefined;
  const subject = change.subject?.subject;
  const diff = change.files.length > 0 && (
    <InlineDiff
      change={change.change}
      onViewDiff={() => router.show({ kind: "diff", change: change.change })}
      {...(onUndo && { onUndo })}
    />
  );
  if (subject?.case === "command") {
    return (
      <>
        {subject.value.command.includes("\n") && (
          <pre class="output command-text">{escapeUntrustedLines(subject.value.command)}</pre>
        )}
        {tool?.result && <CommandOutput text={tool.result.text} />}
        {diff}
      </>
    );
  }
  if (subject?.case === "tool" && change.files.length === 0) {
    return (
      <details class="card-box tool-arguments">
        <summary>Arguments</summary>
        <JsonText text={subject.value.argumentsJson} />
        {tool?.result && <CommandOutput text={tool.result.text} />}
      </details>
    );
  }
  return <>{diff}</>;
}

/** Lines of output that a card shows. */
const OUTPUT_LINES = 5;

/** The last lines of a command's output. */
export function CommandOutput({ text }: { text: string }) {
  const lines = escapeUntrustedLines(text).replace(/\n$/, "").split("\n");
  if (lines.length <= OUTPUT_LINES) return text === "" ? null : <pre class="output boxed">{lines.join("\n")}</pre>;
  return (
    <details class="card-box command-output">
      <summary>
        <pre class="output">{lines.slice(-OUTPUT_LINES).join("\n")}</pre>
        <span class="actions">
          <span class="grow secondary small-text numeric">
            last {OUTPUT_LINES} of {count(lines.length, "line")}
          </span>
          <span class="button quiet small when-closed">Show all</span>
          <span class="button quiet small when-open">Show less</span>
        </span>
      </summary>
      <pre class="output whole">{lines.join("\n")}</pre>
    </details>
  );
}
