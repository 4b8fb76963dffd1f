import { signal, type ReadonlySignal } from "@preact/signals-core";

import type { Change } from "../generated/sayso/v1/change_pb.js";
import type { InboxItem } from "../generated/sayso/v1/inbox_pb.js";

/** State of the connection to the engine. */
export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  /** The stream broke; the next attempt is at `retryAt` (milliseconds since 1970). */
  | { state: "reconnecting"; since: number; retryAt: number; attempt: number; problem: string }
  /** The device has no network. */
  | { state: "offline"; since: number }
  /** The engine rejects the login. Nothing can be read or decided. */
  | { state: "login-expired" };

/** State of the workspace, folded from events. */
export interface Store {
  connection: ReadonlySignal<Connection>;
  /** Decisions are possible: connected, with a login. */
  canDecide: ReadonlySignal<boolean>;
  /** Changes by number, as far as they are in memory. */
  change(number: bigint): ReadonlySignal<Change | undefined>;
  inbox: ReadonlySignal<readonly InboxItem[]>;
}

/** Placeholder of the first commit. */
export const NO_CONNECTION = signal<Connection>({ state: "connecting" });
