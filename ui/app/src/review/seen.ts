import { useEffect, useRef } from "preact/hooks";

import type { Input } from "./state.js";

export interface SeenOptions {
  body: { current: HTMLElement | null };
  scroller: HTMLElement | null;
  headerHeight: number;
  barHeight: number;
  dispatch: (input: Input) => void;
}

/** Marks a hunk as seen when its last line is on screen, between the header and the decision bar, in a visible page. */
export function useSeen({ body, scroller, headerHeight, barHeight, dispatch }: SeenOptions): void {
  const observerRef = useRef<IntersectionObserver | null>(null);
  const observedRef = useRef(new Set<Element>());
  useEffect(() => {
    if (scroller === null || headerHeight === 0) return undefined;
    const marks = observedRef.current;
    const watcher = new IntersectionObserver(
      (entries) => {
        if (document.visibilityState === "visible") report(entries, dispatch);
      },
      { root: scroller, rootMargin: `-${Math.ceil(headerHeight)}px 0px -${Math.ceil(barHeight)}px 0px` },
    );
    const observeAgain = (): void => {
      for (const mark of marks) {
        watcher.unobserve(mark);
        watcher.observe(mark);
      }
    };
    observerRef.current = watcher;
    observeAgain();
    document.addEventListener("visibilitychange", observeAgain);
    return () => {
      document.removeEventListener("visibilitychange", observeAgain);
      watcher.disconnect();
      observerRef.current = null;
    };
  }, [scroller, headerHeight, barHeight, dispatch]);

  useEffect(() => {
    const present = new Set(body.current?.querySelectorAll("[data-ends-hunk]"));
    for (const mark of observedRef.current) {
      if (present.has(mark)) continue;
      observerRef.current?.unobserve(mark);
      observedRef.current.delete(mark);
    }
    for (const mark of present) {
      if (observedRef.current.has(mark)) continue;
      observedRef.current.add(mark);
      observerRef.current?.observe(mark);
    }
  });
}

function report(entries: IntersectionObserverEntry[], dispatch: (input: Input) => void): void {
  const byPath = new Map<string, number[]>();
  for (const { isIntersecting, target } of entries) {
    const path = target.closest<HTMLElement>("[data-path]")?.dataset.path;
    const hunk = Number((target as HTMLElement).dataset.endsHunk);
    if (!isIntersecting || path === undefined || !(hunk > 0)) continue;
    byPath.set(path, [...(byPath.get(path) ?? []), hunk]);
  }
  for (const [path, hunks] of byPath) dispatch({ kind: "onScreen", path, hunks });
}
