import { signal, type ReadonlySignal, type Signal } from "@preact/signals-core";

import type { Event } from "../generated/sayso/v1/event_pb.js";

/** An entry of a session's stream that comes from the journal. Blocks of the conversation are kept apart. */
export type TimelineEntry = { key: string; timeMs: bigint } & (
  | { kind: "change"; change: bigint }
  | { kind: "request"; request: bigint }
  | { kind: "turn-started"; turn: string }
  | { kind: "turn-ended"; turn: string }
  | { kind: "notice"; notice: Notice }
);

/** A message in the stream that is no part of the conversation. */
export type Notice =
  | { about: "rule-added"; ruleJson: string }
  | { about: "recovered"; change: bigint; completed: boolean; skipped: string[]; rescued: string[] }
  | { about: "differs"; change: bigint; files: string[] }
  | { about: "message"; change: bigint | undefined; text: string }
  | { about: "session-resumed" }
  | { about: "session-ended" };

/** Limit on entries of a session in memory. */
export const MAX_ENTRIES = 2_000;

/** Entries of one session, oldest first. */
export class Timeline {
  readonly #entries: Signal<readonly TimelineEntry[]> = signal([]);
  readonly #keys = new Set<string>();

  get entries(): ReadonlySignal<readonly TimelineEntry[]> {
    return this.#entries;
  }

  /** Adds entries that are not known yet, in the order of time. */
  add(added: readonly TimelineEntry[]): void {
    const fresh = added.filter((entry) => !this.#keys.has(entry.key));
    if (fresh.length === 0) return;
    for (const entry of fresh) this.#keys.add(entry.key);
    const present = this.#entries.peek();
    const last = present.at(-1);
    const isInOrder =
      fresh.every((entry, at) => at === 0 || (fresh[at - 1]?.timeMs ?? 0n) <= entry.timeMs) &&
      (last === undefined || (fresh[0]?.timeMs ?? 0n) >= last.timeMs);
    let next = [...present, ...fresh];
    if (!isInOrder) next.sort((a, b) => (a.timeMs < b.timeMs ? -1 : a.timeMs > b.timeMs ? 1 : 0));
    if (next.length > MAX_ENTRIES) {
      const dropped = next.slice(0, next.length - MAX_ENTRIES);
      for (const entry of dropped) this.#keys.delete(entry.key);
      next = next.slice(-MAX_ENTRIES);
    }
    this.#entries.value = next;
  }
}

/** Returns the entry for an event, with its session; `null` if the event adds none. */
export function timelineEntry(
  event: Event,
  sessionOfChange: (change: bigint) => string | undefined,
): { session: string; entry: TimelineEntry } | null {
  const { number, timeMs, kind } = event;
  const notice = (session: string | undefined, value: Notice) =>
    session === undefined
      ? null
      : { session, entry: { key: `event:${number}`, timeMs, kind: "notice" as const, notice: value } };
  switch (kind.case) {
    case "proposed": {
      const session = kind.value.origin?.session ?? "";
      return { session, entry: changeEntry(kind.value.change, timeMs) };
    }
    case "request": {
      if (kind.value.step.case !== "received") return null;
      const session = kind.value.step.value.origin?.session ?? "";
      return { session, entry: requestEntry(kind.value.request, timeMs) };
    }
    case "turnStarted":
    case "turnEnded": {
      const { session, turn } = kind.value;
      const name = kind.case === "turnStarted" ? "turn-started" : "turn-ended";
      return { session, entry: { key: `${name}:${number}`, timeMs, kind: name, turn } };
    }
    case "ruleAdded":
      return notice(kind.value.session, { about: "rule-added", ruleJson: kind.value.ruleJson });
    case "recovered": {
      const { change, completed, skippedFiles, rescuedFiles } = kind.value;
      return notice(sessionOfChange(change), {
        about: "recovered",
        change,
        completed,
        skipped: skippedFiles,
        rescued: rescuedFiles,
      });
    }
    case "observed": {
      const { change, differingFiles } = kind.value;
      if (differingFiles.length === 0) return null;
      return notice(sessionOfChange(change), { about: "differs", change, files: differingFiles });
    }
    case "messageQueued":
      // The messages of a verdict are shown at its card.
      if (kind.value.change !== undefined) return null;
      return notice(kind.value.session, { about: "message", change: kind.value.change, text: kind.value.text });
    case "sessionResumed":
      return notice(kind.value.session, { about: "session-resumed" });
    case "sessionEnded":
      return notice(kind.value.session, { about: "session-ended" });
    default:
      return null;
  }
}

export const changeEntry = (change: bigint, timeMs: bigint): TimelineEntry => ({
  key: `change:${change}`,
  timeMs,
  kind: "change",
  change,
});

export const requestEntry = (request: bigint, timeMs: bigint): TimelineEntry => ({
  key: `request:${request}`,
  timeMs,
  kind: "request",
  request,
});
