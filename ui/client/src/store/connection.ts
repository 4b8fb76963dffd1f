/** State of the connection to the engine. */
export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  /** The connection broke. The next attempt is at `retryAt`, in milliseconds since 1970. */
  | { state: "reconnecting"; since: number; retryAt: number; attempt: number; problem: string }
  /** The device has no network. */
  | { state: "offline"; since: number }
  /** The engine rejects the login. Nothing can be read or decided. */
  | { state: "login-expired" };

/** Identity of the engine's process. */
export interface EngineInfo {
  version: string;
  process: number;
  workspace: string;
  startedMs: bigint;
  url: string | undefined;
}

const FIRST_DELAY = 500;
const MAX_DELAY = 15_000;

/** Delay before an attempt in milliseconds: doubled each time, from half a second up to 15 seconds. Attempts count from 1. */
export function retryDelay(attempt: number): number {
  return Math.min(MAX_DELAY, FIRST_DELAY * 2 ** Math.min(attempt - 1, 10));
}
