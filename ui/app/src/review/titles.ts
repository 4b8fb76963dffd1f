/** Words of the panel: the question, the state of the wait, and the end of it. */

import { count, escapeUntrusted } from "../diff/words.js";
import type { DiffFile } from "../diff/rows.js";
import type { Review, Settled } from "./model.js";

/** Question of the panel: words, and a path, directory or name in code. */
export interface Question {
  before: string;
  code?: string;
  after: string;
}

export function questionOf(review: Review, file: DiffFile | undefined): Question {
  const { subject } = review;
  if (subject.kind === "command") {
    const directory = subject.command.directory;
    if (directory === "" || directory === ".") return { before: "approve command", after: "?" };
    return { before: "approve command in", code: escapeUntrusted(directory), after: "?" };
  }
  if (subject.kind === "tool" && review.files.length === 0) {
    const { delegation } = subject.tool;
    if (delegation)
      return { before: "approve delegation to", code: escapeUntrusted(delegation.agent ?? "an agent"), after: "?" };
    return { before: "approve call of", code: escapeUntrusted(subject.tool.name), after: "?" };
  }
  if (review.turn) return { before: `keep ${count(review.files.length, "file")} of this turn`, after: "?" };
  return fileQuestion(review, file);
}

function fileQuestion(review: Review, file: DiffFile | undefined): Question {
  if (file === undefined) return { before: "approve a change without files", after: "?" };
  const merged = review.merges === undefined ? "" : "merged ";
  const path = escapeUntrusted(file.path);
  if (file.operation === "delete") return { before: "approve deletion of", code: path, after: "?" };
  if (file.operation === "rename") {
    return { before: `approve renaming ${escapeUntrusted(file.renamedFrom ?? "")} to`, code: path, after: "?" };
  }
  return { before: `approve ${merged}write to`, code: path, after: "?" };
}

export function questionText({ before, code, after }: Question): string {
  return code === undefined ? `${before}${after}` : `${before} ${code}${after}`;
}

const STATUS_WORDS: Record<Settled["status"], string> = {
  approved: "approved",
  applied: "applied",
  appliedInPart: "applied in part",
  denied: "denied",
  stale: "stale",
  cancelled: "withdrawn",
  failed: "failed",
};

/** Sentence about the end of the wait: `denied in the terminal “laptop”: “Use serde.”` */
export function settledSentence(settled: Settled): string {
  const { status, by, name, reason } = settled;
  if (status === "stale") return "Files changed on disk after this preview. Nothing was written.";
  const where: Record<Settled["by"], string> = {
    here: "here",
    elsewhere: name === undefined ? "on another surface" : `in ${name}`,
    policy: name === undefined ? "by a rule" : `by the rule ${name}`,
    deadline: "at the deadline",
  };
  const ending = reason === undefined || reason === "" ? "." : `: “${escapeUntrusted(reason)}”`;
  return `${STATUS_WORDS[status]} ${where[by]}${ending}`;
}

export function statusWord(settled: Settled): string {
  return STATUS_WORDS[settled.status];
}
