/** Elements of a diff: focus, rows and sizes. */

import { useLayoutEffect, useState } from "preact/hooks";

/** Moves the focus with the cursor while it is in the table. */
export function useFocusedRow(body: { current: HTMLElement | null }, cursor: number | undefined): void {
  useLayoutEffect(() => {
    const active = document.activeElement;
    if (cursor === undefined || !(active instanceof HTMLElement) || body.current?.contains(active) !== true) return;
    if (active.tagName !== "TR" || active.dataset.row === `${cursor}`) return;
    body.current.querySelector<HTMLElement>("tr.current")?.focus({ preventScroll: true });
  }, [body, cursor]);
}

/** Index of the row that an event is about. */
export function rowAt(target: EventTarget | null): number | undefined {
  if (!(target instanceof Element)) return undefined;
  const row = target.closest<HTMLElement>("tr[data-row]")?.dataset.row;
  return row === undefined ? undefined : Number(row);
}

export function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select, [role=textbox]");
}

export function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(1000);
  useLayoutEffect(() => {
    const observed = element.current;
    if (observed === null) return undefined;
    const measure = (): void => setWidth(observed.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(observed);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
