import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

export type RowVirtualizer = Virtualizer<HTMLElement, HTMLElement>;

export interface VirtualOptions {
  count: number;
  scroller: HTMLElement | null;
  /** Element whose top is the start of the first item. */
  body: { current: HTMLElement | null };
  /** A new function means that estimates have changed. */
  itemKey: (index: number) => number;
  estimate: (index: number) => number;
  /** Height of what covers the scroller's top and bottom. */
  paddingStart?: number;
  paddingEnd?: number;
}

/** Items of a list that are near the visible part of a scroller. The items are laid out in normal flow. */
export function useVirtualizer(options: VirtualOptions): RowVirtualizer {
  const [, redraw] = useReducer((version: number, _: undefined) => version + 1, 0);
  const [margin, setMargin] = useState(0);
  const { count, scroller, body, itemKey, estimate, paddingStart = 0, paddingEnd = 0 } = options;
  const instance = useRef<RowVirtualizer | null>(null);
  const settings = {
    count,
    getScrollElement: () => scroller,
    estimateSize: estimate,
    getItemKey: itemKey,
    overscan: 16,
    scrollMargin: margin,
    scrollPaddingStart: paddingStart,
    scrollPaddingEnd: paddingEnd,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(undefined),
  };
  instance.current ??= new Virtualizer<HTMLElement, HTMLElement>(settings);
  const virtualizer = instance.current;
  virtualizer.setOptions({ ...virtualizer.options, ...settings });

  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  useLayoutEffect(() => {
    if (scroller === null) return undefined;
    const measure = (): void => {
      const element = body.current;
      if (element === null) return;
      const top = element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
      setMargin(Math.round(top - scroller.clientTop + scroller.scrollTop));
    };
    measure();
    // Content above the list moves it.
    const observer = new ResizeObserver(measure);
    for (const child of scroller.children) observer.observe(child);
    return () => observer.disconnect();
  }, [scroller, body]);
  return virtualizer;
}

/** Number of characters that fit into a line, for the estimate of wrapped lines. */
export function columnsOf(width: number, gutter: number, fontSize: number): number {
  return Math.max(8, Math.floor((width - gutter) / (fontSize * 0.602)));
}

/** Number of screen lines that a text takes. */
export function wrappedLines(text: string, columns: number): number {
  if (text.length <= columns / 4) return 1;
  let width = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    width += code === 9 ? 4 : code >= 0x1100 ? 2 : 1;
  }
  return Math.max(1, Math.ceil(width / columns));
}
