import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { reduce } from "./machine.js";
import type { DryRunResult } from "./model.js";
import type { PanelViewProps } from "./props.js";
import { describeRefresh } from "./refresh.js";
import { GUARD_MS, openPanel, type Cursor, type Effect, type Input, type LineMove, type PanelState } from "./state.js";

/** Parts of the view that effects drive. */
export interface ViewControl {
  reveal: (cursor: Cursor) => void;
  moveLine: (move: LineMove) => void;
  startComment: () => void;
  findNext: (text: string) => void;
}

export interface DryRun {
  state: "running" | "done" | "failed";
  result?: DryRunResult;
  error?: string;
}

export interface Panel {
  state: PanelState;
  dispatch: (input: Input) => void;
  control: { current: ViewControl | null };
  dryRun: DryRun | undefined;
}

/** Runs the state machine: inputs in, effects out. */
export function usePanel(props: PanelViewProps): Panel {
  const latest = useRef(props);
  latest.current = props;
  const [, redraw] = useState(0);
  const [dryRun, setDryRun] = useState<DryRun>();
  const state = useRef<PanelState | null>(null);
  state.current ??= reopened(props) ?? openPanel(props.review, props.seen, performance.now(), props.connected);
  const control = useRef<ViewControl | null>(null);

  const dispatch = useCallback((input: Input): void => {
    if (state.current === null) return;
    const step = reduce(state.current, input);
    const changed = step.state !== state.current;
    state.current = step.state;
    for (const effect of step.effects) perform(effect, latest.current, dispatch, control, setDryRun);
    if (!changed) return;
    remember(step.state);
    redraw((version) => version + 1);
  }, []);

  useOutsideChanges(props, state, dispatch);
  return { state: state.current, dispatch, control, dryRun };
}

/** States of panels that are out of the document, because the stream holds only what is near its visible part. */
const remembered = new Map<number, PanelState>();
const MAX_REMEMBERED = 50;

function remember(state: PanelState): void {
  const { change } = state.review;
  remembered.delete(change);
  if (state.phase.kind === "settled") return;
  remembered.set(change, state);
  for (const oldest of remembered.keys()) {
    if (remembered.size <= MAX_REMEMBERED) break;
    remembered.delete(oldest);
  }
}

/** The state of a panel that was in the document before. It opens with the guard of every panel. */
function reopened({ review }: PanelViewProps): PanelState | undefined {
  const state = remembered.get(review.change);
  if (state === undefined) return undefined;
  return { ...state, guardUntil: Math.max(state.guardUntil, performance.now() + GUARD_MS) };
}

/** Inputs that come with new properties. */
function useOutsideChanges(
  props: PanelViewProps,
  state: { current: PanelState | null },
  dispatch: (input: Input) => void,
): void {
  const { review, refresh, connected, settled, seen } = props;
  useEffect(() => {
    const shown = state.current?.review;
    if (shown === undefined || shown === review) return;
    if (shown.previewHash === review.previewHash && shown.change === review.change) {
      dispatch({ kind: "described", review });
      return;
    }
    const described = describeRefresh(shown, review, refresh?.reason ?? "filesChanged", refresh?.predecessor);
    dispatch({ kind: "refreshed", review, refresh: described, time: performance.now() });
  }, [review, refresh, state, dispatch]);
  useEffect(() => dispatch({ kind: "connection", connected, time: performance.now() }), [connected, dispatch]);
  useEffect(() => {
    if (settled !== undefined) dispatch({ kind: "settled", settled });
  }, [settled, dispatch]);
  useEffect(() => dispatch({ kind: "seenElsewhere", seen }), [seen, dispatch]);
}

function perform(
  effect: Effect,
  { actions, review }: PanelViewProps,
  dispatch: (input: Input) => void,
  control: { current: ViewControl | null },
  setDryRun: (run: DryRun) => void,
): void {
  switch (effect.kind) {
    case "decide":
      actions
        .decide(effect.decision)
        .catch((error: unknown) => dispatch({ kind: "failed", problem: wordsOf(error), time: performance.now() }));
      return;
    case "reveal":
      control.current?.reveal(effect.cursor);
      return;
    case "moveLine":
      control.current?.moveLine(effect.move);
      return;
    case "startComment":
      control.current?.startComment();
      return;
    case "findNext":
      control.current?.findNext(effect.text);
      return;
    case "openFullDiff":
      actions.openFullDiff(review.files[effect.file]?.path ?? "");
      return;
    case "markSeen":
      actions.markSeen(effect.path, effect.hunks);
      return;
    case "suggestRule":
      actions
        .suggestRule(effect.scope)
        .then((suggestion) => dispatch({ kind: "suggestion", suggestion }))
        .catch((error: unknown) => dispatch({ kind: "dialogFailed", error: wordsOf(error) }));
      return;
    case "loadText":
      if (effect.subject.kind !== "file") return;
      actions
        .loadText(effect.subject.path)
        .then((text) => dispatch({ kind: "textLoaded", text }))
        .catch((error: unknown) => dispatch({ kind: "dialogFailed", error: wordsOf(error) }));
      return;
    case "dryRun":
      setDryRun({ state: "running" });
      actions
        .dryRun()
        .then((result) => setDryRun({ state: "done", result }))
        .catch((error: unknown) => setDryRun({ state: "failed", error: wordsOf(error) }));
      return;
    case "leave":
      actions.leave();
      return;
    case "announce":
      actions.announce(effect.text);
      return;
  }
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
