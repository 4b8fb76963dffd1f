import {
  CacheMiss_Cause,
  OverrideScope,
  PauseReason_Kind,
  RequestStatus,
  Section_ContentKind,
  Section_Kind,
  Section_NodeType,
  type PauseReason,
  type RequestSummary,
  type Section,
  type Tokens,
} from "@sayso/client/proto/request";

import { count, escapeUntrusted, formatDuration, formatNumber } from "../diff/words.js";

/** Number of tokens. Estimates begin with `≈`. */
export function tokenNumber(tokens: Tokens | undefined): string {
  if (!tokens) return "0";
  return `${tokens.exact || tokens.count === 0n ? "" : "≈"}${formatNumber(Number(tokens.count))}`;
}

export function tokenWords(tokens: Tokens | undefined): string {
  return `${tokenNumber(tokens)} token${tokens?.count === 1n ? "" : "s"}`;
}

/** `8 %`; one decimal place below 10 % where `precise`. */
export function percent(share: number, places = 0): string {
  if (share > 0 && share < 0.005 && places === 0) return "<1 %";
  return `${(share * 100).toFixed(places)} %`;
}

const KINDS: Record<Section_Kind, string> = {
  [Section_Kind.UNSPECIFIED]: "other",
  [Section_Kind.SYSTEM]: "system",
  [Section_Kind.USER]: "user",
  [Section_Kind.ASSISTANT]: "assistant",
  [Section_Kind.CONTEXT]: "context",
  [Section_Kind.TOOL]: "tool",
  [Section_Kind.HISTORY]: "history",
  [Section_Kind.PREDICTION]: "prediction",
  [Section_Kind.OTHER]: "other",
};

/** Word of the kind badge. */
export function kindWord(section: Section): string {
  switch (section.node) {
    case Section_NodeType.TOOL_SCHEMA:
      return "tool schema";
    case Section_NodeType.TOOL_CALL:
      return "tool call";
    case Section_NodeType.REQUEST_OPTION:
      return "option";
    case Section_NodeType.REMOTE:
      return "on server";
    case Section_NodeType.RAW:
      return "raw";
    case Section_NodeType.METADATA:
      return "metadata";
    default:
      return section.kind === Section_Kind.TOOL ? "tool result" : KINDS[section.kind];
  }
}

/** Class name for the style of a kind. */
export function kindClass(section: Section): string {
  return `kind-${KINDS[section.kind]}`;
}

const FILE_HINTS = [
  /^\s*(?:<[^>\n]+>\s*)?Contents of (\S+?)[:\s(]/m,
  /<(?:file|document|attachment)[^>\n]*?(?:path|name|id|filePath)="([^"\n]+)"/,
  /^\s*(?:\/\/|#|<!--) ?file ?path: (\S+)/im,
  /\b([\w.-]*(?:AGENTS|CLAUDE|GEMINI|README|copilot-instructions)\.md)\b/,
];
const HINT_SEARCH_LENGTH = 2_000;

/** `Context: FILE`, where the text names a file; otherwise `Context: <tag>` or `Context`. */
export function contextLabel(section: Section): string {
  const head = section.content.slice(0, HINT_SEARCH_LENGTH);
  for (const hint of FILE_HINTS) {
    const path = hint.exec(head)?.[1];
    if (path !== undefined) return `Context: ${path.split("/").at(-1) ?? path}`;
  }
  const tag = /^\s*<([\w-]+)/.exec(head)?.[1];
  return tag === undefined ? "Context" : `Context: <${tag}>`;
}

const TITLE_LENGTH = 140;

/** First line of a text, for a title. Empty if there is none. */
export function firstLine(text: string): string {
  for (const line of text.split("\n", 40)) {
    const trimmed = line.replace(/^[#>\s*-]+/, "").trim();
    if (trimmed !== "" && !/^<\/?[\w-]+>$/.test(trimmed)) return escapeUntrusted(trimmed.slice(0, TITLE_LENGTH));
  }
  return "";
}

/** Title of a card: the label, or the beginning of the text of its first part. */
export function cardTitle(section: Section, children: readonly Section[]): string {
  if (section.node !== Section_NodeType.MESSAGE) return partTitle(section);
  if (children.length === 0 || section.kind === Section_Kind.SYSTEM) {
    const line = firstLine(section.content);
    if (section.contentKind === Section_ContentKind.TEXT && line !== "") return line;
    return escapeUntrusted(section.label);
  }
  const parts = children.filter((child) => child.node === Section_NodeType.CONTENT_PART);
  const text = parts.find(
    (child) =>
      child.contentKind === Section_ContentKind.TEXT &&
      child.kind !== Section_Kind.CONTEXT &&
      child.kind !== Section_Kind.TOOL,
  );
  const line = text ? firstLine(text.content) : "";
  if (line !== "") return line;
  const results = parts.filter((child) => child.kind === Section_Kind.TOOL);
  const calls = children.filter((child) => child.node === Section_NodeType.TOOL_CALL);
  const named = [...results, ...calls].map((child) => child.tool?.name ?? "");
  if (named.length > 0) {
    const first = results[0] ?? calls[0];
    const detail = results[0] ? firstLine(results[0].content) : firstLine(argumentHint(calls[0]));
    const more = named.length > 1 ? `, and ${named.length - 1} more` : "";
    return [escapeUntrusted(first?.tool?.name ?? first?.label ?? ""), detail].filter(Boolean).join(" · ") + more;
  }
  const context = parts.find((child) => child.kind === Section_Kind.CONTEXT);
  return escapeUntrusted(context ? contextLabel(context) : section.label);
}

function argumentHint(call: Section | undefined): string {
  const text = call?.tool?.arguments ?? "";
  const match = /"(?:file_path|path|command|pattern|query|url|description)"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text);
  return match?.[1] ?? "";
}

/** Title of a nested box. */
export function partTitle(section: Section): string {
  if (section.kind === Section_Kind.CONTEXT && section.node !== Section_NodeType.TAG) {
    return escapeUntrusted(contextLabel(section));
  }
  return escapeUntrusted(section.label);
}

export function scopeWord(scope: OverrideScope): string {
  switch (scope) {
    case OverrideScope.GLOBAL:
      return "Global";
    case OverrideScope.WORKSPACE:
      return "Workspace";
    default:
      return "Session";
  }
}

/** The cause of a pause, for the banner. */
export function pauseWords(reason: PauseReason | undefined): string {
  switch (reason?.kind) {
    case PauseReason_Kind.EVERY_TURN:
      return "paused by Pause & review every turn";
    case PauseReason_Kind.NEXT_TURN:
      return "paused by Pause next turn";
    case PauseReason_Kind.CAPTURE:
      return "paused to capture edits";
    case PauseReason_Kind.RULE:
      return `paused by the rule ${escapeUntrusted(reason.rule ?? "")}`;
    case PauseReason_Kind.RETRY:
      return "paused again after a retry of the agent";
    default:
      return "paused";
  }
}

/** Time until the agent gives up. Empty if unknown. */
export function deadlineWords(deadlineMs: bigint | undefined, now: number): string {
  if (deadlineMs === undefined) return "";
  const left = Number(deadlineMs) - now;
  if (left <= 0) return "the agent may have given up";
  const minutes = Math.floor(left / 60_000);
  const seconds = Math.floor((left % 60_000) / 1000);
  if (minutes === 0) return `agent waits ${seconds} s more`;
  if (minutes < 60) return `agent waits ${minutes} min ${seconds} s more`;
  return `agent waits ${formatDuration(left)} more`;
}

/** State of a request in one or two words. */
export function statusWord(request: RequestSummary): string {
  switch (request.status) {
    case RequestStatus.PAUSED:
      return request.held ? "paused" : "orphaned";
    case RequestStatus.SENT:
      return request.upstreamRetry ? "retrying" : "in flight";
    case RequestStatus.ANSWERED:
      return (request.answer?.status ?? 200) >= 400 ? `failed, ${request.answer?.status ?? ""}` : "sent";
    case RequestStatus.ENDED:
      return "not sent";
    default:
      return "received";
  }
}

/** Shortens an id in the middle: `req_7b21…e04`. */
export function shortId(id: string): string {
  return id.length <= 18 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
}

export const CAUSE_WORDS: Record<CacheMiss_Cause, string> = {
  [CacheMiss_Cause.UNSPECIFIED]: "cache broken",
  [CacheMiss_Cause.MODEL_CHANGED]: "model changed",
  [CacheMiss_Cause.TOOLS_CHANGED]: "tools changed",
  [CacheMiss_Cause.COMPACTION]: "compacted",
  [CacheMiss_Cause.EDITED]: "edited",
  [CacheMiss_Cause.UNSTABLE_PREFIX]: "prefix changed",
  [CacheMiss_Cause.EXPIRED]: "expired",
  [CacheMiss_Cause.UNEXPLAINED]: "unexplained",
};

export function editCount(edits: number): string {
  return edits === 0 ? "No edits" : count(edits, "edit");
}
