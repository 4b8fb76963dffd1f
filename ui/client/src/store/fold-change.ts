import { create } from "@bufbuild/protobuf";

import {
  Change_Delivery,
  Change_Status,
  ChangeSchema,
  type Answer,
  type Change,
} from "../generated/sayso/v1/change_pb.js";
import { type Event, type Outcome, Outcome_Kind, PreviewRefreshed_Reason } from "../generated/sayso/v1/event_pb.js";
import { FileRecord_AppliedPart, type FileRecord, Operation, type Fingerprint } from "../generated/sayso/v1/file_pb.js";
import { Performer } from "../generated/sayso/v1/intent_pb.js";

/** Number of the change that an event is about; `null` if it is about something else. */
export function changeOf(event: Event): bigint | null {
  switch (event.kind.case) {
    case "proposed":
    case "refreshed":
    case "decided":
    case "applying":
    case "permitted":
    case "observed":
    case "reviewed":
    case "ended":
    case "undone":
    case "redone":
    case "recovered":
      return event.kind.value.change;
    case "messageQueued":
    case "messageDelivered":
      return event.kind.value.change ?? null;
    default:
      return null;
  }
}

/** Returns the change after an event, in the same way as the engine folds it. The given change stays as it is. */
export function foldChange(before: Change | undefined, event: Event): Change | undefined {
  if (event.kind.case === "proposed") return before ? withCards(before, event.kind.value.files) : propose(event);
  if (before === undefined) return undefined;
  const change = { ...before };
  apply(change, event);
  change.files = change.files.map((file) => ({ ...file, appliedPart: appliedPart(change, file) }));
  change.partial = change.files.some(
    (file) =>
      file.appliedPart === FileRecord_AppliedPart.PARTIAL || file.appliedPart === FileRecord_AppliedPart.NOTHING,
  );
  return change;
}

/** Adds the cards of files, which only events have, to a change that was read before its event arrived. */
export function withCards(change: Change, files: readonly FileRecord[]): Change {
  const cards = new Map(files.map((file) => [file.path, file.card]));
  const merged = change.files.map((file) => {
    const card = file.card ?? cards.get(file.path);
    return card ? { ...file, card } : file;
  });
  return { ...change, files: merged };
}

function propose(event: Event): Change | undefined {
  if (event.kind.case !== "proposed") return undefined;
  const proposed = event.kind.value;
  return create(ChangeSchema, {
    change: proposed.change,
    timeMs: event.timeMs,
    status: Change_Status.PENDING,
    files: proposed.files,
    previewHash: proposed.previewHash,
    performer: proposed.performer,
    predecessors: proposed.predecessors,
    ...(proposed.origin && { origin: proposed.origin }),
    ...(proposed.cause && { cause: proposed.cause }),
    ...(proposed.subject && { subject: proposed.subject }),
    ...(proposed.ruling && { ruling: proposed.ruling }),
    ...(proposed.deadlineMs !== undefined && { deadlineMs: proposed.deadlineMs }),
  });
}

function apply(change: Change, event: Event): void {
  const { kind } = event;
  switch (kind.case) {
    case "refreshed":
      change.files = kind.value.files;
      change.previewHash = kind.value.previewHash;
      if (kind.value.reason === PreviewRefreshed_Reason.PREDECESSOR_DROPPED && kind.value.predecessor !== undefined) {
        change.droppedPredecessors = [...change.droppedPredecessors, kind.value.predecessor];
      }
      break;
    case "decided":
      if (kind.value.verdict) change.verdict = kind.value.verdict;
      change.agentMessage = kind.value.agentMessage;
      break;
    case "permitted":
      change.status = Change_Status.PERMITTED;
      if (kind.value.editor !== undefined) change.runNote = `applied by ${kind.value.editor}`;
      break;
    case "observed":
      if (kind.value.record) change.applied = kind.value.record;
      change.differingFiles = kind.value.differingFiles;
      change.uncaptured = kind.value.uncaptured;
      break;
    case "reviewed":
      change.reviewedBy = kind.value.by;
      break;
    case "applying":
      change.status = Change_Status.INTERRUPTED;
      if (kind.value.record) change.applied = kind.value.record;
      if (kind.value.note !== undefined) change.runNote = kind.value.note;
      break;
    case "ended":
      if (kind.value.agentMessage !== undefined) change.agentMessage = kind.value.agentMessage;
      if (kind.value.outcome) end(change, kind.value.outcome);
      break;
    case "undone":
      undo(change, kind.value.by, kind.value.paths);
      break;
    case "redone": {
      const { paths } = kind.value;
      const kept = Object.entries(change.undoneFiles).filter(([path]) => paths.length > 0 && !paths.includes(path));
      change.undoneFiles = Object.fromEntries(kept);
      change.status = Change_Status.APPLIED;
      delete change.undoneBy;
      break;
    }
    case "recovered":
      change.skippedFiles = kind.value.skippedFiles;
      change.rescuedFiles = kind.value.rescuedFiles;
      if (kind.value.completed) {
        change.status = Change_Status.APPLIED;
      } else {
        change.status = Change_Status.FAILED;
        change.failedReason = "it was interrupted, and rolled back at the next start";
        delete change.applied;
      }
      break;
    case "messageQueued":
      change.delivery = Change_Delivery.WAITING;
      break;
    case "messageDelivered":
      change.delivery = Change_Delivery.DELIVERED;
      break;
    default:
  }
}

function end(change: Change, outcome: Outcome): void {
  const status = {
    [Outcome_Kind.UNSPECIFIED]: change.status,
    [Outcome_Kind.APPLIED]: Change_Status.APPLIED,
    [Outcome_Kind.SENT]: Change_Status.APPLIED,
    [Outcome_Kind.RAN]: Change_Status.APPLIED,
    [Outcome_Kind.DENIED]: Change_Status.DENIED,
    [Outcome_Kind.STALE]: Change_Status.STALE,
    [Outcome_Kind.CANCELLED]: Change_Status.CANCELLED,
    [Outcome_Kind.FAILED]: Change_Status.FAILED,
  };
  change.status = status[outcome.kind];
  if (change.status !== Change_Status.APPLIED) {
    // The plan found the files changed and wrote nothing.
    delete change.applied;
  }
  if (outcome.kind === Outcome_Kind.RAN) {
    if (outcome.exitCode !== undefined) change.exitCode = outcome.exitCode;
    if (outcome.reason !== undefined) change.runNote = outcome.reason;
  }
  if (outcome.kind === Outcome_Kind.FAILED) change.failedReason = outcome.reason ?? "";
}

function undo(change: Change, by: bigint, paths: readonly string[]): void {
  if (paths.length > 0) {
    change.undoneFiles = { ...change.undoneFiles, ...Object.fromEntries(paths.map((path) => [path, by])) };
    const steps = change.applied?.steps ?? [];
    if (!steps.every((step) => step.path in change.undoneFiles)) return;
  }
  change.status = Change_Status.UNDONE;
  change.undoneBy = by;
}

/** Portion of a file's change that was applied, by the rules of `review::ChangeRecord::applied_part`. */
function appliedPart(change: Change, file: FileRecord): FileRecord_AppliedPart {
  const { ALL, PARTIAL, NOTHING } = FileRecord_AppliedPart;
  if (!change.applied) return ALL;
  const answer: Answer["answer"]["case"] = change.verdict?.answer?.answer.case;
  const selected = answer === "files" && change.subject?.subject.case === "files";
  if (change.performer === Performer.AGENT && !selected) return ALL;
  const step = change.applied.steps.find((candidate) => candidate.path === file.location);
  if (change.cause?.cause.case === "review") {
    if (!step) return ALL;
    return equal(step.after, file.before) ? NOTHING : PARTIAL;
  }
  if (equal(file.before, file.after) && file.operation !== Operation.RENAME) return ALL;
  if (!step) return NOTHING;
  return equal(step.after, file.after) ? ALL : PARTIAL;
}

function equal(left: Fingerprint | undefined, right: Fingerprint | undefined): boolean {
  const [a, b] = [left?.state, right?.state];
  if (a?.case === "file" && b?.case === "file") return a.value.hash === b.value.hash && a.value.mode === b.value.mode;
  if (a?.case === "link" && b?.case === "link") return a.value.target === b.value.target;
  return a?.case === b?.case;
}
