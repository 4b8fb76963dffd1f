/** Lines and lists that open within the panel. */

import { decide } from "./decide.js";
import { isWhole, selectionOf } from "./selection.js";
import { pauseReason, type Dialog, type EditSubject, type PanelState, type Step } from "./state.js";

export function openDialog(state: PanelState, name: "deny" | "message" | "rule" | "edit" | "help" | "search"): Step {
  switch (name) {
    case "deny":
    case "message":
      return open(state, { kind: name, text: "" });
    case "search":
      return open(state, { kind: "search", text: state.search });
    case "help":
      return open(state, { kind: "help" });
    case "rule": {
      const opened = open(state, { kind: "rule", scope: "session" });
      return { ...opened, effects: [{ kind: "suggestRule", scope: "session" }] };
    }
    case "edit":
      return openEdit(state);
  }
}

function openEdit(state: PanelState): Step {
  const { subject } = state.review;
  if (subject.kind === "command") {
    const text = state.editedAction ?? subject.command.script;
    return open(state, { kind: "edit", subject: { kind: "command" }, text });
  }
  if (subject.kind === "tool") {
    const text = state.editedAction ?? subject.tool.argumentsJson;
    return open(state, { kind: "edit", subject: { kind: "arguments" }, text });
  }
  const file = state.review.files[state.cursor.file];
  const refusal =
    file === undefined || file.settled === true || file.problem !== undefined
      ? "This file is not decided here."
      : file.after.kind !== "file"
        ? "There is no text to edit; take or leave it."
        : isWhole(file) && file.newFormat?.encoding !== "UTF-8"
          ? "Only UTF-8 text can be edited here; take or leave it."
          : undefined;
  if (refusal !== undefined || file === undefined) {
    return { state, effects: [{ kind: "announce", text: refusal ?? "There is no file to edit." }] };
  }
  const target: EditSubject = { kind: "file", path: file.path };
  const { edited } = selectionOf(state.selection, file.path);
  if (edited !== undefined) return open(state, { kind: "edit", subject: target, text: edited });
  const opened = open(state, { kind: "edit", subject: target });
  return { ...opened, effects: [{ kind: "loadText", subject: target }] };
}

function open(state: PanelState, dialog: Dialog): Step {
  return { state: { ...state, dialog, problem: undefined }, effects: [] };
}

/** Stores the text of the open line or field. */
export function withText(state: PanelState, text: string): PanelState {
  const { dialog } = state;
  switch (dialog?.kind) {
    case "deny":
    case "message":
    case "comment":
    case "search":
      return { ...state, dialog: { ...dialog, text } };
    case "edit": {
      return { ...state, dialog: { kind: "edit", subject: dialog.subject, text } };
    }
    default:
      return state;
  }
}

/** Confirms the open dialog. */
export function confirmDialog(state: PanelState, time: number): Step {
  const { dialog } = state;
  switch (dialog?.kind) {
    case "deny":
      return guardedDecision(state, time, () => decide(state, { kind: "deny", reason: dialog.text }));
    case "message":
      if (dialog.text.trim() === "") return say(state, "Enter a message, or go back and approve without one.");
      return guardedDecision(state, time, () => decide(state, { kind: "approve", message: dialog.text.trim() }));
    case "rule":
      if (dialog.suggestion === undefined) return say(state, "The rule is not shown yet.");
      return guardedDecision(state, time, () => decide(state, { kind: "approve", remember: { scope: dialog.scope } }));
    case "comment":
      return { state: keepComment(state, dialog), effects: [] };
    case "search":
      return {
        state: { ...state, search: dialog.text, dialog: undefined },
        effects: dialog.text === "" ? [] : [{ kind: "findNext", text: dialog.text }],
      };
    case "edit":
      return confirmEdit(state, dialog);
    case "edited":
      return {
        state: keepEdit(state, dialog),
        effects: [{ kind: "announce", text: "The edit is part of the proposal." }],
      };
    case "help":
      return { state: { ...state, dialog: undefined }, effects: [] };
    case undefined:
      return { state, effects: [] };
  }
}

function guardedDecision(state: PanelState, time: number, send: () => Step): Step {
  const reason = pauseReason(state, time);
  return reason === undefined ? send() : say(state, reason);
}

function keepComment(state: PanelState, { target, text }: Dialog & { kind: "comment" }): PanelState {
  const others = state.comments.filter(
    ({ path, line, side }) => path !== target.path || line !== target.line || side !== target.side,
  );
  const given = text.trim();
  const comments = given === "" ? others : [...others, { ...target, text: given }];
  return { ...state, comments, dialog: undefined };
}

/** An edited text is shown again before it counts. Arguments must be JSON. */
function confirmEdit(state: PanelState, dialog: Dialog & { kind: "edit" }): Step {
  const { subject, text } = dialog;
  if (text === undefined) return say(state, "The text is not loaded yet.");
  if (subject.kind === "arguments") {
    const error = jsonProblem(text);
    if (error !== undefined) return { state: { ...state, dialog: { ...dialog, error } }, effects: [] };
  }
  if (subject.kind === "command" && text.trim() === "") {
    return {
      state: { ...state, dialog: { ...dialog, error: "The script is empty. Deny the command instead." } },
      effects: [],
    };
  }
  return { state: { ...state, dialog: { kind: "edited", subject, text } }, effects: [] };
}

function jsonProblem(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? undefined : "The arguments must be a JSON object.";
  } catch (error) {
    return `The arguments are not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function keepEdit(state: PanelState, { subject, text }: Dialog & { kind: "edited" }): PanelState {
  if (subject.kind !== "file") {
    const proposed =
      state.review.subject.kind === "command"
        ? state.review.subject.command.script
        : state.review.subject.kind === "tool"
          ? state.review.subject.tool.argumentsJson
          : undefined;
    return { ...state, editedAction: text === proposed ? undefined : text, dialog: undefined };
  }
  const { split } = selectionOf(state.selection, subject.path);
  return {
    ...state,
    dialog: undefined,
    selection: { ...state.selection, [subject.path]: { deselected: [], split, edited: text } },
  };
}

function say(state: PanelState, text: string): Step {
  return { state, effects: [{ kind: "announce", text }] };
}
