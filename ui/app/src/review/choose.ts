/** Selection commands of the panel. */

import type { DiffFile } from "../diff/rows.js";
import type { Command } from "./keys.js";
import {
  approveLabel,
  isDecidable,
  isWhole,
  selectionOf,
  setFile,
  splitHunk,
  toggleUnit,
  type FileSelection,
} from "./selection.js";
import { countsOf, type Effect, type PanelState, type Step } from "./state.js";

export type SelectionCommand = "toggle" | "split" | "deselectFile" | "selectFile";

export function isSelectionCommand(command: Command): command is SelectionCommand {
  return command === "toggle" || command === "split" || command === "deselectFile" || command === "selectFile";
}

type Choose = (file: DiffFile, selection: FileSelection) => FileSelection;

/** Applies a selection command to the place of the cursor. */
export function applySelection(state: PanelState, choice: SelectionCommand | Choose): PanelState {
  const file = state.review.files[state.cursor.file];
  if (file === undefined || !isDecidable(file)) return state;
  const selection = selectionOf(state.selection, file.path);
  const chosen = typeof choice === "function" ? choice(file, selection) : choose(state, file, selection, choice);
  return chosen === selection ? state : { ...state, selection: { ...state.selection, [file.path]: chosen } };
}

function choose(state: PanelState, file: DiffFile, selection: FileSelection, command: SelectionCommand): FileSelection {
  const { hunk, part } = state.cursor;
  switch (command) {
    case "toggle":
      return toggleUnit(file, selection, hunk, part);
    case "deselectFile":
      return setFile(file, selection, "none");
    case "selectFile":
      return setFile(file, selection, "all");
    case "split": {
      if (isWhole(file) || selection.edited !== undefined) return selection;
      const parts = Object.hasOwn(state.parts, file.path) ? state.parts[file.path]?.[hunk] : undefined;
      return splitHunk(selection, hunk, parts ?? 1);
    }
  }
}

/** Says the result of a selection. */
export function announceSelection(state: PanelState): Step {
  const counts = countsOf(state);
  const text = `${approveLabel(counts)}.`;
  const effects: Effect[] = [{ kind: "announce", text }];
  return { state, effects };
}
