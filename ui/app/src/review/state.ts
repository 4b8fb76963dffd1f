/** State of the review panel, its inputs and its effects. `machine.ts` connects them. */

import { countSelection, isDecidable, type Selection, type SelectionCounts } from "./selection.js";
import type { Command } from "./keys.js";
import type { Decision, LineComment, Refresh, Review, RuleScope, RuleSuggestion, Seen, Settled } from "./model.js";

/** Time for which decisions are ignored after a panel opens, a preview is refreshed, or text is pasted. */
export const GUARD_MS = 400;

export type Phase =
  | { kind: "waiting" }
  /** Decisions pause until the person has gone on. */
  | { kind: "refreshed"; refresh: Refresh }
  | { kind: "sending"; decision: Decision }
  | { kind: "settled"; settled: Settled };

/** Place in the change. Hunk 0 stands for the head of the file. */
export interface Cursor {
  file: number;
  hunk: number;
  row?: number;
  part?: number;
}

/** Line that a comment is about. */
export interface CommentTarget {
  path: string;
  line: number;
  side: "proposed" | "current";
}

export type Dialog =
  | { kind: "deny"; text: string }
  | { kind: "message"; text: string }
  | { kind: "comment"; target: CommentTarget; text: string }
  | { kind: "rule"; scope: RuleScope; suggestion?: RuleSuggestion; error?: string }
  | { kind: "edit"; subject: EditSubject; text?: string; error?: string }
  | { kind: "edited"; subject: EditSubject; text: string }
  | { kind: "search"; text: string }
  | { kind: "help" };

/** Object of an edit. */
export type EditSubject = { kind: "file"; path: string } | { kind: "command" } | { kind: "arguments" };

export interface PanelState {
  review: Review;
  phase: Phase;
  connected: boolean;
  /** Decisions before this time are ignored. */
  guardUntil: number;
  dialog: Dialog | undefined;
  cursor: Cursor;
  selection: Selection;
  /** Hunks that were on screen, by path. */
  seen: Readonly<Record<string, readonly number[]>>;
  /** Number of parts of the hunks that were loaded, by `path` and hunk. */
  parts: Readonly<Record<string, Readonly<Record<number, number>>>>;
  comments: readonly LineComment[];
  /** Script or arguments that replace the proposed ones. */
  editedAction: string | undefined;
  search: string;
  /** Failure of the last decision, in words. */
  problem: string | undefined;
}

export type Input =
  | { kind: "command"; command: Command; time: number }
  /** Text of the open line or field. */
  | { kind: "text"; text: string }
  /** Confirmation of the open dialog. */
  | { kind: "confirm"; time: number }
  | { kind: "cancel" }
  | { kind: "paste"; time: number }
  | { kind: "refreshed"; review: Review; refresh: Refresh; time: number }
  /** More facts about the same preview. */
  | { kind: "described"; review: Review }
  | { kind: "settled"; settled: Settled }
  | { kind: "failed"; problem: string; time: number }
  | { kind: "connection"; connected: boolean; time: number }
  | { kind: "seenElsewhere"; seen: Seen[] }
  | { kind: "onScreen"; path: string; hunks: number[] }
  | { kind: "hunksLoaded"; path: string; parts: Record<number, number> }
  | { kind: "cursor"; cursor: Cursor }
  | { kind: "goToFile"; file: number }
  | { kind: "toggleUnit"; cursor: Cursor }
  | { kind: "toggleFile"; file: number }
  | { kind: "commentOn"; target: CommentTarget }
  | { kind: "removeComment"; index: number }
  | { kind: "scope"; scope: RuleScope }
  | { kind: "suggestion"; suggestion: RuleSuggestion }
  | { kind: "dialogFailed"; error: string }
  | { kind: "textLoaded"; text: string }
  | { kind: "discardEdit"; path: string | undefined };

export type LineMove = "lineDown" | "lineUp" | "pageDown" | "pageUp" | "top" | "bottom";

export type Effect =
  | { kind: "decide"; decision: Decision }
  | { kind: "reveal"; cursor: Cursor }
  | { kind: "moveLine"; move: LineMove }
  | { kind: "startComment" }
  | { kind: "openFullDiff"; file: number }
  | { kind: "markSeen"; path: string; hunks: number[] }
  | { kind: "suggestRule"; scope: RuleScope }
  | { kind: "loadText"; subject: EditSubject }
  | { kind: "dryRun" }
  | { kind: "findNext"; text: string }
  | { kind: "leave" }
  | { kind: "announce"; text: string };

export interface Step {
  state: PanelState;
  effects: Effect[];
}

export function openPanel(review: Review, seen: Seen[], time: number, connected: boolean): PanelState {
  return {
    review,
    phase: { kind: "waiting" },
    connected,
    guardUntil: time + GUARD_MS,
    dialog: undefined,
    cursor: firstCursor(review),
    selection: {},
    seen: seenRecord(seen),
    parts: {},
    comments: [],
    editedAction: undefined,
    search: "",
    problem: undefined,
  };
}

export function firstCursor(review: Review): Cursor {
  const file = Math.max(0, review.files.findIndex(isDecidable));
  return { file, hunk: (review.files[file]?.hunks ?? 0) > 0 ? 1 : 0 };
}

export function seenRecord(seen: Seen[]): Record<string, readonly number[]> {
  return Object.fromEntries(seen.map(({ path, hunks }) => [path, hunks]));
}

export function countsOf(state: PanelState): SelectionCounts {
  return countSelection(state.review.files, state.selection, state.seen);
}

/** Reason why nothing can be decided now. `undefined` if a decision counts. */
export function pauseReason(state: PanelState, time: number): string | undefined {
  if (!state.connected) return "Decisions return with the connection. Nothing has been decided.";
  switch (state.phase.kind) {
    case "refreshed":
      return "The preview changed. Read it, then press Enter to go on.";
    case "sending":
      return "The decision is on its way.";
    case "settled":
      return "This change is decided.";
    case "waiting":
      return time < state.guardUntil ? "Ignored: the panel has only just opened or changed." : undefined;
  }
}

/** `true` if the decision buttons are live, apart from the short guard. */
export function canDecide(state: PanelState): boolean {
  return pauseReason(state, Number.POSITIVE_INFINITY) === undefined;
}
