import { describe, expect, it } from "vitest";

import { FULL_DIFF_KEYS, PANEL_KEYS, readKey, shortcutOf, type KeyPress } from "../../src/review/keys.js";
import { reduce } from "../../src/review/machine.js";
import type { PanelState } from "../../src/review/state.js";
import { COMMAND, Driver, file, review } from "./states.js";

const press = (key: string, more: Partial<KeyPress> = {}): KeyPress => ({
  key,
  ctrlKey: false,
  altKey: false,
  metaKey: false,
  repeat: false,
  isComposing: false,
  ...more,
});

const FILES = [file("a.rs", 2), file("b.rs", 1)];

/** Summary of a step: effects, dialog, phase. */
function summary(state: PanelState, key: string, time: number): string {
  const entry = PANEL_KEYS.find((candidate) => candidate.key === key);
  if (!entry) throw new Error(key);
  const step = reduce(state, { kind: "command", command: entry.command, time });
  const parts = step.effects.map((effect) => effect.kind);
  if (step.state.dialog && step.state.dialog !== state.dialog) parts.push(`open ${step.state.dialog.kind}` as never);
  if (state.dialog && !step.state.dialog) parts.push("close" as never);
  if (step.state.selection !== state.selection) parts.push("select" as never);
  if (step.state.cursor !== state.cursor) parts.push("move" as never);
  if (step.state.phase.kind !== state.phase.kind) parts.push(`to ${step.state.phase.kind}` as never);
  return parts.join(", ") || "nothing";
}

const STATES = ["waiting", "guarded", "refreshed", "disconnected", "sending"] as const;

/** Every key in every state: the effect, or `nothing`. */
const TABLE: Record<string, Record<string, string>> = {
  //             waiting                       guarded                       refreshed       disconnected    sending
  y: row("decide, to sending", "announce", "announce", "announce", "announce"),
  n: row("open deny", "announce", "announce", "announce", "announce"),
  m: row("open message", "announce", "announce", "announce", "announce"),
  A: row("suggestRule, open rule", "announce", "announce", "announce", "announce"),
  " ": row("announce, select", "announce, select", "announce", "announce", "announce"),
  s: row("announce, select", "announce, select", "announce", "announce", "announce"),
  x: row("announce, select", "announce, select", "announce", "announce", "announce"),
  X: row("announce, select", "announce, select", "announce", "announce", "announce"),
  e: row("loadText, open edit", "loadText, open edit", "announce", "announce", "announce"),
  c: row("startComment", "startComment", "announce", "announce", "announce"),
  d: same("announce"),
  "]": same("reveal, move"),
  "[": same("nothing"),
  "}": same("reveal, move"),
  "{": same("nothing"),
  j: same("moveLine"),
  k: same("moveLine"),
  ArrowDown: same("moveLine"),
  ArrowUp: same("moveLine"),
  PageDown: same("moveLine"),
  PageUp: same("moveLine"),
  g: same("moveLine"),
  G: same("moveLine"),
  v: same("openFullDiff"),
  "/": same("open search"),
  N: same("nothing"),
  "?": same("open help"),
  q: same("leave"),
  Escape: same("nothing"),
  Enter: row("nothing", "nothing", "announce, to waiting", "nothing", "nothing"),
};

function row(...outcomes: string[]): Record<string, string> {
  return Object.fromEntries(STATES.map((state, index) => [state, outcomes[index] ?? ""]));
}

function same(outcome: string): Record<string, string> {
  return row(...STATES.map(() => outcome));
}

function stateOf(name: (typeof STATES)[number]): { state: PanelState; time: number } {
  const driver = new Driver(review(FILES));
  driver.send({ kind: "hunksLoaded", path: "a.rs", parts: { 1: 2, 2: 1 } });
  switch (name) {
    case "waiting":
      break;
    case "guarded":
      return { state: driver.state, time: driver.time - 1 };
    case "refreshed":
      driver.send({
        kind: "refreshed",
        review: review(FILES, { previewHash: "hash-2" }),
        refresh: { reason: "filesChanged", changes: [] },
        time: 0,
      });
      break;
    case "disconnected":
      driver.send({ kind: "connection", connected: false, time: 0 });
      break;
    case "sending":
      driver.press("y");
  }
  return { state: driver.state, time: driver.time };
}

describe("keys of the panel", () => {
  it("table_names_every_key", () => {
    expect(Object.keys(TABLE)).toEqual(expect.arrayContaining(PANEL_KEYS.map(({ key }) => key)));
    expect(Object.keys(TABLE)).toHaveLength(PANEL_KEYS.length);
  });

  for (const [key, outcomes] of Object.entries(TABLE)) {
    for (const name of STATES) {
      it(`${key === " " ? "space" : key}_in_${name}`, () => {
        const { state, time } = stateOf(name);
        expect(summary(state, key, time)).toBe(outcomes[name]);
      });
    }
  }

  it("settled_panel_ignores_decisions", () => {
    const driver = new Driver(review(FILES));
    driver.send({ kind: "settled", settled: { status: "denied", by: "elsewhere" } });
    driver.press("y", "n", "m", "A");
    expect([driver.decision, driver.state.dialog]).toEqual([undefined, undefined]);
  });

  it("dialogs_swallow_other_keys", () => {
    for (const [opener, kind] of [
      ["n", "deny"],
      ["m", "message"],
      ["/", "search"],
      ["?", "help"],
    ] as const) {
      const driver = new Driver(review(FILES)).press(opener);
      driver.press("y", "x", "j", " ", "e");
      expect([driver.state.dialog?.kind, driver.decision, driver.state.selection]).toEqual([kind, undefined, {}]);
      expect(driver.press("Escape").state.dialog).toBeUndefined();
    }
  });

  it("held_key_repeats_moves_only", () => {
    expect(readKey(press("j", { repeat: true }))).toBe("lineDown");
    for (const key of ["y", "n", " ", "m", "A", "Enter", "x", "q"]) {
      expect(readKey(press(key, { repeat: true })), key).toBeUndefined();
    }
  });

  it("modifiers_and_composition_are_no_keys", () => {
    for (const more of [{ ctrlKey: true }, { altKey: true }, { metaKey: true }, { isComposing: true }]) {
      expect(readKey(press("y", more))).toBeUndefined();
    }
  });

  it("full_diff_has_no_decision_key", () => {
    const keys = FULL_DIFF_KEYS.map(({ key }) => key);
    for (const key of ["y", "n", "m", "A", "e", "c", "x", "X", "s", " ", "Enter", "d"]) {
      expect(keys).not.toContain(key);
    }
    expect(keys).toEqual(expect.arrayContaining(["v", "]", "[", "}", "{", "/", "N", "?", "q", "j", "k", "g", "G"]));
  });

  it("shortcuts_name_shifted_letters", () => {
    expect([shortcutOf("approve"), shortcutOf("rule"), shortcutOf("toggle")]).toEqual(["y", "Shift+A", "Space"]);
  });

  it("dry_run_key_runs_for_commands", () => {
    const driver = new Driver(review([], COMMAND)).press("d");
    expect(driver.effects).toEqual([{ kind: "dryRun" }]);
  });
});
