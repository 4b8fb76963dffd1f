import { signal } from "@preact/signals";

import { type Api, describeFailure } from "@sayso/client";
import { PreviewView } from "@sayso/client/proto/file";
import { IfChanged, type UndoPlan } from "@sayso/client/proto/review_service";

type Direction = "undo" | "redo";

interface Reversal {
  direction: Direction;
  change: bigint;
  ifChanged: IfChanged;
  plan: UndoPlan | null;
  problem: string | null;
  isRunning: boolean;
}

/** The undo or redo that is being asked about. */
export const reversal = signal<Reversal | null>(null);

/** Computes the effect of an undo or redo, and opens the dialog that shows it. */
export function planReversal(api: Api, direction: Direction, change: bigint, ifChanged = IfChanged.REFUSE): void {
  reversal.value = { direction, change, ifChanged, plan: null, problem: null, isRunning: false };
  const request = {
    target: { target: { case: "change" as const, value: change } },
    ifChanged,
    view: PreviewView.DIFF,
  };
  const planned = direction === "undo" ? api.review.planUndo(request) : api.review.planRedo(request);
  planned.then(
    ({ plan }) => updateReversal({ plan: plan ?? null }),
    (error: unknown) => updateReversal({ problem: describeFailure(error).message }),
  );
}

/** Changes the open reversal. Does nothing if its dialog was closed meanwhile. */
export function updateReversal(patch: Partial<Reversal>): void {
  const present = reversal.peek();
  if (present) reversal.value = { ...present, ...patch };
}
