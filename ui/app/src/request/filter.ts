import { RequestStatus, type RequestSummary } from "@sayso/client/proto/request";

import { statusWord } from "./words.js";

/** A term of a filter. All terms must match. */
export interface Term {
  key: FilterKey | "text";
  value: string;
  not: boolean;
}

export const FILTER_KEYS = ["agent", "session", "model", "status", "size", "is", "request"] as const;
export type FilterKey = (typeof FILTER_KEYS)[number];

export type ParsedFilter = { terms: Term[]; problem: null } | { terms: []; problem: string };

/** Parses an expression such as `model:sonnet is:edited size>50k -agent:codex "rate limit"`. */
export function parseFilter(text: string): ParsedFilter {
  const terms: Term[] = [];
  for (const [word] of text.matchAll(/-?(?:[a-z]+[:<>])?"[^"]*"|\S+/g)) {
    const not = word.startsWith("-") && word.length > 1;
    const body = not ? word.slice(1) : word;
    const match = /^([a-z]+)([:<>])(.*)$/.exec(body);
    if (!match || !isKey(match[1])) {
      if (match) return { terms: [], problem: `“${match[1] ?? ""}” is no key. Keys: ${FILTER_KEYS.join(", ")}.` };
      terms.push({ key: "text", value: unquote(body), not });
      continue;
    }
    const [, key, operator = ":", raw = ""] = match;
    const value = operator === ":" ? unquote(raw) : operator + raw;
    if (key === "size" && parseSize(value) === null) {
      return { terms: [], problem: `size takes a bound such as size>50k or size<2M, not “${value}”.` };
    }
    if (key === "is" && !(value in STATES)) {
      return { terms: [], problem: `is takes ${Object.keys(STATES).join(", ")}, not “${value}”.` };
    }
    terms.push({ key, value, not });
  }
  return { terms, problem: null };
}

const isKey = (key: string | undefined): key is FilterKey =>
  (FILTER_KEYS as readonly (string | undefined)[]).includes(key);
const unquote = (text: string): string => text.replace(/^"|"$/g, "");

function parseSize(text: string): { above: boolean; bytes: number } | null {
  const match = /^([<>])(\d+(?:\.\d+)?)([kM]?)B?$/.exec(text);
  if (!match) return null;
  const unit = match[3] === "k" ? 1_000 : match[3] === "M" ? 1_000_000 : 1;
  return { above: match[1] === ">", bytes: Number(match[2]) * unit };
}

const STATES: Record<string, (request: RequestSummary) => boolean> = {
  edited: (request) => request.edited || request.revision > 0n,
  paused: (request) => request.held,
  failed: (request) => (request.answer?.status ?? 200) >= 400 || request.status === RequestStatus.ENDED,
  retrying: (request) => request.status === RequestStatus.SENT && request.upstreamRetry !== undefined,
  subagent: (request) => request.received?.subagent !== undefined,
  replay: (request) => request.received?.replayOf !== undefined,
  overridden: (request) => (request.overrides?.applied.length ?? 0) > 0,
};

/** `true` if a request matches all terms. Text terms search the facts of the request, not its body. */
export function matchesFilter(request: RequestSummary, terms: readonly Term[]): boolean {
  return terms.every((term) => matchesTerm(request, term) !== term.not);
}

function matchesTerm(request: RequestSummary, { key, value }: Term): boolean {
  const { received } = request;
  const has = (text: string | undefined): boolean => (text ?? "").toLowerCase().includes(value.toLowerCase());
  switch (key) {
    case "agent":
      return has(received?.origin?.agent);
    case "session":
      return has(received?.origin?.session);
    case "model":
      return has(received?.model);
    case "status":
      return has(statusWord(request)) || String(request.answer?.status ?? "").startsWith(value);
    case "request":
      return String(request.request) === value;
    case "size": {
      const bound = parseSize(value);
      const size = Number(request.sent?.size ?? received?.body?.size ?? 0n);
      return bound !== null && (bound.above ? size > bound.bytes : size < bound.bytes);
    }
    case "is":
      return STATES[value]?.(request) ?? false;
    case "text":
      return [
        request.conversation,
        received?.path,
        received?.model,
        statusWord(request),
        request.answer?.error,
        request.ended?.message,
      ].some(has);
  }
}
