import { signal, type ReadonlySignal, type Signal } from "@preact/signals-core";

import type { Event } from "../generated/sayso/v1/event_pb.js";
import type { Session } from "../generated/sayso/v1/review_service_pb.js";

/** A session as the list of sessions shows it. Changes and requests without a session belong to the session `""`. */
export interface SessionInfo {
  session: string;
  agent: string | undefined;
  location: string | undefined;
  parent: string | undefined;
  startedMs: bigint;
  /** Time of the last event. */
  activeMs: bigint;
  ended: boolean;
  /** The current turn. `undefined` between turns. */
  turn: string | undefined;
  /** The first prompt, on one line. `undefined` until it is known. */
  title: string | undefined;
  /** Text for the latest event, such as `applied`. */
  lastChange: bigint | undefined;
  lastRequest: bigint | undefined;
}

const MAX_SESSIONS = 500;

/** All known sessions, by id. */
export class Sessions {
  readonly #all: Signal<ReadonlyMap<string, SessionInfo>> = signal(new Map());

  get all(): ReadonlySignal<ReadonlyMap<string, SessionInfo>> {
    return this.#all;
  }

  /** Changes a session, and adds it if it is new. */
  update(session: string, timeMs: bigint, patch: Partial<SessionInfo>): void {
    const before = this.#all.peek().get(session);
    const next: SessionInfo = {
      ...(before ?? {
        session,
        agent: undefined,
        location: undefined,
        parent: undefined,
        startedMs: timeMs,
        activeMs: timeMs,
        ended: false,
        turn: undefined,
        title: undefined,
        lastChange: undefined,
        lastRequest: undefined,
      }),
      ...patch,
    };
    if (timeMs > next.activeMs) next.activeMs = timeMs;
    const all = new Map(this.#all.peek());
    all.set(session, next);
    if (all.size > MAX_SESSIONS) {
      const oldest = [...all.values()].reduce((a, b) => (a.activeMs <= b.activeMs ? a : b));
      all.delete(oldest.session);
    }
    this.#all.value = all;
  }

  /** Merges the list of the engine, which knows sessions from before the events in memory. */
  merge(listed: readonly Session[]): void {
    for (const item of listed) {
      this.update(item.session, item.timeMs, {
        startedMs: item.timeMs,
        ended: !item.active,
        ...(item.agent !== undefined && { agent: item.agent }),
        ...(item.location !== undefined && { location: item.location }),
        ...(item.parent !== undefined && { parent: item.parent }),
        ...(item.turn !== undefined && { turn: item.turn }),
      });
    }
  }

  clear(): void {
    this.#all.value = new Map();
  }

  fold(event: Event, sessionOfChange: (change: bigint) => string | undefined): void {
    const { kind, timeMs } = event;
    switch (kind.case) {
      case "sessionStarted": {
        const { session, agent, location, parent } = kind.value;
        this.update(session, timeMs, { agent, location, parent, ended: false });
        break;
      }
      case "sessionResumed":
        this.update(kind.value.session, timeMs, { ended: false });
        break;
      case "sessionEnded":
        this.update(kind.value.session, timeMs, { ended: true, turn: undefined });
        break;
      case "turnStarted":
        this.update(kind.value.session, timeMs, { turn: kind.value.turn, ended: false });
        break;
      case "turnEnded":
        this.update(kind.value.session, timeMs, { turn: undefined });
        break;
      case "proposed": {
        const { origin, change } = kind.value;
        const agent = origin?.agent;
        this.update(origin?.session ?? "", timeMs, { lastChange: change, ...(agent !== undefined && { agent }) });
        break;
      }
      case "request": {
        if (kind.value.step.case !== "received") break;
        const { origin } = kind.value.step.value;
        const agent = origin?.agent;
        this.update(origin?.session ?? "", timeMs, {
          lastRequest: kind.value.request,
          ...(agent !== undefined && { agent }),
        });
        break;
      }
      case "ended":
      case "decided": {
        const session = sessionOfChange(kind.value.change);
        if (session !== undefined) this.update(session, timeMs, {});
        break;
      }
      default:
    }
  }
}
