import { ConversationBlock_Kind, type ConversationBlock } from "@sayso/client/proto/conversation_service";
import type { LivePart, Notice, TimelineEntry } from "@sayso/client";

/** A tool call of the conversation with its result and the change that it became. */
export interface ToolCall {
  block: ConversationBlock;
  result: ConversationBlock | null;
  change: bigint | null;
}

/** An article of the stream. */
export type StreamItem = { key: string; timeMs: bigint } & (
  | { kind: "prompt" | "context" | "thinking" | "text" | "attachment" | "compaction"; block: ConversationBlock }
  | { kind: "tool"; tool: ToolCall }
  | { kind: "change"; change: bigint }
  | { kind: "request"; request: bigint }
  | { kind: "turn-end"; turn: string; startedMs: bigint | null; isLast: boolean }
  | { kind: "notice"; notice: Notice }
  | { kind: "live"; part: LivePart }
);

export interface StreamSources {
  blocks: readonly ConversationBlock[];
  entries: readonly TimelineEntry[];
  live: readonly LivePart[];
  /** Tool call id of a change. */
  callOf: (change: bigint) => string | undefined;
  /** Hides thinking and the texts that the agent adds to prompts. */
  hideThinking: boolean;
}

const KINDS: Partial<Record<ConversationBlock_Kind, "prompt" | "context" | "thinking" | "text" | "attachment">> = {
  [ConversationBlock_Kind.PROMPT]: "prompt",
  [ConversationBlock_Kind.CONTEXT]: "context",
  [ConversationBlock_Kind.ASSISTANT_TEXT]: "text",
  [ConversationBlock_Kind.THINKING]: "thinking",
  [ConversationBlock_Kind.ATTACHMENT]: "attachment",
};

/** At one time: the end of a turn, then the prompt, then the request with it, then the response. */
const RANKS: Record<StreamItem["kind"], number> = {
  "turn-end": 0,
  prompt: 1,
  attachment: 1,
  context: 2,
  request: 3,
  compaction: 4,
  thinking: 5,
  text: 5,
  tool: 5,
  change: 6,
  notice: 7,
  live: 8,
};

/** Merges the conversation of a session with its changes, requests and turns, in the order of time. */
export function streamItems(sources: StreamSources): StreamItem[] {
  const { blocks, entries, live, callOf, hideThinking } = sources;
  const changesByCall = new Map<string, bigint>();
  for (const entry of entries) {
    const call = entry.kind === "change" ? callOf(entry.change) : undefined;
    if (entry.kind === "change" && call !== undefined) changesByCall.set(call, entry.change);
  }
  const results = new Map<string, ConversationBlock>();
  for (const block of blocks) {
    if (block.kind === ConversationBlock_Kind.TOOL_RESULT && block.call !== undefined) results.set(block.call, block);
  }
  const shownChanges = new Set<bigint>();
  const calls = new Set<string>();
  const items: StreamItem[] = [];
  for (const block of blocks) {
    const base = { key: `block:${block.number}`, timeMs: block.timeMs };
    if (block.kind === ConversationBlock_Kind.TOOL_CALL) {
      const change = block.change ?? (block.call === undefined ? undefined : changesByCall.get(block.call)) ?? null;
      if (change !== null) shownChanges.add(change);
      if (block.call !== undefined) calls.add(block.call);
      const result = (block.call === undefined ? undefined : results.get(block.call)) ?? null;
      items.push({ ...base, kind: "tool", tool: { block, result, change } });
      continue;
    }
    if (block.kind === ConversationBlock_Kind.COMPACTION) items.push({ ...base, kind: "compaction", block });
    const kind = KINDS[block.kind];
    if (kind === undefined || block.text === "") continue;
    if (hideThinking && (kind === "thinking" || kind === "context")) continue;
    items.push({ ...base, kind, block });
  }
  pushEntries(items, entries, shownChanges);
  // Stable: blocks keep their order within one time.
  items.sort((a, b) => compare(a.timeMs, b.timeMs) || RANKS[a.kind] - RANKS[b.kind]);
  const end = items.at(-1)?.timeMs ?? 0n;
  for (const part of live) {
    if (part.kind === "thinking" && hideThinking) continue;
    if (part.kind === "tool" && calls.has(part.call)) continue;
    items.push({ key: part.key, timeMs: end, kind: "live", part });
  }
  return items;
}

function pushEntries(items: StreamItem[], entries: readonly TimelineEntry[], shown: ReadonlySet<bigint>): void {
  const starts = new Map<string, bigint>();
  const lastEnd = entries.findLast((entry) => entry.kind === "turn-ended");
  for (const entry of entries) {
    const base = { key: entry.key, timeMs: entry.timeMs };
    switch (entry.kind) {
      case "change":
        if (!shown.has(entry.change)) items.push({ ...base, kind: "change", change: entry.change });
        break;
      case "request":
        items.push({ ...base, kind: "request", request: entry.request });
        break;
      case "turn-started":
        starts.set(entry.turn, entry.timeMs);
        break;
      case "turn-ended":
        items.push({
          ...base,
          kind: "turn-end",
          turn: entry.turn,
          startedMs: starts.get(entry.turn) ?? null,
          isLast: entry === lastEnd,
        });
        break;
      case "notice":
        items.push({ ...base, kind: "notice", notice: entry.notice });
        break;
    }
  }
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
