import { effect, signal, type Signal } from "@preact/signals";

/** A choice that the browser keeps. Without storage, it lasts as long as the page. */
function stored(key: string, initial: boolean): Signal<boolean> {
  const name = `sayso.${key}`;
  let value = initial;
  try {
    const text = globalThis.localStorage.getItem(name);
    if (text !== null) value = text === "yes";
  } catch {
    // Storage is off. The choice is not kept.
  }
  const choice = signal(value);
  effect(() => {
    try {
      globalThis.localStorage.setItem(name, choice.value ? "yes" : "no");
    } catch {
      // As above.
    }
  });
  return choice;
}

export const preferences = {
  showThinking: stored("show-thinking", true),
  notify: stored("notify", false),
  /** A change that the stream scrolls to once. */
  scrollToChange: signal<bigint | null>(null),
};
