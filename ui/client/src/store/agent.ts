import { batch, signal, type ReadonlySignal, type Signal } from "@preact/signals-core";

import type { Api } from "../api.js";
import { sleep, type Clock } from "../clock.js";
import { isUnimplemented } from "../failure.js";
import { ConversationBlock_Kind, type ConversationBlock } from "../generated/sayso/v1/conversation_service_pb.js";
import type {
  AskQuestion,
  InvocationStatus,
  InvocationUsage,
  InvokeEvent,
  SessionSettings,
  Todo,
} from "../generated/sayso/v1/agent_service_pb.js";
import { retryDelay } from "./connection.js";

/** A part of the response that is not a block of the conversation yet. */
export type LivePart =
  | { kind: "text" | "thinking"; key: string; text: string }
  | {
      kind: "tool";
      key: string;
      call: string;
      tool: string;
      argumentsJson: string;
      summary: string;
      output: string;
      result: { text: string; isError: boolean; durationMs: bigint } | null;
    };

/** Last part of a tool's live output that stays in memory, in characters. */
const MAX_OUTPUT = 32_768;

/** State of an invocation of the built-in agent, from its live events. */
export class AgentLive {
  readonly #api: Api;
  readonly #session: string;
  readonly #clock: Clock;
  readonly #readBlocks: () => Promise<readonly ConversationBlock[]>;
  readonly #parts: Signal<readonly LivePart[]> = signal([]);
  readonly #status: Signal<InvocationStatus | null> = signal(null);
  readonly #usage: Signal<InvocationUsage | null> = signal(null);
  readonly #todos: Signal<readonly Todo[]> = signal([]);
  readonly #question: Signal<AskQuestion | null> = signal(null);
  readonly #settings: Signal<SessionSettings | null> = signal(null);
  readonly #running: Signal<boolean> = signal(false);
  readonly #failed: Signal<{ message: string; hint: string } | null> = signal(null);
  readonly #available: Signal<boolean> = signal(true);
  /** The last part still grows: its text belongs to the block that the model writes now. */
  #isOpen = false;
  #last = 0n;
  /** The last block that replaced its live part, or that was complete before the live events. */
  #lastBlock = 0n;
  #run: AbortController | null = null;

  /** `readBlocks` brings the conversation up to date and returns its blocks. */
  constructor(api: Api, session: string, clock: Clock, readBlocks: () => Promise<readonly ConversationBlock[]>) {
    this.#api = api;
    this.#session = session;
    this.#clock = clock;
    this.#readBlocks = readBlocks;
  }

  get parts(): ReadonlySignal<readonly LivePart[]> {
    return this.#parts;
  }
  get status(): ReadonlySignal<InvocationStatus | null> {
    return this.#status;
  }
  get usage(): ReadonlySignal<InvocationUsage | null> {
    return this.#usage;
  }
  get todos(): ReadonlySignal<readonly Todo[]> {
    return this.#todos;
  }
  get question(): ReadonlySignal<AskQuestion | null> {
    return this.#question;
  }
  get settings(): ReadonlySignal<SessionSettings | null> {
    return this.#settings;
  }
  get running(): ReadonlySignal<boolean> {
    return this.#running;
  }
  get failed(): ReadonlySignal<{ message: string; hint: string } | null> {
    return this.#failed;
  }
  /** `false` if the session is not one of the built-in agent, or the engine has none. */
  get available(): ReadonlySignal<boolean> {
    return this.#available;
  }

  start(): void {
    if (this.#run) return;
    this.#run = new AbortController();
    void this.#follow(this.#run.signal);
  }

  stop(): void {
    this.#run?.abort();
    this.#run = null;
  }

  /** Shows new todos at once, and the old ones again if the engine rejects them. */
  async writeTodos(next: readonly Todo[], removed: readonly string[] = []): Promise<void> {
    const before = this.#todos.peek();
    const changed = next.filter((todo) => !before.includes(todo));
    this.#todos.value = next;
    try {
      const { todos } = await this.#api.agent.writeTodos({
        session: this.#session,
        write: changed,
        remove: [...removed],
        order: next.map((todo) => todo.id).filter((id) => id !== ""),
      });
      this.#todos.value = todos;
    } catch (error) {
      this.#todos.value = before;
      throw error;
    }
  }

  answered(): void {
    this.#question.value = null;
  }

  async #follow(stop: AbortSignal): Promise<void> {
    for (let attempt = 1; !stop.aborted; attempt += 1) {
      try {
        const [todos, settings] = await Promise.all([
          this.#api.agent.getTodos({ session: this.#session }, { signal: stop }),
          this.#api.agent.getSettings({ session: this.#session }, { signal: stop }),
        ]);
        this.#todos.value = todos.todos;
        this.#settings.value = settings.settings ?? null;
        for await (const { kind } of this.#api.agent.attach(
          { session: this.#session, after: this.#last },
          { signal: stop },
        )) {
          attempt = 1;
          if (kind.case === "event") batch(() => this.#apply(kind.value));
          if (kind.case === "reset") {
            this.#parts.value = [];
            this.#lastBlock = kind.value.lastBlock;
            await this.#readBlocks();
          }
        }
      } catch (error) {
        if (isUnimplemented(error)) {
          this.#available.value = false;
          return;
        }
      }
      await sleep(this.#clock, retryDelay(attempt), stop);
    }
  }

  #apply(event: InvokeEvent): void {
    if (event.number <= this.#last) return;
    this.#last = event.number;
    const { event: kind } = event;
    switch (kind.case) {
      case "status":
        this.#status.value = kind.value;
        this.#running.value = true;
        this.#failed.value = null;
        break;
      case "thinkingDelta":
        this.#append("thinking", event.number, kind.value.text);
        break;
      case "textDelta":
        this.#append("text", event.number, kind.value.text);
        break;
      case "toolCall": {
        const { call, tool, argumentsJson, summary } = kind.value;
        const part = {
          kind: "tool" as const,
          key: `live:${event.number}`,
          call,
          tool,
          argumentsJson,
          summary,
          output: "",
          result: null,
        };
        this.#isOpen = false;
        this.#parts.value = [...this.#parts.peek(), part];
        break;
      }
      case "toolOutputDelta": {
        const { call, text } = kind.value;
        this.#updateTool(call, (part) => ({ ...part, output: (part.output + text).slice(-MAX_OUTPUT) }));
        break;
      }
      case "toolResult": {
        const { call, text, isError, durationMs } = kind.value;
        this.#updateTool(call, (part) => ({ ...part, result: { text, isError, durationMs } }));
        break;
      }
      case "todos":
        this.#todos.value = kind.value.todos;
        break;
      case "usage":
        this.#usage.value = kind.value;
        break;
      case "question":
        this.#question.value = kind.value;
        break;
      case "settings":
        this.#settings.value = kind.value.settings ?? null;
        break;
      case "finished":
        this.#end();
        if (kind.value.usage) this.#usage.value = kind.value.usage;
        break;
      case "failed":
        this.#end();
        this.#failed.value = { message: kind.value.message, hint: kind.value.hint };
        break;
      case "block":
        this.#isOpen = false;
        void this.#replaceByBlocks(kind.value.block);
        break;
      default:
    }
  }

  #end(): void {
    this.#isOpen = false;
    this.#running.value = false;
    this.#status.value = null;
    this.#question.value = null;
    void this.#readBlocks().then(() => {
      // A new invocation may have begun meanwhile.
      if (!this.#running.peek()) this.#parts.value = [];
    });
  }

  #append(kind: "text" | "thinking", number: bigint, text: string): void {
    const parts = this.#parts.peek();
    const last = parts.at(-1);
    this.#parts.value =
      this.#isOpen && last?.kind === kind
        ? [...parts.slice(0, -1), { ...last, text: last.text + text }]
        : [...parts, { kind, key: `live:${number}`, text }];
    this.#isOpen = true;
  }

  #updateTool(call: string, change: (part: LivePart & { kind: "tool" }) => LivePart): void {
    this.#parts.value = this.#parts
      .peek()
      .map((part) => (part.kind === "tool" && part.call === call ? change(part) : part));
  }

  /** Drops the live parts that blocks of the conversation replace: those since the last call, up to this one. */
  async #replaceByBlocks(through: bigint): Promise<void> {
    const after = this.#lastBlock;
    if (through <= after) return;
    this.#lastBlock = through;
    const blocks = await this.#readBlocks();
    let parts = this.#parts.peek();
    for (const block of blocks) {
      if (block.number <= after || block.number > through) continue;
      const replaced = parts.find((part) => isSame(part, block));
      if (replaced) parts = parts.filter((part) => part !== replaced);
    }
    this.#parts.value = parts;
  }
}

function isSame(part: LivePart, block: ConversationBlock): boolean {
  switch (part.kind) {
    case "text":
      return block.kind === ConversationBlock_Kind.ASSISTANT_TEXT;
    case "thinking":
      return block.kind === ConversationBlock_Kind.THINKING;
    case "tool":
      // The result is shown with its call, so the live part stays until the result is a block.
      return block.kind === ConversationBlock_Kind.TOOL_RESULT && block.call === part.call;
  }
}
