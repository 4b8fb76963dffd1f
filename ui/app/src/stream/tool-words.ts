import type { IconName } from "../icon.js";

/** Words for a tool call in one row. */
export interface ToolWords {
  icon: IconName;
  verb: string;
  /** A path, shown with its folder shrunk. */
  path: string | null;
  /** Other target, such as a pattern or a command. */
  target: string | null;
  /** Such as `lines 1–148`. */
  detail: string | null;
}

type Arguments = Record<string, unknown>;

/** Arguments of a call. Empty if they are no JSON object, such as those that are shortened. */
export function parseArguments(json: string): Arguments {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Arguments) : {};
  } catch {
    return {};
  }
}

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const lineNumber = (value: unknown): number | null => (typeof value === "number" && value > 0 ? value : null);

const pathOf = (values: Arguments): string | null =>
  text(values.file_path) ?? text(values.path) ?? text(values.filePath) ?? text(values.notebook_path);

/** Describes a call of a known tool, of any agent, or of an unknown one by its name. */
export function toolWords(tool: string, json: string): ToolWords {
  const values = parseArguments(json);
  const path = pathOf(values);
  const words = (icon: IconName, verb: string, rest: Partial<ToolWords> = {}): ToolWords => ({
    icon,
    verb,
    path,
    target: null,
    detail: null,
    ...rest,
  });
  switch (tool.toLowerCase().replace(/[^a-z]/g, "")) {
    case "read":
    case "readfile":
    case "view":
      return words("file", "Read", { detail: readLines(values) });
    case "write":
    case "writefile":
    case "create":
      return words("edit", "Write");
    case "edit":
    case "multiedit":
    case "strreplace":
    case "replace":
    case "applypatch":
    case "notebookedit":
      return words("edit", "Edit");
    case "bash":
    case "shell":
    case "exec":
    case "execcommand":
    case "runshellcommand":
    case "runcommand":
      return words("command", "Run", { path: null, target: commandText(values) });
    case "grep":
    case "search":
    case "searchfilecontent":
      return words("search", "Search", { target: text(values.pattern) ?? text(values.query) });
    case "glob":
    case "find":
      return words("search", "Find", { target: text(values.pattern) });
    case "list":
    case "ls":
    case "listdirectory":
      return words("file", "List");
    case "fetch":
    case "webfetch":
      return words("request", "Fetch", { target: text(values.url) });
    case "task":
    case "agent":
    case "delegate":
      return words("subagents", "Delegate", { target: text(values.description) ?? text(values.prompt) });
    case "todowrite":
    case "todoread":
    case "updateplan":
      return words("todos", "Todos");
    case "ask":
    case "askuserquestion":
      return words("chat", "Ask", { target: text(values.question) });
    case "proposechanges":
      return words("diff", "Propose changes");
    default:
      return words("tool", tool === "" ? "Tool" : tool, { target: firstText(values) });
  }
}

function readLines(values: Arguments): string | null {
  const [offset, limit] = [lineNumber(values.offset), lineNumber(values.limit)];
  if (limit !== null) return `lines ${offset ?? 1}–${(offset ?? 1) + limit - 1}`;
  return offset === null ? null : `from line ${offset}`;
}

function commandText(values: Arguments): string | null {
  const { command } = values;
  if (Array.isArray(command)) return command.filter((word) => typeof word === "string").join(" ");
  return text(command) ?? text(values.cmd);
}

function firstText(values: Arguments): string | null {
  for (const value of Object.values(values)) {
    const found = text(value);
    if (found !== null) return found;
  }
  return null;
}
