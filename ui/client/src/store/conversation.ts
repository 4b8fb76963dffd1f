import { signal, type ReadonlySignal, type Signal } from "@preact/signals-core";

import type { Api } from "../api.js";
import { describeFailure, isUnimplemented, type Failure } from "../failure.js";
import type { ConversationBlock } from "../generated/sayso/v1/conversation_service_pb.js";

/** Blocks of a session in memory. The oldest ones are dropped above it. */
export const MAX_BLOCKS = 2_000;
const PAGE = 500;

/**
 * The conversation of one session.
 *
 * Blocks are read in pages after each request of the session, and not by a stream: a browser opens at most six connections to an
 * engine for all its tabs, and each stream keeps one.
 */
export class Conversation {
  readonly #api: Api;
  readonly #session: string;
  readonly #blocks: Signal<readonly ConversationBlock[]> = signal([]);
  readonly #state: Signal<"loading" | "loaded" | "failed"> = signal("loading");
  readonly #failure: Signal<Failure | null> = signal(null);
  #last = 0n;
  #reading: Promise<void> | null = null;
  #again = false;

  constructor(api: Api, session: string) {
    this.#api = api;
    this.#session = session;
  }

  get blocks(): ReadonlySignal<readonly ConversationBlock[]> {
    return this.#blocks;
  }

  get state(): ReadonlySignal<"loading" | "loaded" | "failed"> {
    return this.#state;
  }

  get failure(): ReadonlySignal<Failure | null> {
    return this.#failure;
  }

  /** Reads the blocks that are new. A call during a read leads to one more read after it. Resolves when all are read. */
  refresh(): Promise<void> {
    this.#again = true;
    this.#reading ??= this.#readAll();
    return this.#reading;
  }

  async #readAll(): Promise<void> {
    try {
      // Set again by calls of refresh that arrive during the read.
      while (this.#takeAgain()) await this.#read();
      this.#failure.value = null;
      this.#state.value = "loaded";
    } catch (error) {
      if (isUnimplemented(error)) {
        this.#state.value = "loaded";
        return;
      }
      this.#failure.value = describeFailure(error);
      if (this.#state.peek() === "loading") this.#state.value = "failed";
    } finally {
      // In the same step as the last look at `#again`, so that no call is lost.
      this.#reading = null;
    }
  }

  #takeAgain(): boolean {
    const again = this.#again;
    this.#again = false;
    return again;
  }

  async #read(): Promise<void> {
    for (;;) {
      const page = await this.#api.conversation.getConversationPreview({
        session: this.#session,
        after: this.#last,
        limit: PAGE,
      });
      const fresh = page.blocks.filter((block) => block.number > this.#last);
      const newest = fresh.at(-1);
      if (newest === undefined) return;
      this.#last = newest.number;
      this.#blocks.value = [...this.#blocks.peek(), ...fresh].slice(-MAX_BLOCKS);
      if (this.#last >= page.last) return;
    }
  }

  /** Replaces a shortened block by the whole one. */
  async expand(number: bigint): Promise<void> {
    const { block } = await this.#api.conversation.getConversationBlock({ session: this.#session, number });
    if (!block) return;
    this.#blocks.value = this.#blocks.peek().map((known) => (known.number === number ? block : known));
  }
}
