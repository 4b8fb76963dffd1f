/** An order of pinned sections after a move, and the section that follows the moved one. */
export interface PinMove {
  order: string[];
  /** Absent: the moved section is the last. */
  before: string | undefined;
}

/** Moves a section to an index of the order without it. `null` if nothing changes. */
export function movePin(order: readonly string[], id: string, to: number): PinMove | null {
  const from = order.indexOf(id);
  if (from < 0) return null;
  const rest = order.filter((other) => other !== id);
  const index = Math.max(0, Math.min(rest.length, to));
  if (index === from) return null;
  rest.splice(index, 0, id);
  return { order: rest, before: rest[index + 1] };
}

/** Moves a section by one place. `null` at the ends. */
export function shiftPin(order: readonly string[], id: string, by: 1 | -1): PinMove | null {
  const from = order.indexOf(id);
  const to = from + by;
  return from < 0 || to < 0 || to >= order.length ? null : movePin(order, id, to);
}

/** Index at which a dragged section would be dropped, from the middles of the other rows. */
export function dropIndex(middles: readonly number[], y: number): number {
  const index = middles.findIndex((middle) => y < middle);
  return index < 0 ? middles.length : index;
}
