/** Time and timers of a host, so that tests control them. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once, after a delay in milliseconds. Returns a function that cancels it. */
  after(delay: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (delay, callback) => {
    const timer = setTimeout(callback, delay);
    return () => clearTimeout(timer);
  },
};

/** Resolves after a delay, or at once when the signal aborts. */
export function sleep(clock: Clock, delay: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const finish = () => {
      cancel();
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(delay, finish);
    signal.addEventListener("abort", finish);
  });
}
