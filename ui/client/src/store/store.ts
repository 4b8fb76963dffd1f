import { batch, computed, signal, type ReadonlySignal, type Signal } from "@preact/signals-core";

import type { Api } from "../api.js";
import { systemClock, type Clock } from "../clock.js";
import { isDecisionForbidden, isUnimplemented } from "../failure.js";
import { Change_Status, Surface_Kind, type Change } from "../generated/sayso/v1/change_pb.js";
import type { AgentSession } from "../generated/sayso/v1/agent_service_pb.js";
import { ConversationBlock_Kind } from "../generated/sayso/v1/conversation_service_pb.js";
import type { Event } from "../generated/sayso/v1/event_pb.js";
import type { AttachedSurface, InboxItem } from "../generated/sayso/v1/inbox_pb.js";
import { type RequestSummary, RequestStatus } from "../generated/sayso/v1/request_pb.js";
import { AgentLive } from "./agent.js";
import { BoundedMap } from "./bounded-map.js";
import type { Connection, EngineInfo } from "./connection.js";
import { Conversation } from "./conversation.js";
import { changeOf, foldChange, withCards } from "./fold-change.js";
import { foldRequest } from "./fold-request.js";
import { Link, type SurfaceName } from "./link.js";
import { Sessions } from "./sessions.js";
import { changeEntry, requestEntry, Timeline, timelineEntry } from "./timeline.js";

/** Events before the latest one that a new store reads. Older changes and requests are loaded when a view needs them. */
const FIRST_EVENTS = 3_000n;
const MAX_CHANGES = 1_500;
const MAX_REQUESTS = 1_500;
const MAX_TIMELINES = 100;
const MAX_CONVERSATIONS = 6;
/** Delay that joins several refreshes of one thing, in milliseconds. */
const REFRESH_DELAY = 40;

export interface StoreOptions {
  api: Api;
  /** Name of this surface for other surfaces, such as `Firefox`. */
  surfaceName: string;
  surfaceKind?: Surface_Kind;
  clock?: Clock;
}

/** State of the workspace, folded from the engine's events. The store reads; views call the services to act. */
export class Store {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #surface: SurfaceName;
  readonly #link: Link;

  readonly #loaded: Signal<boolean> = signal(false);
  readonly #lastEvent: Signal<bigint> = signal(0n);
  readonly #inbox: Signal<readonly InboxItem[]> = signal([]);
  readonly #surfaces: Signal<readonly AttachedSurface[]> = signal([]);
  readonly #builtIn: Signal<ReadonlyMap<string, AgentSession>> = signal(new Map());
  readonly #titled = new Set<string>();
  readonly #changes = new BoundedMap<bigint, Signal<Change | undefined>>(
    MAX_CHANGES,
    (change) => change.peek()?.status === Change_Status.PENDING,
  );
  readonly #requests = new BoundedMap<bigint, Signal<RequestSummary | undefined>>(
    MAX_REQUESTS,
    (request) => request.peek()?.held === true,
  );
  readonly #sessions = new Sessions();
  readonly #timelines = new BoundedMap<string, Timeline>(MAX_TIMELINES);
  readonly #conversations = new BoundedMap<string, Conversation>(MAX_CONVERSATIONS);
  readonly #agents = new BoundedMap<string, AgentLive>(
    MAX_CONVERSATIONS,
    () => false,
    (_session, live) => live.stop(),
  );
  /** Loads of older entries, by session. */
  readonly #history = new BoundedMap<string, Promise<void>>(MAX_TIMELINES);
  readonly #timers = new Map<string, () => void>();

  readonly canDecide: ReadonlySignal<boolean> = computed(
    () => this.connection.value.state === "live" && !this.readOnly.value,
  );

  constructor(options: StoreOptions) {
    this.#api = options.api;
    this.#clock = options.clock ?? systemClock;
    this.#surface = { kind: options.surfaceKind ?? Surface_Kind.BROWSER, name: options.surfaceName };
    this.#link = new Link(this.#api, this.#clock, this.#surface, {
      lastEvent: () => this.#lastEvent.peek(),
      prepare: (last) => this.#prepare(last),
      receive: (event) => this.#receive(event),
      surfacesMoved: () => this.#refreshSurfaces(),
      caughtUp: () => this.#caughtUp(),
      forget: () => this.#forget(),
    });
  }

  get connection(): ReadonlySignal<Connection> {
    return this.#link.connection;
  }
  get engine(): ReadonlySignal<EngineInfo | null> {
    return this.#link.engine;
  }
  /** Another process of the engine answered after a lost connection. Its version may differ from the page. */
  get engineReplaced(): ReadonlySignal<boolean> {
    return this.#link.engineReplaced;
  }
  /** The engine rejects decisions of this caller: it has no login. */
  get readOnly(): ReadonlySignal<boolean> {
    return this.#link.readOnly;
  }
  /** The first events and lists are complete. */
  get loaded(): ReadonlySignal<boolean> {
    return this.#loaded;
  }
  get lastEvent(): ReadonlySignal<bigint> {
    return this.#lastEvent;
  }
  get inbox(): ReadonlySignal<readonly InboxItem[]> {
    return this.#inbox;
  }

  /** This surface, as others see it and as verdicts name it. */
  get surface(): SurfaceName {
    return this.#surface;
  }
  get surfaces(): ReadonlySignal<readonly AttachedSurface[]> {
    return this.#surfaces;
  }
  /** Sessions of the built-in agent, by id. Empty if the engine has none. */
  get builtIn(): ReadonlySignal<ReadonlyMap<string, AgentSession>> {
    return this.#builtIn;
  }
  get changesInMemory(): number {
    return this.#changes.size;
  }
  get sessions(): Sessions {
    return this.#sessions;
  }

  /** A change by number; `undefined` until it is known. Unknown ones are read from the engine. */
  change(number: bigint): ReadonlySignal<Change | undefined> {
    const known = this.#changes.get(number);
    if (known) return known;
    this.refreshChange(number);
    return this.#changeSlot(number);
  }

  /** A request by number; `undefined` until it is known. Unknown ones are read from the engine. */
  request(number: bigint): ReadonlySignal<RequestSummary | undefined> {
    const known = this.#requests.get(number);
    if (known) return known;
    this.refreshRequest(number);
    return this.#requestSlot(number);
  }

  timeline(session: string): Timeline {
    const known = this.#timelines.get(session);
    if (known) return known;
    const timeline = new Timeline();
    this.#timelines.set(session, timeline);
    return timeline;
  }

  /** The conversation of a session. Opened by the first call, and kept current while it is among the last few ones. */
  conversation(session: string): Conversation {
    const known = this.#conversations.get(session);
    if (known) return known;
    const conversation = new Conversation(this.#api, session);
    this.#conversations.set(session, conversation);
    void conversation.refresh();
    return conversation;
  }

  /** Live events of a session of the built-in agent. */
  agent(session: string): AgentLive {
    const known = this.#agents.get(session);
    if (known) return known;
    const live = new AgentLive(this.#api, session, this.#clock, async () => {
      const conversation = this.conversation(session);
      await conversation.refresh();
      return conversation.blocks.peek();
    });
    this.#agents.set(session, live);
    live.start();
    return live;
  }

  /** Loads changes and requests of a session from before the events in memory. */
  loadHistory(session: string): Promise<void> {
    const known = this.#history.get(session);
    if (known) return known;
    const loading = this.#loadHistory(session).catch(() => {
      // The next call tries again.
      this.#history.delete(session);
    });
    this.#history.set(session, loading);
    return loading;
  }

  /** Follows the engine until `stop`. */
  start(): void {
    this.#link.start();
  }

  stop(): void {
    this.#link.stop();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    for (const live of this.#agents.values()) live.stop();
  }

  /** Tries to connect at once. */
  retryNow(): void {
    this.#link.retryNow();
  }

  /** Reports a change of the device's network. */
  setOnline(online: boolean): void {
    this.#link.setOnline(online);
  }

  dismissEngineReplaced(): void {
    this.#link.dismissEngineReplaced();
  }

  /** Adds changes that a view has read. Never replaces newer state: `change` events follow on the stream. */
  learnChanges(changes: readonly Change[]): void {
    for (const change of changes) {
      const slot = this.#changeSlot(change.change);
      slot.value = withCards(change, slot.peek()?.files ?? []);
    }
  }

  learnRequests(requests: readonly RequestSummary[]): void {
    for (const request of requests) this.#requestSlot(request.request).value = request;
  }

  refreshChange(number: bigint): void {
    this.#soon(`change:${number}`, async () => {
      const { details } = await this.#api.review.getChange({ change: number });
      if (details?.change) this.learnChanges([details.change]);
    });
  }

  refreshRequest(number: bigint): void {
    this.#soon(`request:${number}`, async () => {
      const { requests } = await this.#api.requests.listRequests({ before: number + 1n, limit: 1 });
      this.learnRequests(requests.filter((request) => request.request === number));
    });
  }

  refreshBuiltIn(): void {
    this.#soon("built-in", async () => {
      const { sessions } = await this.#api.agent.listSessions({ limit: 200 });
      batch(() => {
        this.#builtIn.value = new Map(sessions.map((session) => [session.session, session]));
        for (const { session, title, startedMs, activeMs } of sessions) {
          this.#sessions.update(session, activeMs, { startedMs, ...(title !== "" && { title }) });
        }
      });
    });
  }

  /** Reads the first prompt of a session, as its title. Does nothing if it is known. */
  loadTitle(session: string): void {
    if (session === "" || this.#titled.has(session)) return;
    this.#titled.add(session);
    this.#soon(`title:${session}`, async () => {
      const { blocks } = await this.#api.conversation.getConversationPreview({ session, limit: 20, textLimit: 300 });
      const prompt = blocks.find((block) => block.kind === ConversationBlock_Kind.PROMPT && !block.fromSubagent);
      // A session without a prompt may get one with its next request.
      if (!prompt) this.#titled.delete(session);
      else this.#sessions.update(session, 0n, { title: prompt.text.split("\n", 1)[0] ?? "" });
    });
  }

  refreshInbox(): void {
    this.#soon("inbox", async () => {
      const { items } = await this.#api.review.listInbox({});
      this.#inbox.value = items;
    });
  }

  async #loadHistory(session: string): Promise<void> {
    const [changes, requests] = await Promise.all([
      this.#api.review.listChanges({ session, limit: 200 }),
      this.#api.requests.listRequests({ session, limit: 200 }).catch((error: unknown) => {
        if (isDecisionForbidden(error) || isUnimplemented(error)) return { requests: [] };
        throw error;
      }),
    ]);
    batch(() => {
      this.learnChanges(changes.changes);
      this.learnRequests(requests.requests);
      this.timeline(session).add(
        [
          ...changes.changes.map((change) => changeEntry(change.change, change.timeMs)),
          ...requests.requests.map((request) => requestEntry(request.request, request.timeMs)),
        ].sort((a, b) => (a.timeMs < b.timeMs ? -1 : a.timeMs > b.timeMs ? 1 : 0)),
      );
    });
  }

  #changeSlot(number: bigint): Signal<Change | undefined> {
    const known = this.#changes.get(number);
    if (known) return known;
    const slot = signal<Change | undefined>(undefined);
    this.#changes.set(number, slot);
    return slot;
  }

  #requestSlot(number: bigint): Signal<RequestSummary | undefined> {
    const known = this.#requests.get(number);
    if (known) return known;
    const slot = signal<RequestSummary | undefined>(undefined);
    this.#requests.set(number, slot);
    return slot;
  }

  /** Runs a read once after a short delay, however often it is asked for. Failures are repaired by the next event. */
  #soon(key: string, read: () => Promise<void>): void {
    if (this.#timers.has(key)) return;
    const cancel = this.#clock.after(REFRESH_DELAY, () => {
      this.#timers.delete(key);
      read().catch(() => undefined);
    });
    this.#timers.set(key, cancel);
  }

  #caughtUp(): void {
    this.#loaded.value = true;
    this.refreshInbox();
    this.refreshBuiltIn();
    this.#refreshSurfaces();
    for (const conversation of this.#conversations.values()) void conversation.refresh();
    for (const live of this.#agents.values()) live.start();
  }

  #forget(): void {
    batch(() => {
      this.#loaded.value = false;
      this.#lastEvent.value = 0n;
      this.#changes.clear();
      this.#requests.clear();
      this.#sessions.clear();
      this.#timelines.clear();
      this.#conversations.clear();
      this.#history.clear();
      this.#inbox.value = [];
    });
  }

  /** Reads the sessions and the last events only, the first time. */
  async #prepare(last: bigint): Promise<void> {
    if (this.#loaded.peek()) return;
    this.#lastEvent.value = last > FIRST_EVENTS ? last - FIRST_EVENTS : 0n;
    const { sessions } = await this.#api.review.listSessions({ limit: 200 });
    batch(() => this.#sessions.merge(sessions));
  }

  #refreshSurfaces(): void {
    this.#soon("surfaces", async () => {
      const { surfaces } = await this.#api.review.listSurfaces({});
      this.#surfaces.value = surfaces;
    });
  }

  #receive(event: Event): void {
    const last = this.#lastEvent.peek();
    // Sent again after a reconnect.
    if (event.number <= last) return;
    if (event.number > last + 1n) throw new Error(`events ${last + 1n} to ${event.number - 1n} are missing`);
    batch(() => {
      this.#lastEvent.value = event.number;
      this.#fold(event);
    });
  }

  #fold(event: Event): void {
    const sessionOfChange = (change: bigint) => this.#changes.get(change)?.peek()?.origin?.session;
    const change = changeOf(event);
    if (change !== null) {
      const slot = this.#changeSlot(change);
      const next = foldChange(slot.peek(), event);
      if (next) slot.value = next;
      else this.refreshChange(change);
    }
    if (event.kind.case === "request") this.#foldRequest(event, event.kind.value.request);
    this.#sessions.fold(event, sessionOfChange);
    const found = timelineEntry(event, sessionOfChange);
    if (found) this.timeline(found.session).add([found.entry]);
    if (!this.#link.isLive) return;
    if (movesInbox(event)) this.refreshInbox();
    if (movesSessions(event)) this.refreshBuiltIn();
  }

  #foldRequest(event: Event, request: bigint): void {
    const slot = this.#requestSlot(request);
    slot.value = foldRequest(slot.peek(), event);
    const summary = slot.peek();
    if (!this.#link.isLive) return;
    const session = summary?.received?.origin?.session;
    if (session !== undefined) void this.#conversations.get(session)?.refresh();
    // The engine computes cost and cache share of a complete response.
    if (summary?.status === RequestStatus.ANSWERED) this.refreshRequest(request);
  }
}
/** `true` if the list of waiting items may differ after the event. */
function movesInbox(event: Event): boolean {
  switch (event.kind.case) {
    case "readThrough":
    case "snapshotCaptured":
    case "snapshotCorrelated":
    case "snapshotsFreed":
    case "requestViewed":
    case "messageDelivered":
    case "messagesDelivered":
    case "messageQueued":
    case undefined:
      return false;
    default:
      return true;
  }
}

const movesSessions = (event: Event): boolean =>
  event.kind.case === "sessionStarted" || event.kind.case === "turnStarted" || event.kind.case === "turnEnded";
