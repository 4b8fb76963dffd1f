/** The verdict that a command makes. */

import { answerOf, isEmpty } from "./selection.js";
import { countsOf, pauseReason, type PanelState, type Step } from "./state.js";
import type { Answer, Decision, RuleScope } from "./model.js";

export type Intention =
  { kind: "approve"; message?: string; remember?: { scope: RuleScope } } | { kind: "deny"; reason: string };

/** Sends a verdict about the preview on screen. The caller has checked the guard. */
export function decide(state: PanelState, intention: Intention): Step {
  const paused = pauseReason(state, Number.POSITIVE_INFINITY);
  if (paused !== undefined) return { state, effects: [{ kind: "announce", text: paused }] };
  const answer = intention.kind === "deny" ? denial(intention.reason) : approval(state);
  if (answer === undefined) {
    return {
      state: { ...state, problem: "Nothing is selected. Select a hunk, or deny." },
      effects: [{ kind: "announce", text: "Nothing is selected. Select a hunk, or deny." }],
    };
  }
  const decision: Decision = {
    change: state.review.change,
    previewHash: state.review.previewHash,
    answer,
    comments: [...state.comments],
    ...(intention.kind === "approve" && intention.message !== undefined && { message: intention.message }),
    ...(intention.kind === "approve" && intention.remember !== undefined && { remember: intention.remember }),
  };
  return {
    state: { ...state, phase: { kind: "sending", decision }, dialog: undefined, problem: undefined },
    effects: [{ kind: "decide", decision }],
  };
}

function denial(reason: string): Answer {
  const given = reason.trim();
  return given === "" ? { kind: "deny" } : { kind: "deny", reason: given };
}

/** `undefined` if the selection would deny everything. */
function approval(state: PanelState): Answer | undefined {
  const { subject, files } = state.review;
  if (subject.kind === "command") {
    return state.editedAction === undefined ? { kind: "approve" } : { kind: "command", command: state.editedAction };
  }
  if (subject.kind === "tool") {
    return state.editedAction === undefined ? { kind: "approve" } : { kind: "arguments", json: state.editedAction };
  }
  if (files.length === 0) return { kind: "approve" };
  const counts = countsOf(state);
  if (isEmpty(counts)) return undefined;
  const answer = answerOf(files, state.selection);
  return answer.kind === "deny" ? undefined : answer;
}
