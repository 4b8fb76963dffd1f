import { signal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

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
function reopened({ review }: PanelViewProps, time: number): PanelState | undefined {
  const state = remembered.get(review.change);
  return state && { ...state, guardUntil: Math.max(state.guardUntil, time + GUARD_MS) };
}

/** Runs the state machine: inputs in, effects out. */
export class Panel {
  readonly state: Signal<PanelState>;
  readonly dryRun: Signal<DryRun | undefined> = signal(undefined);
  /** Set by the list of rows while it is in the document. */
  private view: ViewControl | undefined;

  constructor(private props: PanelViewProps) {
    const time = performance.now();
    this.state = signal(reopened(props, time) ?? openPanel(props.review, props.seen, time, props.connected));
  }

  readonly dispatch = (input: Input): void => {
    const step = reduce(this.state.peek(), input);
    if (step.state !== this.state.peek()) {
      this.state.value = step.state;
      remember(step.state);
    }
    for (const effect of step.effects) this.perform(effect);
  };

  update(props: PanelViewProps): void {
    this.props = props;
  }

  connectView(view: ViewControl | undefined): void {
    this.view = view;
  }

  /** A new preview, or more facts about the present one. */
  show({ review, refresh }: PanelViewProps): void {
    const shown = this.state.peek().review;
    if (shown === review) return;
    if (shown.previewHash === review.previewHash && shown.change === review.change) {
      this.dispatch({ kind: "described", review });
      return;
    }
    const described = describeRefresh(shown, review, refresh?.reason ?? "filesChanged", refresh?.predecessor);
    this.dispatch({ kind: "refreshed", review, refresh: described, time: performance.now() });
  }

  private perform(effect: Effect): void {
    const { actions, review } = this.props;
    switch (effect.kind) {
      case "decide":
        actions.decide(effect.decision).catch((error: unknown) => {
          this.dispatch({ kind: "failed", problem: wordsOf(error), time: performance.now() });
        });
        return;
      case "openFullDiff":
        actions.openFullDiff(review.files[effect.file]?.path ?? "");
        return;
      case "markSeen":
        actions.markSeen(effect.path, effect.hunks);
        return;
      case "leave":
        actions.leave();
        return;
      case "announce":
        actions.announce(effect.text);
        return;
      case "suggestRule":
      case "loadText":
      case "dryRun":
        this.load(effect);
        return;
      default:
        this.drive(effect);
    }
  }

  private drive(effect: Effect & { kind: "reveal" | "moveLine" | "startComment" | "findNext" }): void {
    switch (effect.kind) {
      case "reveal":
        this.view?.reveal(effect.cursor);
        return;
      case "moveLine":
        this.view?.moveLine(effect.move);
        return;
      case "startComment":
        this.view?.startComment();
        return;
      case "findNext":
        this.view?.findNext(effect.text);
    }
  }

  /** Calls whose result goes into a dialog. */
  private load(effect: Effect & { kind: "suggestRule" | "loadText" | "dryRun" }): void {
    const { actions } = this.props;
    const fail = (error: unknown): void => this.dispatch({ kind: "dialogFailed", error: wordsOf(error) });
    switch (effect.kind) {
      case "suggestRule":
        actions.suggestRule(effect.scope).then((suggestion) => this.dispatch({ kind: "suggestion", suggestion }), fail);
        return;
      case "loadText":
        if (effect.subject.kind !== "file") return;
        actions.loadText(effect.subject.path).then((text) => this.dispatch({ kind: "textLoaded", text }), fail);
        return;
      case "dryRun":
        this.dryRun.value = { state: "running" };
        actions.dryRun().then(
          (result) => (this.dryRun.value = { state: "done", result }),
          (error: unknown) => (this.dryRun.value = { state: "failed", error: wordsOf(error) }),
        );
    }
  }
}

/** The panel of a view, with the inputs that come as properties. */
export function usePanel(props: PanelViewProps): Panel {
  const [panel] = useState(() => new Panel(props));
  const { connected, settled, seen } = props;
  useLayoutEffect(() => panel.update(props));
  useEffect(() => panel.show(props));
  useEffect(() => panel.dispatch({ kind: "connection", connected, time: performance.now() }), [panel, connected]);
  useEffect(() => {
    if (settled !== undefined) panel.dispatch({ kind: "settled", settled });
  }, [panel, settled]);
  useEffect(() => panel.dispatch({ kind: "seenElsewhere", seen }), [panel, seen]);
  return panel;
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
