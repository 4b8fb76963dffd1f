import { signal } from "@preact/signals";

/** Text of the live region. Screen readers read it when it changes; the focus stays. */
export const announcement = signal("");

/** Says a sentence politely. The same sentence twice in a row is said twice. */
export function announce(text: string): void {
  announcement.value = announcement.peek() === text ? `${text}\u00a0` : text;
}
