import { useEffect, useState } from "preact/hooks";

import type { Input } from "./state.js";

export interface SeenOptions {
  body: { current: HTMLElement | null };
  scroller: HTMLElement | null;
  headerHeight: number;
  barHeight: number;
  dispatch: (input: Input) => void;
}

/** Time that the last line stays on screen before the hunk counts as seen. A view that scrolls past shows nothing. */
export const DWELL_MS = 300;

/** Last lines on screen, with the timers of those that have not stayed long enough. */
class Watch {
  private readonly marks = new Set<Element>();
  private readonly timers = new Map<Element, ReturnType<typeof setTimeout>>();
  private observer: IntersectionObserver | undefined;

  constructor(private readonly report: (mark: Element) => void) {}

  start(root: HTMLElement, rootMargin: string): () => void {
    const observer = new IntersectionObserver((entries) => entries.forEach((entry) => this.note(entry)), {
      root,
      rootMargin,
    });
    this.observer = observer;
    const again = (): void => {
      for (const mark of this.marks) {
        this.stopTimer(mark);
        observer.unobserve(mark);
        observer.observe(mark);
      }
    };
    again();
    document.addEventListener("visibilitychange", again);
    return () => {
      document.removeEventListener("visibilitychange", again);
      observer.disconnect();
      this.observer = undefined;
      for (const mark of this.marks) this.stopTimer(mark);
    };
  }

  /** Replaces the watched lines. */
  set(present: ReadonlySet<Element>): void {
    for (const mark of this.marks) {
      if (present.has(mark)) continue;
      this.stopTimer(mark);
      this.observer?.unobserve(mark);
      this.marks.delete(mark);
    }
    for (const mark of present) {
      if (this.marks.has(mark)) continue;
      this.marks.add(mark);
      this.observer?.observe(mark);
    }
  }

  private note({ isIntersecting, target }: IntersectionObserverEntry): void {
    this.stopTimer(target);
    if (!isIntersecting || document.visibilityState !== "visible") return;
    this.timers.set(
      target,
      setTimeout(() => {
        this.timers.delete(target);
        if (document.visibilityState === "visible") this.report(target);
      }, DWELL_MS),
    );
  }

  private stopTimer(mark: Element): void {
    clearTimeout(this.timers.get(mark));
    this.timers.delete(mark);
  }
}

/** Marks a hunk as seen when its last line stays on screen, between the header and the decision bar, in a visible page. */
export function useSeen({ body, scroller, headerHeight, barHeight, dispatch }: SeenOptions): void {
  const [watch] = useState(
    () =>
      new Watch((mark) => {
        const path = mark.closest<HTMLElement>("[data-path]")?.dataset.path;
        const hunk = Number((mark as HTMLElement).dataset.endsHunk);
        if (path !== undefined && hunk > 0) dispatch({ kind: "onScreen", path, hunks: [hunk] });
      }),
  );
  useEffect(() => {
    if (scroller === null || headerHeight === 0) return undefined;
    return watch.start(scroller, `-${Math.ceil(headerHeight)}px 0px -${Math.ceil(barHeight)}px 0px`);
  }, [watch, scroller, headerHeight, barHeight]);
  useEffect(() => watch.set(new Set(body.current?.querySelectorAll("[data-ends-hunk]"))));
}
