/** A new preview of a change that is on screen. */

import { count } from "../diff/words.js";
import type { DiffFile, FileSide } from "../diff/rows.js";
import type { Refresh, RefreshReason, Review } from "./model.js";
import { selectionOf, type FileSelection } from "./selection.js";
import { firstCursor, GUARD_MS, type PanelState, type Step } from "./state.js";

/** Shows the new preview. Selections, seen marks and edits of files that changed do not carry over; typed text does. */
export function refreshed(state: PanelState, review: Review, refresh: Refresh, time: number): Step {
  if (state.phase.kind === "settled") return { state, effects: [] };
  const same = review.files.filter((file) => {
    const before = state.review.files.find(({ path }) => path === file.path);
    return before !== undefined && isSamePreview(before, file);
  });
  const keep = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).filter(([path]) => same.some((file) => file.path === path)));
  const selection: Record<string, FileSelection> = {};
  for (const { path } of same) {
    if (Object.hasOwn(state.selection, path)) selection[path] = selectionOf(state.selection, path);
  }
  const dialog = state.dialog?.kind === "rule" || state.dialog?.kind === "edited" ? undefined : state.dialog;
  const next: PanelState = {
    ...state,
    review,
    phase: { kind: "refreshed", refresh },
    guardUntil: Math.max(state.guardUntil, time + GUARD_MS),
    dialog,
    cursor: firstCursor(review),
    selection,
    seen: keep(state.seen),
    parts: keep(state.parts),
    problem: undefined,
  };
  return { state: next, effects: [{ kind: "announce", text: `The preview changed. ${refresh.changes.join(" ")}` }] };
}

function isSamePreview(before: DiffFile, after: DiffFile): boolean {
  const isSameSide = (a: FileSide, b: FileSide): boolean =>
    a.kind === b.kind && a.hash === b.hash && a.mode === b.mode && a.target === b.target;
  const isKnown = (side: FileSide): boolean => side.kind !== "file" || side.hash !== undefined;
  return (
    [before.before, before.after].every(isKnown) &&
    isSameSide(before.before, after.before) &&
    isSameSide(before.after, after.after)
  );
}

const REASONS: Record<RefreshReason, string> = {
  filesChanged: "Files changed on disk after the preview.",
  predecessorApplied: "A change before this one was applied.",
  predecessorDropped: "A change before this one was not applied.",
};

/** Describes the difference between two previews, the cause first. */
export function describeRefresh(
  before: Review,
  after: Review,
  reason: RefreshReason,
  predecessor: number | undefined,
): Refresh {
  const cause =
    predecessor === undefined
      ? REASONS[reason]
      : `Change ${predecessor} ${reason === "predecessorApplied" ? "was applied" : "was not applied"}.`;
  const changes = [cause];
  for (const file of after.files) {
    const old = before.files.find(({ path }) => path === file.path);
    if (old === undefined) changes.push(`${file.path} is new in this change.`);
    else if (old.added !== file.added || old.removed !== file.removed) {
      changes.push(`${file.path}: +${file.added} −${file.removed}, before +${old.added} −${old.removed}.`);
    } else if (!isSamePreview(old, file)) changes.push(`${file.path}: the same number of lines, other content.`);
  }
  for (const old of before.files) {
    if (!after.files.some(({ path }) => path === old.path))
      changes.push(`${old.path} is no longer part of this change.`);
  }
  if (changes.length === 1) changes.push(`The effect on ${count(after.files.length, "file")} is the same.`);
  return { reason, changes, ...(predecessor !== undefined && { predecessor }) };
}
