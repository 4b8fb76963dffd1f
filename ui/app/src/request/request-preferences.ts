import { effect, signal, type Signal } from "@preact/signals";

/** Choices of this browser. The protocol has no preferences of requests yet. */
function stored<Value>(
  key: string,
  initial: Value,
  read: (text: string) => Value,
  write: (value: Value) => string,
): Signal<Value> {
  const name = `sayso.request.${key}`;
  let value = initial;
  try {
    const text = globalThis.localStorage.getItem(name);
    if (text !== null) value = read(text);
  } catch {
    // Storage is off. The choice lasts as long as the page.
  }
  const choice = signal(value);
  effect(() => {
    const text = write(choice.value);
    try {
      globalThis.localStorage.setItem(name, text);
    } catch {
      // As above.
    }
  });
  return choice;
}

const list = (text: string): string[] => text.split(",").filter((item) => item !== "");
const yes = (text: string): boolean => text === "yes";
const formatYes = (value: boolean): string => (value ? "yes" : "no");
const formatList = (items: string[]): string => items.join(",");

export const requestPreferences = {
  autoFollow: stored("auto-follow", true, yes, formatYes),
  /** Names of metadata fields, in order. An empty list hides them and keeps the token budget. */
  metadataFields: stored("metadata-fields", ["sessionId", "requestId"], list, formatList),
  /** `requestOptions` and `rawRequest`, as outlines. */
  extraSections: stored("extra-sections", ["requestOptions"], list, formatList),
};
