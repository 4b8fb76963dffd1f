import {
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualItem,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";

export interface VirtualList {
  items: VirtualItem[];
  /** Height of all items in pixels. */
  total: number;
  /** Reference for the element of each item, which has its index in `data-index`. */
  measure: (element: HTMLElement | null) => void;
  /** Position of an item in pixels from the start of the list. */
  startOf: (index: number) => number;
  /** Renders again, such as after a change of the scroll target. */
  update: () => void;
}

/** Renders a long list in part: only the items near the visible ones. Heights are measured. */
export function useVirtualList(options: {
  count: number;
  scroller: () => HTMLElement | null;
  estimate: (index: number) => number;
  keyOf: (index: number) => string;
}): VirtualList {
  const [, rerender] = useReducer((turn: number, _action: null) => turn + 1, 0);
  const settings = {
    count: options.count,
    getScrollElement: options.scroller,
    estimateSize: options.estimate,
    getItemKey: options.keyOf,
    overscan: 6,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    measureElement,
    onChange: () => rerender(null),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(settings));
  const measured = useRef((element: HTMLElement | null) => virtualizer.measureElement(element));
  virtualizer.setOptions({ ...virtualizer.options, ...settings });
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  return {
    items: virtualizer.getVirtualItems(),
    total: virtualizer.getTotalSize(),
    measure: measured.current,
    startOf: (index) => virtualizer.getOffsetForIndex(index, "start")?.[0] ?? 0,
    update: () => rerender(null),
  };
}
