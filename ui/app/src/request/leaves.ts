/** The tree of keys and values of a JSON body. Only leaves are editable; one leaf, one edit. */

/** A number with the digits that the body has, which a double would change. */
export class ExactNumber {
  constructor(readonly source: string) {}
}

export type Json = null | boolean | number | string | ExactNumber | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** Parses JSON. Keeps numbers that a double does not hold exactly, where the browser gives their source. */
export function parseJson(text: string): Json {
  const revive = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && context?.source !== undefined && context.source !== String(value)
      ? new ExactNumber(context.source)
      : value;
  return JSON.parse(text, revive) as Json;
}

export type PathStep = string | number;

/** Splits a path such as `messages[3].content[1].text`, or one with quoted keys such as `metadata["a.b"]`. */
export function parsePath(path: string): PathStep[] | null {
  const steps: PathStep[] = [];
  let rest = path;
  while (rest !== "") {
    const match = /^(?:\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.[\]<]+))/.exec(rest);
    if (!match) return null;
    if (match[1] !== undefined) steps.push(Number(match[1]));
    else if (match[2] !== undefined) steps.push(JSON.parse(match[2]) as string);
    else steps.push(match[3] ?? "");
    rest = rest.slice(match[0].length);
  }
  return steps;
}

export function formatPath(steps: readonly PathStep[]): string {
  return steps.reduce<string>((path, step) => {
    if (typeof step === "number") return `${path}[${step}]`;
    if (!/^[A-Za-z_$][\w$-]*$/.test(step)) return `${path}[${JSON.stringify(step)}]`;
    return path === "" ? step : `${path}.${step}`;
  }, "");
}

/** The value at a path; `undefined` if there is none. */
export function valueAt(root: Json, steps: readonly PathStep[]): Json | undefined {
  let value: Json | undefined = root;
  for (const step of steps) {
    if (value === null || typeof value !== "object" || value instanceof ExactNumber) return undefined;
    if (Array.isArray(value)) value = typeof step === "number" ? value[step] : undefined;
    else value = Object.hasOwn(value, String(step)) ? value[String(step)] : undefined;
    if (value === undefined) return undefined;
  }
  return value;
}

export interface LeafRow {
  path: string;
  /** Key or index. */
  label: string;
  depth: number;
  /** A group opens and closes; a leaf is edited in place. */
  kind: "group" | "leaf";
  isOpen: boolean;
  /** Display text of a leaf; summary of a group. */
  text: string;
  /** JSON type of a leaf. */
  type: "string" | "number" | "boolean" | "null" | "group";
}

/** Groups deeper than this open closed. */
const OPEN_DEPTH = 2;

/** Rows of the tree beneath a path. `toggled` holds the paths of groups that differ from their initial state. */
export function leafRows(value: Json, path: string, toggled: ReadonlySet<string>): LeafRow[] {
  const rows: LeafRow[] = [];
  walk(value, parsePath(path) ?? [], 0, toggled, rows);
  return rows;
}

function walk(value: Json, steps: PathStep[], depth: number, toggled: ReadonlySet<string>, rows: LeafRow[]): void {
  if (!isGroup(value)) {
    rows.push({ ...leaf(value), path: formatPath(steps), label: "value", depth, kind: "leaf", isOpen: false });
    return;
  }
  const entries: [PathStep, Json][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : Object.entries(value);
  for (const [step, child] of entries) {
    const at = [...steps, step];
    const path = formatPath(at);
    if (!isGroup(child)) {
      rows.push({ ...leaf(child), path, label: String(step), depth, kind: "leaf", isOpen: false });
      continue;
    }
    const isOpen = depth < OPEN_DEPTH !== toggled.has(path);
    const label = String(step);
    rows.push({ path, label, depth, kind: "group", isOpen, text: groupSummary(child), type: "group" });
    if (isOpen) walk(child, at, depth + 1, toggled, rows);
  }
}

type Group = Json[] | JsonObject;

const isGroup = (value: Json): value is Group =>
  value !== null && typeof value === "object" && !(value instanceof ExactNumber);

function leaf(value: Exclude<Json, Group>): Pick<LeafRow, "text" | "type"> {
  if (value instanceof ExactNumber) return { text: value.source, type: "number" };
  if (value === null) return { text: "null", type: "null" };
  if (typeof value === "string") return { text: value, type: "string" };
  return { text: String(value), type: typeof value === "number" ? "number" : "boolean" };
}

/** Summary of a closed group: its type or name, or the number of its members. */
export function groupSummary(value: Group): string {
  if (Array.isArray(value)) return value.length === 1 ? "1 item" : `${value.length} items`;
  for (const key of ["type", "name", "role"]) {
    const named = value[key];
    if (typeof named === "string" && named !== "") return named;
  }
  const keys = Object.keys(value).length;
  return keys === 1 ? "1 key" : `${keys} keys`;
}

export type LeafEdit =
  | { kind: "unchanged" }
  | { kind: "invalid"; message: string }
  | { kind: "set"; value: string }
  | { kind: "setJson"; value: string };

/** Reads the text of an edited leaf. A string stays a string; other leaves take JSON. */
export function readLeaf(row: Pick<LeafRow, "type" | "text">, text: string): LeafEdit {
  if (text === row.text) return { kind: "unchanged" };
  if (row.type === "string") return { kind: "set", value: text };
  try {
    JSON.parse(text);
  } catch {
    return {
      kind: "invalid",
      message: `“${text}” is not JSON. Write text in quotes, or a number, true, false or null.`,
    };
  }
  return { kind: "setJson", value: text.trim() };
}
