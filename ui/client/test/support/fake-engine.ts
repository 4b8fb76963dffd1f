import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";

import type { Clock } from "../../src/index.js";
import { createApi, Store } from "../../src/index.js";
import { AgentService, type InvokeEvent, type Todo } from "../../src/generated/sayso/v1/agent_service_pb.js";
import type { Change } from "../../src/generated/sayso/v1/change_pb.js";
import { ConversationService, type ConversationBlock } from "../../src/generated/sayso/v1/conversation_service_pb.js";
import { type Event, EventSchema } from "../../src/generated/sayso/v1/event_pb.js";
import type { InboxItem } from "../../src/generated/sayso/v1/inbox_pb.js";
import { RequestService } from "../../src/generated/sayso/v1/request_service_pb.js";
import { ReviewService } from "../../src/generated/sayso/v1/review_service_pb.js";

/** A clock that moves only when a test says so. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  #timers = new Set<{ at: number; callback: () => void }>();

  now(): number {
    return this.#now;
  }

  after(delay: number, callback: () => void): () => void {
    const timer = { at: this.#now + delay, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves the time, runs the timers that are due, and lets pending promises settle. */
  async advance(milliseconds: number): Promise<void> {
    await settle();
    const end = this.#now + milliseconds;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due);
      this.#now = due.at;
      due.callback();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets promises and the messages of in-memory streams arrive. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** An engine in memory: a journal of events, and streams that a test can cut. */
export class FakeEngine {
  readonly events: Event[] = [];
  readonly changes = new Map<bigint, Change>();
  blocks: ConversationBlock[] = [];
  inbox: InboxItem[] = [];
  todos: Todo[] = [];
  /** Events of the built-in agent that each Attach sends. */
  live: InvokeEvent[] = [];
  startedMs = 1n;
  process = 1;
  /** Numbers that each Watch started after. */
  readonly watchedAfter: bigint[] = [];
  readonly calls: string[] = [];
  /** Fails each call with this error while it is set. */
  failure: ConnectError | null = null;
  rejectsDecisions = false;
  rejectsTodos = false;
  /** Numbers of events that the stream leaves out. */
  readonly lost = new Set<bigint>();
  #wake: (() => void)[] = [];
  #generation = 0;

  append(...kinds: NonNullable<MessageInitShape<typeof EventSchema>["kind"]>[]): void {
    for (const kind of kinds) {
      const number = BigInt(this.events.length + 1);
      this.events.push(create(EventSchema, { number, timeMs: number * 1_000n, kind }));
    }
    this.#wakeAll();
  }

  /** Ends all streams, as if the connection was lost. */
  cut(): void {
    this.#generation += 1;
    this.#wakeAll();
  }

  store(clock: Clock): Store {
    return new Store({ api: createApi(this.transport()), surfaceName: "test", clock });
  }

  transport() {
    const check = (name: string) => {
      this.calls.push(name);
      if (this.failure) throw this.failure;
    };
    const live = () => this.live;
    return createRouterTransport(({ service }) => {
      service(ReviewService, {
        status: () => {
          check("status");
          const { startedMs, process } = this;
          return { version: "1", workspace: "/w", startedMs, process, lastEvent: BigInt(this.events.length) };
        },
        watch: ({ after }, { signal }) => {
          check("watch");
          this.watchedAfter.push(after);
          return this.#stream(after, signal);
        },
        listSessions: () => ({ sessions: [] }),
        listChanges: () => ({ changes: [...this.changes.values()] }),
        listInbox: () => {
          check("listInbox");
          return { items: this.inbox };
        },
        listSurfaces: () => ({ surfaces: [] }),
        markRead: () => {
          check("markRead");
          if (this.rejectsDecisions) throw new ConnectError("no login", Code.PermissionDenied);
          return {};
        },
        getChange: ({ change }) => {
          check("getChange");
          const found = this.changes.get(change);
          if (!found) throw new ConnectError("no such change", Code.InvalidArgument);
          return { details: { change: found } };
        },
      });
      service(ConversationService, {
        getConversationPreview: ({ after, limit }) => {
          check("getConversationPreview");
          const blocks = this.blocks.filter((block) => block.number > after).slice(0, limit);
          return { blocks, last: BigInt(this.blocks.length) };
        },
      });
      service(RequestService, { listRequests: () => ({ requests: [] }) });
      service(AgentService, {
        listSessions: () => ({ sessions: [] }),
        getTodos: () => ({ todos: this.todos }),
        getSettings: () => ({}),
        writeTodos: ({ write }) => {
          if (this.rejectsTodos) throw new ConnectError("the session has ended", Code.FailedPrecondition);
          this.todos = [...this.todos, ...write.map((todo) => ({ ...todo, id: `id-${todo.text}` }))];
          return { todos: this.todos };
        },
        // eslint-disable-next-line @typescript-eslint/require-await
        async *attach() {
          yield { kind: { case: "heartbeat", value: {} } } as const;
          for (const event of live()) yield { kind: { case: "event" as const, value: event } };
        },
      });
    });
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  async *#stream(after: bigint, signal: AbortSignal) {
    const generation = this.#generation;
    signal.addEventListener("abort", () => this.#wakeAll());
    yield { kind: { case: "heartbeat" as const, value: { lastEvent: BigInt(this.events.length) } } };
    for (let next = Number(after); ;) {
      // Read by functions: both change while the stream waits.
      if (this.#isOver(generation) || isAborted(signal)) return;
      const event = this.events[next];
      if (event) {
        next += 1;
        if (!this.lost.delete(event.number)) yield { kind: { case: "event" as const, value: event } };
        continue;
      }
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  #isOver(generation: number): boolean {
    return generation !== this.#generation;
  }
}

const isAborted = (signal: AbortSignal): boolean => signal.aborted;
