/** The state machine of the review panel: pure, without DOM and without clock. */

import { announceSelection, applySelection, isSelectionCommand } from "./choose.js";
import { decide } from "./decide.js";
import { confirmDialog, openDialog, withText } from "./dialogs.js";
import { isDecision, type Command } from "./keys.js";
import { moveHunk, moveFile } from "./moves.js";
import { refreshed } from "./refresh.js";
import { toggleUnit, setFile, fileExtent, selectionOf } from "./selection.js";
import { GUARD_MS, pauseReason, type Effect, type Input, type PanelState, type Step } from "./state.js";

export function reduce(state: PanelState, input: Input): Step {
  switch (input.kind) {
    case "command":
      return command(state, input.command, input.time);
    case "text":
      return still(withText(state, input.text));
    case "confirm":
      return confirmDialog(state, input.time);
    case "cancel":
      return still({ ...state, dialog: undefined });
    case "paste":
      return still(guarded(state, input.time));
    case "refreshed":
      return refreshed(state, input.review, input.refresh, input.time);
    case "described":
      return still({ ...state, review: input.review });
    case "settled":
      return still({ ...state, phase: { kind: "settled", settled: input.settled }, dialog: undefined });
    case "failed":
      return failed(state, input.problem, input.time);
    case "connection":
      return connection(state, input.connected, input.time);
    default:
      return detail(state, input);
  }
}

type DetailInput = Exclude<
  Input,
  {
    kind:
      | "command"
      | "text"
      | "confirm"
      | "cancel"
      | "paste"
      | "refreshed"
      | "described"
      | "settled"
      | "failed"
      | "connection";
  }
>;

function detail(state: PanelState, input: DetailInput): Step {
  switch (input.kind) {
    case "seenElsewhere":
      return still({ ...state, seen: mergedSeen(state, input.seen) });
    case "onScreen":
      return onScreen(state, input.path, input.hunks);
    case "hunksLoaded":
      return hunksLoaded(state, input.path, input.parts);
    case "cursor":
      return still({ ...state, cursor: input.cursor });
    case "goToFile":
      return moveFile(state, input.file - state.cursor.file);
    case "toggleUnit": {
      const chosen = applySelection({ ...state, cursor: input.cursor }, (file, selection) =>
        toggleUnit(file, selection, input.cursor.hunk, input.cursor.part),
      );
      return announceSelection(chosen);
    }
    case "toggleFile": {
      const at = { ...state, cursor: { file: input.file, hunk: 0 } };
      const chosen = applySelection(at, (file, selection) =>
        setFile(file, selection, fileExtent(file, selectionOf(state.selection, file.path)) === "all" ? "none" : "all"),
      );
      return announceSelection({ ...chosen, cursor: state.cursor });
    }
    case "commentOn":
      return isOpen(state)
        ? still({ ...state, dialog: { kind: "comment", target: input.target, text: existing(state, input.target) } })
        : still(state);
    case "removeComment":
      return still({ ...state, comments: state.comments.filter((_, index) => index !== input.index) });
    default:
      return dialogInput(state, input);
  }
}

type DialogInput = Extract<
  DetailInput,
  { kind: "scope" | "suggestion" | "dialogFailed" | "textLoaded" | "discardEdit" }
>;

function dialogInput(state: PanelState, input: DialogInput): Step {
  const { dialog } = state;
  switch (input.kind) {
    case "scope":
      if (dialog?.kind !== "rule") return still(state);
      return {
        state: { ...state, dialog: { kind: "rule", scope: input.scope } },
        effects: [{ kind: "suggestRule", scope: input.scope }],
      };
    case "suggestion":
      if (dialog?.kind !== "rule") return still(state);
      return still({ ...state, dialog: { kind: "rule", scope: dialog.scope, suggestion: input.suggestion } });
    case "dialogFailed":
      if (dialog?.kind !== "rule" && dialog?.kind !== "edit") return still(state);
      return still({ ...state, dialog: { ...dialog, error: input.error } });
    case "textLoaded":
      if (dialog?.kind !== "edit" || dialog.text !== undefined) return still(state);
      return still({ ...state, dialog: { ...dialog, text: input.text } });
    case "discardEdit":
      return still(discardEdit(state, input.path));
  }
}

function command(state: PanelState, name: Command, time: number): Step {
  if (name === "cancel") return still({ ...state, dialog: undefined, problem: undefined });
  if (name === "acknowledge") return acknowledge(state, time);
  if (state.dialog !== undefined) return inDialog(state, name, time);
  if (isDecision(name) || name === "edit" || name === "comment" || isSelectionCommand(name)) {
    // Selecting, commenting and editing decide nothing, so that the guard does not hold for them.
    const reason = pauseReason(state, isDecision(name) ? time : Number.POSITIVE_INFINITY);
    if (reason !== undefined) return { state, effects: [{ kind: "announce", text: reason }] };
  }
  switch (name) {
    case "approve":
      return decide(state, { kind: "approve" });
    case "deny":
    case "message":
    case "rule":
    case "edit":
    case "help":
    case "search":
      return openDialog(state, name);
    case "toggle":
    case "split":
    case "deselectFile":
    case "selectFile":
      return announceSelection(applySelection(state, name));
    case "nextHunk":
    case "previousHunk":
      return moveHunk(state, name === "nextHunk" ? 1 : -1);
    case "nextFile":
    case "previousFile":
      return moveFile(state, name === "nextFile" ? 1 : -1);
    default:
      return { state, effects: effectsOf(state, name) };
  }
}

function effectsOf(
  state: PanelState,
  name: Exclude<
    Command,
    | "cancel"
    | "acknowledge"
    | "approve"
    | "deny"
    | "message"
    | "rule"
    | "edit"
    | "help"
    | "search"
    | "toggle"
    | "split"
    | "deselectFile"
    | "selectFile"
    | "nextHunk"
    | "previousHunk"
    | "nextFile"
    | "previousFile"
  >,
): Effect[] {
  switch (name) {
    case "comment":
      return [{ kind: "startComment" }];
    case "fullDiff":
      return [{ kind: "openFullDiff", file: state.cursor.file }];
    case "dryRun":
      return offersDryRun(state) ? [{ kind: "dryRun" }] : [{ kind: "announce", text: "There is no dry run." }];
    case "nextMatch":
      return state.search === "" ? [] : [{ kind: "findNext", text: state.search }];
    case "leave":
      return [{ kind: "leave" }];
    default:
      return [{ kind: "moveLine", move: name }];
  }
}

/** Keys while a list or a confirmation is open. Lines of text take their keys themselves. */
function inDialog(state: PanelState, name: Command, time: number): Step {
  switch (state.dialog?.kind) {
    case "help":
      return name === "help" || name === "leave" ? still({ ...state, dialog: undefined }) : still(state);
    case "rule":
    case "edited":
      if (name === "approve") return confirmDialog(state, time);
      return name === "deny" || name === "leave" ? still({ ...state, dialog: undefined }) : still(state);
    default:
      return still(state);
  }
}

/** The person has read the refreshed preview. Decisions count again after the guard. */
function acknowledge(state: PanelState, time: number): Step {
  if (state.phase.kind !== "refreshed") return still(state);
  return {
    state: guarded({ ...state, phase: { kind: "waiting" } }, time),
    effects: [{ kind: "announce", text: "Decisions count for the new preview." }],
  };
}

function failed(state: PanelState, problem: string, time: number): Step {
  if (state.phase.kind !== "sending") return still(state);
  return {
    state: guarded({ ...state, phase: { kind: "waiting" }, problem }, time),
    effects: [{ kind: "announce", text: `Nothing has been decided: ${problem}` }],
  };
}

function connection(state: PanelState, connected: boolean, time: number): Step {
  if (connected === state.connected) return still(state);
  return still(connected ? guarded({ ...state, connected }, time) : { ...state, connected });
}

function onScreen(state: PanelState, path: string, hunks: number[]): Step {
  const known = Object.hasOwn(state.seen, path) ? (state.seen[path] as readonly number[]) : [];
  const fresh = hunks.filter((hunk) => !known.includes(hunk));
  if (fresh.length === 0) return still(state);
  const seen = { ...state.seen, [path]: [...known, ...fresh].sort((a, b) => a - b) };
  return { state: { ...state, seen }, effects: [{ kind: "markSeen", path, hunks: fresh }] };
}

function hunksLoaded(state: PanelState, path: string, parts: Record<number, number>): Step {
  const known = Object.hasOwn(state.parts, path) ? state.parts[path] : undefined;
  if (known && Object.keys(parts).every((hunk) => Object.hasOwn(known, hunk))) return still(state);
  return still({ ...state, parts: { ...state.parts, [path]: { ...known, ...parts } } });
}

function mergedSeen(state: PanelState, seen: { path: string; hunks: number[] }[]): PanelState["seen"] {
  const merged: Record<string, readonly number[]> = { ...state.seen };
  for (const { path, hunks } of seen) {
    const known = Object.hasOwn(merged, path) ? (merged[path] as readonly number[]) : [];
    merged[path] = [...new Set([...known, ...hunks])].sort((a, b) => a - b);
  }
  return merged;
}

function discardEdit(state: PanelState, path: string | undefined): PanelState {
  if (path === undefined) return { ...state, editedAction: undefined };
  const selection = { ...state.selection };
  const { split } = selectionOf(selection, path);
  return { ...state, selection: { ...selection, [path]: { split, deselected: [] } } };
}

function existing(state: PanelState, target: { path: string; line: number; side: string }): string {
  const same = state.comments.find(
    ({ path, line, side }) => path === target.path && line === target.line && side === target.side,
  );
  return same?.text ?? "";
}

function offersDryRun({ review: { subject } }: PanelState): boolean {
  return subject.kind === "command" && subject.command.dryRun.length > 0;
}

function isOpen(state: PanelState): boolean {
  return pauseReason(state, Number.POSITIVE_INFINITY) === undefined;
}

function guarded(state: PanelState, time: number): PanelState {
  return { ...state, guardUntil: Math.max(state.guardUntil, time + GUARD_MS) };
}

function still(state: PanelState): Step {
  return { state, effects: [] };
}
