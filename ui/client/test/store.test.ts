import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";

import { InvokeEventSchema, TodoSchema } from "../src/generated/sayso/v1/agent_service_pb.js";
import { Change_Status, ChangeSchema } from "../src/generated/sayso/v1/change_pb.js";
import { ConversationBlock_Kind, ConversationBlockSchema } from "../src/generated/sayso/v1/conversation_service_pb.js";
import { Outcome_Kind } from "../src/generated/sayso/v1/event_pb.js";
import { InboxItemSchema } from "../src/generated/sayso/v1/inbox_pb.js";
import type { Store } from "../src/index.js";
import { MAX_ENTRIES } from "../src/store/timeline.js";
import { applying, decided, ended, proposed, received, sessionStarted, undone } from "./support/events.js";
import { FakeEngine, ManualClock, settle } from "./support/fake-engine.js";

type Kind = NonNullable<MessageInitShape<typeof InvokeEventSchema>["event"]>;

const running: Store[] = [];
afterEach(() => {
  for (const store of running.splice(0)) store.stop();
});

async function connect(engine = new FakeEngine()) {
  const clock = new ManualClock();
  const store = engine.store(clock);
  running.push(store);
  store.start();
  await clock.advance(100);
  return { engine, clock, store };
}

test("events_before_connection_are_folded", async () => {
  const engine = new FakeEngine();
  engine.append(sessionStarted("s1"), proposed(1n), decided(1n), applying(1n), ended(1n));
  const { store } = await connect(engine);
  expect(store.connection.value.state).toBe("live");
  expect(store.change(1n).value?.status).toBe(Change_Status.APPLIED);
  expect(store.sessions.all.value.get("s1")?.agent).toBe("claude");
  expect(store.timeline("s1").entries.value.map((entry) => entry.key)).toEqual(["change:1"]);
});

test("cut_stream_resumes_after_last_event", async () => {
  const { engine, clock, store } = await connect();
  engine.append(proposed(1n));
  await settle();
  engine.cut();
  await settle();
  expect(store.connection.value).toMatchObject({ state: "reconnecting", attempt: 1 });
  expect(store.canDecide.value).toBe(false);
  engine.append(decided(1n), applying(1n), ended(1n));
  await clock.advance(600);
  expect(engine.watchedAfter).toEqual([0n, 1n]);
  expect(store.connection.value.state).toBe("live");
  expect(store.change(1n).value?.status).toBe(Change_Status.APPLIED);
  expect(store.lastEvent.value).toBe(4n);
});

test("stream_cut_many_times_loses_and_repeats_nothing", async () => {
  const { engine, clock, store } = await connect();
  for (let number = 1n; number <= 60n; number += 1n) {
    engine.append(proposed(number));
    if (number % 7n === 0n) {
      engine.cut();
      await clock.advance(700);
    }
  }
  await clock.advance(700);
  const keys = store.timeline("s1").entries.value.map((entry) => entry.key);
  expect(keys).toEqual(Array.from({ length: 60 }, (_, index) => `change:${index + 1}`));
});

test("gap_in_stream_reconnects_at_gap", async () => {
  const { engine, clock, store } = await connect();
  engine.lost.add(2n);
  engine.append(proposed(1n), proposed(2n), proposed(3n));
  await clock.advance(700);
  expect(engine.watchedAfter).toEqual([0n, 1n]);
  expect(store.lastEvent.value).toBe(3n);
  expect(store.change(2n).value?.status).toBe(Change_Status.PENDING);
});

test("silent_stream_is_replaced", async () => {
  const { engine, clock, store } = await connect();
  await clock.advance(35_001);
  expect(store.connection.value.state).toBe("reconnecting");
  await clock.advance(600);
  expect(engine.watchedAfter).toHaveLength(2);
  expect(store.connection.value.state).toBe("live");
});

test("unreachable_engine_is_retried_with_backoff", async () => {
  const { engine, clock, store } = await connect();
  engine.failure = new ConnectError("connection refused", Code.Unavailable);
  engine.cut();
  await clock.advance(500 + 1_000 + 10);
  expect(store.connection.value).toMatchObject({ state: "reconnecting", attempt: 3, problem: "connection refused" });
  engine.failure = null;
  store.retryNow();
  await clock.advance(50);
  expect(store.connection.value.state).toBe("live");
});

test("unknown_login_stops_attempts_until_retry", async () => {
  const engine = new FakeEngine();
  engine.failure = new ConnectError("no login", Code.Unauthenticated);
  const { clock, store } = await connect(engine);
  expect(store.connection.value.state).toBe("login-expired");
  await clock.advance(60_000);
  expect(engine.calls).toEqual(["status"]);
  engine.failure = null;
  store.retryNow();
  await clock.advance(50);
  expect(store.connection.value.state).toBe("live");
});

test("rejected_decision_makes_store_read_only", async () => {
  const engine = new FakeEngine();
  engine.rejectsDecisions = true;
  const { store } = await connect(engine);
  expect(store.connection.value.state).toBe("live");
  expect(store.readOnly.value).toBe(true);
  expect(store.canDecide.value).toBe(false);
});

test("offline_device_reconnects_when_online", async () => {
  const { engine, clock, store } = await connect();
  store.setOnline(false);
  engine.cut();
  await settle();
  expect(store.connection.value.state).toBe("offline");
  store.setOnline(true);
  await clock.advance(50);
  expect(store.connection.value.state).toBe("live");
});

test("restarted_engine_keeps_state_and_is_reported", async () => {
  const { engine, clock, store } = await connect();
  engine.append(proposed(1n));
  await settle();
  engine.startedMs = 2n;
  engine.process = 2;
  engine.cut();
  await clock.advance(600);
  expect(store.engineReplaced.value).toBe(true);
  expect(store.change(1n).value?.status).toBe(Change_Status.PENDING);
});

test("replaced_journal_clears_state", async () => {
  const { engine, clock, store } = await connect();
  engine.append(sessionStarted("old"), proposed(1n, "old"), proposed(2n, "old"));
  await settle();
  engine.events.length = 0;
  engine.startedMs = 2n;
  engine.append(sessionStarted("new"));
  engine.cut();
  await clock.advance(600);
  expect([...store.sessions.all.value.keys()]).toEqual(["new"]);
  expect(store.lastEvent.value).toBe(1n);
});

test("event_that_moves_inbox_reads_it_once", async () => {
  const { engine, clock, store } = await connect();
  engine.calls.length = 0;
  engine.inbox = [create(InboxItemSchema, { key: "change:1", summary: "write a.rs" })];
  engine.append(proposed(1n), proposed(2n), proposed(3n));
  await clock.advance(100);
  expect(engine.calls.filter((call) => call === "listInbox")).toHaveLength(1);
  expect(store.inbox.value.map((item) => item.key)).toEqual(["change:1"]);
});

test("unknown_change_is_read_from_engine", async () => {
  const { engine, clock, store } = await connect();
  engine.changes.set(9n, create(ChangeSchema, { change: 9n, status: Change_Status.DENIED }));
  const change = store.change(9n);
  expect(change.value).toBeUndefined();
  await clock.advance(100);
  expect(change.value?.status).toBe(Change_Status.DENIED);
});

test("conversation_reads_new_blocks_once", async () => {
  const { engine, clock, store } = await connect();
  const block = (number: bigint) => create(ConversationBlockSchema, { number, text: `block ${number}` });
  engine.blocks = [block(1n), block(2n)];
  const conversation = store.conversation("s1");
  await clock.advance(50);
  expect(conversation.state.value).toBe("loaded");
  engine.blocks = [block(1n), block(2n), block(3n)];
  engine.append(received(1n), received(2n));
  await clock.advance(50);
  expect(conversation.blocks.value.map((known) => known.number)).toEqual([1n, 2n, 3n]);
});

test("blocks_of_response_replace_its_live_parts", async () => {
  const { engine, clock, store } = await connect();
  const kinds: Kind[] = [
    { case: "thinkingDelta", value: { text: "Short." } },
    { case: "textDelta", value: { text: "I will " } },
    { case: "textDelta", value: { text: "write." } },
    { case: "toolCall", value: { call: "c1", tool: "Write" } },
    // One event for the three blocks of the response.
    { case: "block", value: { block: 3n } },
    { case: "textDelta", value: { text: "Done." } },
  ];
  engine.live = kinds.map((event, index) => create(InvokeEventSchema, { number: BigInt(index + 1), event }));
  const { THINKING, ASSISTANT_TEXT, TOOL_CALL } = ConversationBlock_Kind;
  engine.blocks = [THINKING, ASSISTANT_TEXT, TOOL_CALL].map((kind, index) =>
    create(ConversationBlockSchema, { number: BigInt(index + 1), kind, call: "c1" }),
  );
  const live = store.agent("s1");
  await clock.advance(50);
  expect(live.parts.value.map((part) => (part.kind === "tool" ? part.tool : part.text))).toEqual(["Write", "Done."]);
});

test("rejected_todo_is_rolled_back", async () => {
  const { engine, clock, store } = await connect();
  const live = store.agent("s1");
  await clock.advance(50);
  const todo = create(TodoSchema, { text: "write tests" });
  const accepted = live.writeTodos([todo]);
  expect(live.todos.value.map((known) => known.text)).toEqual(["write tests"]);
  await accepted;
  expect(live.todos.value[0]?.id).toBe("id-write tests");
  engine.rejectsTodos = true;
  const before = live.todos.value;
  const rejected = live.writeTodos([...before, create(TodoSchema, { text: "second" })]);
  expect(live.todos.value).toHaveLength(2);
  await expect(rejected).rejects.toThrow("the session has ended");
  expect(live.todos.value).toBe(before);
});

test("ten_thousand_events_stay_within_limits", async () => {
  const engine = new FakeEngine();
  const { clock, store } = await connect(engine);
  for (let number = 1n; number <= 2_500n; number += 1n) {
    engine.append(proposed(number), decided(number), applying(number), ended(number));
  }
  await clock.advance(100);
  expect(store.lastEvent.value).toBe(10_000n);
  expect(store.timeline("s1").entries.value).toHaveLength(MAX_ENTRIES);
  expect(store.changesInMemory).toBeLessThanOrEqual(1_500);
  expect(store.change(2_500n).value?.status).toBe(Change_Status.APPLIED);
});

test("pending_change_outlives_limit", async () => {
  const { engine, clock, store } = await connect();
  engine.append(proposed(1n));
  for (let number = 2n; number <= 1_700n; number += 1n)
    engine.append(proposed(number), ended(number, Outcome_Kind.DENIED));
  await clock.advance(100);
  expect(store.change(1n).value?.status).toBe(Change_Status.PENDING);
  expect(engine.calls).not.toContain("getChange");
});

test("undone_file_by_file_undoes_change", async () => {
  const { engine, store } = await connect();
  engine.append(proposed(1n), decided(1n), applying(1n), ended(1n), undone(1n, 2n, ["a.rs"]));
  await settle();
  expect(store.change(1n).value?.status).toBe(Change_Status.UNDONE);
  expect(store.change(1n).value?.undoneBy).toBe(2n);
});
