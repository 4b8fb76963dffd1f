import { signal, type ReadonlySignal } from "@preact/signals";

import { describeFailure, type Api, type Store } from "@sayso/client";

const PAGE = 100;

/** Numbers of recorded requests, newest first, and of held ones. The store holds their summaries. */
export class RequestList {
  readonly #api: Api;
  readonly #store: Store;
  readonly #numbers = signal<readonly bigint[]>([]);
  readonly #held = signal<readonly bigint[]>([]);
  readonly #state = signal<"loading" | "ready">("loading");
  readonly #problem = signal<string | null>(null);
  readonly #hasMore = signal(false);
  #isReading = false;
  #again = false;

  constructor(api: Api, store: Store) {
    this.#api = api;
    this.#store = store;
  }

  get numbers(): ReadonlySignal<readonly bigint[]> {
    return this.#numbers;
  }
  /** Oldest first. */
  get held(): ReadonlySignal<readonly bigint[]> {
    return this.#held;
  }
  get state(): ReadonlySignal<"loading" | "ready"> {
    return this.#state;
  }
  get problem(): ReadonlySignal<string | null> {
    return this.#problem;
  }
  get hasMore(): ReadonlySignal<boolean> {
    return this.#hasMore;
  }

  /** Reads the newest requests. Older ones that were read before stay. */
  async refresh(): Promise<void> {
    if (this.#isReading) {
      this.#again = true;
      return;
    }
    this.#isReading = true;
    try {
      const [newest, held] = await Promise.all([
        this.#api.requests.listRequests({ limit: PAGE }),
        this.#api.requests.listRequests({ held: true }),
      ]);
      this.#store.learnRequests([...newest.requests, ...held.requests]);
      const fresh = newest.requests.map(({ request }) => request);
      const oldest = fresh.at(-1) ?? 0n;
      const first = this.#numbers.peek().length === 0;
      this.#numbers.value = [...fresh, ...this.#numbers.peek().filter((number) => number < oldest)];
      this.#held.value = held.requests.map(({ request }) => request);
      if (first) this.#hasMore.value = fresh.length === PAGE;
      this.#problem.value = null;
    } catch (error) {
      this.#problem.value = describeFailure(error).message;
    } finally {
      this.#state.value = "ready";
      this.#isReading = false;
    }
    if (this.#again) {
      this.#again = false;
      await this.refresh();
    }
  }

  async loadMore(): Promise<void> {
    const oldest = this.#numbers.peek().at(-1);
    if (oldest === undefined) return;
    try {
      const { requests } = await this.#api.requests.listRequests({ limit: PAGE, before: oldest });
      this.#store.learnRequests(requests);
      this.#numbers.value = [...this.#numbers.peek(), ...requests.map(({ request }) => request)];
      this.#hasMore.value = requests.length === PAGE;
    } catch (error) {
      this.#problem.value = describeFailure(error).message;
    }
  }
}
