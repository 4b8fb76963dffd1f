import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";

import type { TimelineEntry } from "@sayso/client";
import { ConversationBlock_Kind, ConversationBlockSchema } from "@sayso/client/proto/conversation_service";

import { type StreamSources, streamItems } from "../src/stream/items.js";

const { PROMPT, THINKING, ASSISTANT_TEXT, TOOL_CALL, TOOL_RESULT } = ConversationBlock_Kind;

let number = 0n;
const block = (kind: ConversationBlock_Kind, timeMs: bigint, call?: string, change?: bigint) =>
  create(ConversationBlockSchema, {
    number: ++number,
    kind,
    timeMs,
    text: "text",
    ...(call !== undefined && { call }),
    ...(change !== undefined && { change }),
  });

const change = (id: bigint, timeMs: bigint): TimelineEntry => ({
  key: `change:${id}`,
  timeMs,
  kind: "change",
  change: id,
});
const request = (id: bigint, timeMs: bigint): TimelineEntry => ({
  key: `request:${id}`,
  timeMs,
  kind: "request",
  request: id,
});

function kinds(sources: Partial<StreamSources>): string[] {
  const whole = { blocks: [], entries: [], live: [], callOf: () => undefined, hideThinking: false, ...sources };
  return streamItems(whole).map((item) => item.kind);
}

test("blocks_and_requests_are_in_order_of_time", () => {
  const blocks = [block(PROMPT, 1n), block(THINKING, 2n), block(ASSISTANT_TEXT, 2n)];
  expect(kinds({ blocks, entries: [request(1n, 1n)] })).toEqual(["prompt", "request", "thinking", "text"]);
});

test("change_of_tool_call_is_shown_once", () => {
  const blocks = [block(TOOL_CALL, 1n, "c1", 7n)];
  const items = streamItems({
    blocks,
    entries: [change(7n, 2n)],
    live: [],
    callOf: () => undefined,
    hideThinking: false,
  });
  expect(items).toHaveLength(1);
  expect(items[0]).toMatchObject({ kind: "tool", tool: { change: 7n } });
});

test("change_proposed_after_block_is_found_by_call", () => {
  const blocks = [block(TOOL_CALL, 1n, "c1")];
  expect(kinds({ blocks, entries: [change(7n, 2n)], callOf: () => "c1" })).toEqual(["tool"]);
});

test("change_before_its_block_stands_alone", () => {
  expect(kinds({ entries: [change(7n, 2n)], callOf: () => "c1" })).toEqual(["change"]);
});

test("result_joins_its_call", () => {
  const result = block(TOOL_RESULT, 3n, "c1");
  const items = streamItems({
    blocks: [block(TOOL_CALL, 1n, "c1"), result],
    entries: [],
    live: [],
    callOf: () => undefined,
    hideThinking: false,
  });
  expect(items).toHaveLength(1);
  expect(items[0]).toMatchObject({ tool: { result } });
});

test("hidden_thinking_is_left_out", () => {
  expect(kinds({ blocks: [block(PROMPT, 1n), block(THINKING, 2n)], hideThinking: true })).toEqual(["prompt"]);
});

test("turn_end_has_start_of_its_turn", () => {
  const entries: TimelineEntry[] = [
    { key: "a", timeMs: 10n, kind: "turn-started", turn: "t" },
    { key: "b", timeMs: 25n, kind: "turn-ended", turn: "t" },
  ];
  const items = streamItems({ blocks: [], entries, live: [], callOf: () => undefined, hideThinking: false });
  expect(items).toMatchObject([{ kind: "turn-end", startedMs: 10n, isLast: true }]);
});

test("live_tool_gives_way_to_its_block", () => {
  const part = {
    kind: "tool" as const,
    key: "l",
    call: "c1",
    tool: "Read",
    argumentsJson: "{}",
    summary: "",
    output: "",
    result: null,
  };
  expect(kinds({ live: [part] })).toEqual(["live"]);
  expect(kinds({ live: [part], blocks: [block(TOOL_CALL, 1n, "c1")] })).toEqual(["tool"]);
});
