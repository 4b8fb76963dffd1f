/** Selected hunks and parts, and the answer that they make. The rules are those of `file_review` in `crates/present`. */

import { count } from "../diff/words.js";
import type { DiffFile } from "../diff/rows.js";
import type { Answer, FileAnswer } from "./model.js";

/** Selection of one file. Everything is selected unless it is in `deselected`. */
export interface FileSelection {
  /** Deselected units: `3`, `3.2`, or `file` for a file that is decided as a whole. */
  deselected: readonly string[];
  /** Hunks that are split, with the number of their parts. */
  split: Readonly<Record<number, number>>;
  /** Text that replaces the proposed content. */
  edited?: string;
}

export type Selection = Readonly<Record<string, FileSelection>>;

export const WHOLE_FILE = "file";

const UNTOUCHED: FileSelection = { deselected: [], split: {} };

export function selectionOf(selection: Selection, path: string): FileSelection {
  return Object.hasOwn(selection, path) ? (selection[path] as FileSelection) : UNTOUCHED;
}

/** `true` if the file needs an answer. */
export function isAsked(file: DiffFile): boolean {
  return file.settled !== true;
}

/** `true` if the file can be approved: it needs an answer, and its change can be applied. */
export function isDecidable(file: DiffFile): boolean {
  return isAsked(file) && file.problem === undefined;
}

/** `true` if the file is decided as a whole. A changed encoding rewrites every line, so that a hunk of it cannot stand alone. */
export function isWhole(file: DiffFile): boolean {
  const { oldFormat, newFormat } = file;
  const changesEncoding =
    oldFormat !== undefined && newFormat !== undefined && oldFormat.encoding !== newFormat.encoding;
  return file.hunks === 0 || changesEncoding;
}

/** Ids of the units of a file that can be selected one by one. */
export function unitsOf(file: DiffFile, selection: FileSelection): string[] {
  if (isWhole(file)) return [WHOLE_FILE];
  const units: string[] = [];
  for (let hunk = 1; hunk <= file.hunks; hunk++) units.push(...unitsOfHunk(hunk, selection));
  return units;
}

function unitsOfHunk(hunk: number, selection: FileSelection): string[] {
  const parts = selection.split[hunk];
  if (parts === undefined) return [`${hunk}`];
  return Array.from({ length: parts }, (_, index) => `${hunk}.${index + 1}`);
}

export type Extent = "all" | "some" | "none";

function extent(units: string[], selection: FileSelection): Extent {
  const left = units.filter((unit) => selection.deselected.includes(unit)).length;
  if (left === 0) return "all";
  return left === units.length ? "none" : "some";
}

export function fileExtent(file: DiffFile, selection: FileSelection): Extent {
  if (selection.edited !== undefined && !selection.deselected.includes(WHOLE_FILE)) return "all";
  if (selection.edited !== undefined) return "none";
  return extent(unitsOf(file, selection), selection);
}

export function hunkExtent(file: DiffFile, hunk: number, selection: FileSelection): Extent {
  if (isWhole(file) || selection.edited !== undefined) return fileExtent(file, selection);
  return extent(unitsOfHunk(hunk, selection), selection);
}

/** Selects or deselects a unit. */
export function toggled(selection: FileSelection, units: string[]): FileSelection {
  const isSelected = units.every((unit) => !selection.deselected.includes(unit));
  const others = selection.deselected.filter((unit) => !units.includes(unit));
  return { ...selection, deselected: isSelected ? [...others, ...units] : others };
}

/** Toggles the unit under the cursor: a part of a split hunk, a hunk, or a file that is decided as a whole. */
export function toggleUnit(file: DiffFile, selection: FileSelection, hunk: number, part?: number): FileSelection {
  if (isWhole(file) || selection.edited !== undefined || hunk === 0) {
    const units = selection.edited === undefined ? unitsOf(file, selection) : [WHOLE_FILE];
    return toggled(selection, units);
  }
  if (part !== undefined && selection.split[hunk] !== undefined) return toggled(selection, [`${hunk}.${part}`]);
  return toggled(selection, unitsOfHunk(hunk, selection));
}

/** Selects or deselects all of a file. */
export function setFile(file: DiffFile, selection: FileSelection, target: "all" | "none"): FileSelection {
  if (target === "all") return { ...selection, deselected: [] };
  const units = selection.edited === undefined ? unitsOf(file, selection) : [WHOLE_FILE];
  return { ...selection, deselected: units };
}

/** Splits a hunk. Its parts take over its state. */
export function splitHunk(selection: FileSelection, hunk: number, parts: number): FileSelection {
  if (parts < 2 || selection.split[hunk] !== undefined) return selection;
  const split = { ...selection.split, [hunk]: parts };
  const isDeselected = selection.deselected.includes(`${hunk}`);
  const others = selection.deselected.filter((unit) => unit !== `${hunk}`);
  const units = unitsOfHunk(hunk, { ...selection, split });
  return { ...selection, split, deselected: isDeselected ? [...others, ...units] : others };
}

function fileAnswer(file: DiffFile, selection: FileSelection): FileAnswer {
  if (file.noDiff === "unchanged" && file.hunks === 0 && selection.deselected.length === 0) return { kind: "approve" };
  const state = fileExtent(file, selection);
  if (state === "none") return { kind: "deny" };
  if (selection.edited !== undefined) return { kind: "editedText", text: selection.edited };
  if (state === "all") return { kind: "approve" };
  const hunks: string[] = [];
  for (let hunk = 1; hunk <= file.hunks; hunk++) {
    if (hunkExtent(file, hunk, selection) === "all") hunks.push(`${hunk}`);
    else hunks.push(...unitsOfHunk(hunk, selection).filter((unit) => !selection.deselected.includes(unit)));
  }
  return { kind: "hunks", hunks };
}

/** Builds the answer about all files. */
export function answerOf(files: DiffFile[], selection: Selection): Answer {
  const asked = files.filter(isAsked);
  const answers: Record<string, FileAnswer> = {};
  for (const file of asked) {
    if (file.problem === undefined) answers[file.path] = fileAnswer(file, selectionOf(selection, file.path));
  }
  const given = Object.values(answers);
  if (given.length === asked.length && given.every((answer) => answer.kind === "approve")) return { kind: "approve" };
  if (given.every((answer) => answer.kind === "deny")) return { kind: "deny" };
  return { kind: "files", files: answers };
}

/** Counts for the decision bar. */
export interface SelectionCounts {
  /** Hunks, and files without hunks. */
  total: number;
  /** Selected whole. */
  selected: number;
  /** Selected in part. */
  partial: number;
  /** Selected hunks that have not been on screen. */
  unseen: number;
  noun: "hunk" | "change";
  /** Units that stay out, such as `hunk 2`. */
  left: string[];
  edited: number;
}

export function countSelection(
  files: DiffFile[],
  selection: Selection,
  seen: Readonly<Record<string, readonly number[]>>,
): SelectionCounts {
  const counts: SelectionCounts = { total: 0, selected: 0, partial: 0, unseen: 0, noun: "hunk", left: [], edited: 0 };
  let before = 0;
  for (const file of files.filter(isDecidable)) {
    const chosen = selectionOf(selection, file.path);
    if (chosen.edited !== undefined) counts.edited++;
    if (file.hunks === 0) countWhole(file, chosen, counts);
    for (let hunk = 1; hunk <= file.hunks; hunk++) {
      const state = hunkExtent(file, hunk, chosen);
      counts.total++;
      if (state === "all") counts.selected++;
      if (state === "some") counts.partial++;
      if (state !== "all") counts.left.push(...leftUnits(hunk, before + hunk, chosen, state));
      const wasSeen = Object.hasOwn(seen, file.path) && (seen[file.path] as readonly number[]).includes(hunk);
      if (state !== "none" && !wasSeen) counts.unseen++;
    }
    before += file.hunks;
  }
  return counts;
}

function countWhole(file: DiffFile, selection: FileSelection, counts: SelectionCounts): void {
  counts.noun = "change";
  counts.total++;
  if (fileExtent(file, selection) === "none") counts.left.push(file.path);
  else counts.selected++;
}

function leftUnits(hunk: number, shown: number, selection: FileSelection, state: Extent): string[] {
  if (state === "none") return [`hunk ${shown}`];
  return unitsOfHunk(hunk, selection)
    .filter((unit) => selection.deselected.includes(unit))
    .map((unit) => `part ${unit.split(".")[1] ?? ""} of hunk ${shown}`);
}

/** Label of the button that approves. */
export function approveLabel(counts: SelectionCounts): string {
  const unseen = counts.unseen > 0;
  if (isEmpty(counts)) return "Nothing selected";
  if (counts.total === counts.selected) {
    const verb = counts.edited > 0 ? "Approve as edited" : "Approve";
    return unseen ? `${verb}, ${count(counts.unseen, "hunk")} not seen` : verb;
  }
  const all = `${counts.selected} of ${count(counts.total, counts.noun)}`;
  const partial = counts.partial > 0 ? `, ${counts.partial} in part` : "";
  return `Approve ${all}${partial}${unseen ? `, ${counts.unseen} not seen` : ""}`;
}

/** `true` if an approval would approve nothing. */
export function isEmpty(counts: SelectionCounts): boolean {
  return counts.total > 0 && counts.selected + counts.partial === 0;
}
