import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Changes with a panel in the document, in the order of mounting. */
const panels = signal<readonly number[]>([]);
const chosen = signal<number | undefined>(undefined);

/** One panel takes the keys: the one that the person used last, else the first. */
export function useActivePanel(change: number): { active: boolean; activate: () => void } {
  useEffect(() => {
    panels.value = [...panels.peek(), change];
    return () => {
      const index = panels.peek().indexOf(change);
      panels.value = panels.peek().filter((_, at) => at !== index);
    };
  }, [change]);
  const mounted = panels.value;
  const active = chosen.value !== undefined && mounted.includes(chosen.value) ? chosen.value : mounted[0];
  return { active: active === change, activate: () => (chosen.value = change) };
}
