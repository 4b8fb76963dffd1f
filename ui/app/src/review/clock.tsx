import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { formatDuration } from "../diff/words.js";

const now = signal(Date.now());
let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Time in milliseconds since 1970, once a second. One clock serves all views and stands still without one. */
function useNow(): number {
  useEffect(() => {
    users++;
    now.value = Date.now();
    timer ??= setInterval(() => (now.value = Date.now()), 1000);
    return () => {
      users--;
      if (users > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now.value;
}

export function Waiting({ since }: { since: number }) {
  return <>waiting {formatDuration(useNow() - since)}</>;
}

/** Time until the change is denied. */
export function Deadline({ at }: { at: number }) {
  const left = at - useNow();
  const text = left <= 0 ? "deadline reached" : `denied in ${formatDuration(left)}`;
  return <span class={left < 60_000 ? "state unseen numeric" : "numeric"}>{text}</span>;
}
