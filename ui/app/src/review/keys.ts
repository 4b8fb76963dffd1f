/** Keys of the review panel and of the full diff (SURFACES.md, section 3). */

export type Command =
  | "approve"
  | "deny"
  | "toggle"
  | "split"
  | "deselectFile"
  | "selectFile"
  | "edit"
  | "comment"
  | "message"
  | "rule"
  | "dryRun"
  | "nextHunk"
  | "previousHunk"
  | "nextFile"
  | "previousFile"
  | "lineDown"
  | "lineUp"
  | "pageDown"
  | "pageUp"
  | "top"
  | "bottom"
  | "fullDiff"
  | "search"
  | "nextMatch"
  | "help"
  | "leave"
  | "cancel"
  | "acknowledge";

export interface KeyEntry {
  key: string;
  command: Command;
  /** Text in the list of keys. */
  text: string;
}

/** Every key of the panel, in the order of the list of keys. */
export const PANEL_KEYS: readonly KeyEntry[] = [
  { key: "y", command: "approve", text: "approve what is selected" },
  { key: "n", command: "deny", text: "deny, with a reason" },
  { key: " ", command: "toggle", text: "select or deselect the hunk" },
  { key: "s", command: "split", text: "split the hunk" },
  { key: "x", command: "deselectFile", text: "deselect every hunk of the file" },
  { key: "X", command: "selectFile", text: "select every hunk of the file" },
  { key: "e", command: "edit", text: "edit the proposal" },
  { key: "c", command: "comment", text: "comment on the line" },
  { key: "m", command: "message", text: "approve with a message" },
  { key: "A", command: "rule", text: "approve and add a rule" },
  { key: "d", command: "dryRun", text: "dry run of a command" },
  { key: "]", command: "nextHunk", text: "next hunk" },
  { key: "[", command: "previousHunk", text: "previous hunk" },
  { key: "}", command: "nextFile", text: "next file" },
  { key: "{", command: "previousFile", text: "previous file" },
  { key: "j", command: "lineDown", text: "next line" },
  { key: "k", command: "lineUp", text: "previous line" },
  { key: "ArrowDown", command: "lineDown", text: "next line" },
  { key: "ArrowUp", command: "lineUp", text: "previous line" },
  { key: "PageDown", command: "pageDown", text: "next page" },
  { key: "PageUp", command: "pageUp", text: "previous page" },
  { key: "g", command: "top", text: "first line" },
  { key: "G", command: "bottom", text: "last line" },
  { key: "v", command: "fullDiff", text: "full diff" },
  { key: "/", command: "search", text: "search" },
  { key: "N", command: "nextMatch", text: "next match" },
  { key: "?", command: "help", text: "keys that work here" },
  { key: "q", command: "leave", text: "leave the view" },
  { key: "Escape", command: "cancel", text: "go back" },
  { key: "Enter", command: "acknowledge", text: "go on after a refreshed preview" },
];

/** Keys of the full diff. It decides nothing: `y` and `n` are answered with a hint. */
export const FULL_DIFF_KEYS: readonly KeyEntry[] = PANEL_KEYS.filter((entry) =>
  /^(next|previous|line|page|top|bottom|fullDiff|search|help|leave|cancel)/.test(entry.command),
).map((entry) => (entry.command === "fullDiff" ? { ...entry, text: "unified or side by side" } : entry));

const BY_KEY = new Map(PANEL_KEYS.map((entry) => [entry.key, entry.command]));

/** Command of a key, without regard to state. */
export function commandOf(key: string): Command | undefined {
  return BY_KEY.get(key);
}

/** Commands that send a verdict, or open the line that does. */
export function isDecision(command: Command): boolean {
  return command === "approve" || command === "deny" || command === "message" || command === "rule";
}

/** Name of a key in a key cap. */
export function keyName(key: string): string {
  const names: Record<string, string> = {
    " ": "space",
    ArrowDown: "↓",
    ArrowUp: "↑",
    PageDown: "PgDn",
    PageUp: "PgUp",
    Escape: "Esc",
    Enter: "↵",
  };
  return Object.hasOwn(names, key) ? (names[key] as string) : key;
}

/** Value of `aria-keyshortcuts` for a command. */
export function shortcutOf(command: Command): string {
  const entry = PANEL_KEYS.find((candidate) => candidate.command === command);
  if (!entry) return "";
  if (entry.key === " ") return "Space";
  return /^[A-Z]$/.test(entry.key) ? `Shift+${entry.key}` : entry.key;
}

/** Part of a keyboard event that the panel reads. */
export interface KeyPress {
  key: string;
  ctrlKey: boolean;
  altKey: boolean;
  metaKey: boolean;
  repeat: boolean;
  isComposing: boolean;
}

/** Reads a key press. A held key repeats moves only, so that it never decides. */
export function readKey(press: KeyPress): Command | undefined {
  if (press.ctrlKey || press.altKey || press.metaKey || press.isComposing) return undefined;
  const command = commandOf(press.key);
  if (command === undefined || !press.repeat) return command;
  const isMove = /^(next|previous|line|page)/.test(command);
  return isMove ? command : undefined;
}
