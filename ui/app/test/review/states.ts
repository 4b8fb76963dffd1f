/** States and presses for the tests of the state machine. */

import type { DiffFile } from "../../src/diff/rows.js";
import { commandOf } from "../../src/review/keys.js";
import { reduce } from "../../src/review/machine.js";
import type { Review } from "../../src/review/model.js";
import { GUARD_MS, openPanel, type Effect, type Input, type PanelState } from "../../src/review/state.js";

export function file(path: string, hunks: number, facts: Partial<DiffFile> = {}): DiffFile {
  return {
    path,
    operation: "update",
    before: { kind: "file", hash: `${path}-old`, mode: 0o100644 },
    after: { kind: "file", hash: `${path}-new`, mode: 0o100644 },
    newFormat: { encoding: "UTF-8", lineEnding: "LF", byteOrderMark: false, finalNewline: true, lines: 9 },
    oldFormat: { encoding: "UTF-8", lineEnding: "LF", byteOrderMark: false, finalNewline: true, lines: 9 },
    added: hunks,
    removed: 0,
    hunks,
    conflicts: 0,
    ...facts,
  };
}

export function review(files: DiffFile[], facts: Partial<Review> = {}): Review {
  return {
    change: 7,
    previewHash: "hash-1",
    subject: { kind: "files" },
    placement: "proposed",
    files,
    notes: [],
    sinceMs: 0,
    predecessors: [],
    ...facts,
  };
}

export const COMMAND: Partial<Review> = {
  subject: {
    kind: "command",
    command: {
      script: "make",
      directory: "",
      effects: [],
      doubts: [],
      syntax: { result: "valid", message: "" },
      dryRun: ["make", "-n"],
    },
  },
};

export const TOOL: Partial<Review> = {
  subject: {
    kind: "tool",
    tool: { name: "create", argumentsJson: '{"a":1}', arguments: [], mismatches: [], paths: [] },
  },
};

/** Panel that is driven by keys and inputs. Time stands still unless a test moves it. */
export class Driver {
  state: PanelState;
  effects: Effect[] = [];
  time: number;

  constructor(shown: Review) {
    this.state = openPanel(shown, [], 0, true);
    this.time = GUARD_MS;
  }

  send(...inputs: Input[]): this {
    for (const input of inputs) {
      const step = reduce(this.state, input);
      this.state = step.state;
      this.effects.push(...step.effects);
    }
    return this;
  }

  press(...keys: string[]): this {
    for (const key of keys) {
      const command = commandOf(key);
      if (command === undefined) throw new Error(`${key} is not a key`);
      this.send({ kind: "command", command, time: this.time });
    }
    return this;
  }

  type(text: string): this {
    return this.send({ kind: "text", text });
  }

  confirm(): this {
    return this.send({ kind: "confirm", time: this.time });
  }

  get decision() {
    return this.effects.find((effect) => effect.kind === "decide")?.decision;
  }

  get announced(): string[] {
    return this.effects.filter((effect) => effect.kind === "announce").map(({ text }) => text);
  }
}
