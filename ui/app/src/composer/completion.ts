/** A word under the cursor that can be completed: a path after `@`, or a command after `/` at the start. */
export interface Completion {
  sign: "@" | "/";
  word: string;
  start: number;
  end: number;
}

/** Finds the completion at a position of the text. */
export function completionAt(text: string, position: number): Completion | null {
  const start = Math.max(text.lastIndexOf(" ", position - 1), text.lastIndexOf("\n", position - 1)) + 1;
  const sign = text[start];
  if (sign !== "@" && sign !== "/") return null;
  if (sign === "/" && start !== 0) return null;
  const rest = text.slice(position).search(/\s/);
  const end = rest < 0 ? text.length : position + rest;
  return { sign, word: text.slice(start + 1, position), start, end };
}

/** Splits a path that is being written into its directory and the start of a name. */
export function splitPath(word: string): { directory: string; start: string } {
  const slash = word.lastIndexOf("/");
  return { directory: slash < 0 ? "" : word.slice(0, slash), start: word.slice(slash + 1) };
}
