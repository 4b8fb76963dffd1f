import { batch, signal, type ReadonlySignal, type Signal } from "@preact/signals-core";

import type { Api } from "../api.js";
import { sleep, type Clock } from "../clock.js";
import { describeFailure, isDecisionForbidden, isLoginMissing } from "../failure.js";
import type { Surface_Kind } from "../generated/sayso/v1/change_pb.js";
import type { Event } from "../generated/sayso/v1/event_pb.js";
import { WatchRequest_Role } from "../generated/sayso/v1/review_service_pb.js";
import { retryDelay, type Connection, type EngineInfo } from "./connection.js";

/** The engine sends a heartbeat every 10 seconds. Without any message, the connection is dead. */
const SILENCE_LIMIT = 35_000;

/** This surface, as others see it and as verdicts name it. */
export interface SurfaceName {
  readonly kind: Surface_Kind;
  readonly name: string;
}

/** State that follows the events of a link. */
export interface Follower {
  /** Number of the last event folded. */
  lastEvent(): bigint;
  /** Prepares for events after a connection. `last` is the engine's last event. */
  prepare(last: bigint): Promise<void>;
  receive(event: Event): void;
  /** Surfaces came or went. */
  surfacesMoved(): void;
  /** All events of before the connection are folded. */
  caughtUp(): void;
  /** The engine has another journal than the one of the events so far. */
  forget(): void;
}

/** Connection to the engine: reads its events, reconnects, and resumes after the last event. */
export class Link {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #surface: SurfaceName;
  readonly #follower: Follower;

  readonly #connection: Signal<Connection> = signal({ state: "connecting" });
  readonly #engine: Signal<EngineInfo | null> = signal(null);
  readonly #engineReplaced: Signal<boolean> = signal(false);
  readonly #readOnly: Signal<boolean> = signal(false);

  #run: AbortController | null = null;
  #wake: AbortController = new AbortController();
  #isOnline = true;

  constructor(api: Api, clock: Clock, surface: SurfaceName, follower: Follower) {
    this.#api = api;
    this.#clock = clock;
    this.#surface = surface;
    this.#follower = follower;
  }

  get connection(): ReadonlySignal<Connection> {
    return this.#connection;
  }
  get engine(): ReadonlySignal<EngineInfo | null> {
    return this.#engine;
  }
  get engineReplaced(): ReadonlySignal<boolean> {
    return this.#engineReplaced;
  }
  get readOnly(): ReadonlySignal<boolean> {
    return this.#readOnly;
  }
  get isLive(): boolean {
    return this.#connection.peek().state === "live";
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

  /** Tries to connect at once. */
  retryNow(): void {
    this.#wake.abort();
  }

  /** Reports a change of the device's network. */
  setOnline(online: boolean): void {
    this.#isOnline = online;
    if (online) this.retryNow();
    else this.#connection.value = { state: "offline", since: this.#clock.now() };
  }

  dismissEngineReplaced(): void {
    this.#engineReplaced.value = false;
  }

  async #follow(stop: AbortSignal): Promise<void> {
    let attempt = 0;
    let since = 0;
    while (!stop.aborted) {
      let problem = "the engine closed the connection";
      try {
        await this.#connect(stop, () => (attempt = 0));
      } catch (error) {
        if (isLoginMissing(error)) {
          this.#connection.value = { state: "login-expired" };
          await this.#untilWoken(stop, null);
          continue;
        }
        problem = describeFailure(error).message;
      }
      if (isAborted(stop)) return;
      if (attempt === 0) since = this.#clock.now();
      attempt += 1;
      const delay = retryDelay(attempt);
      const retryAt = this.#clock.now() + delay;
      this.#connection.value = this.#isOnline
        ? { state: "reconnecting", since, retryAt, attempt, problem }
        : { state: "offline", since };
      await this.#untilWoken(stop, delay);
    }
  }

  /** Waits for a delay, or without a delay for ever. `retryNow` ends the wait. */
  async #untilWoken(stop: AbortSignal, delay: number | null): Promise<void> {
    this.#wake = new AbortController();
    const signals = AbortSignal.any([stop, this.#wake.signal]);
    if (delay !== null) {
      await sleep(this.#clock, delay, signals);
      return;
    }
    await new Promise<void>((resolve) => {
      if (signals.aborted) resolve();
      else signals.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** Reads what is missing, then events until the stream ends. */
  async #connect(stop: AbortSignal, onLive: () => void): Promise<void> {
    const cut = new AbortController();
    const signal = AbortSignal.any([stop, cut.signal]);
    const status = await this.#api.review.status({}, { signal });
    this.#recogniseEngine(status);
    const target = status.lastEvent;
    void this.#probeAuthority();
    await this.#follower.prepare(target);
    let cancelSilence: () => void = () => undefined;
    const listen = () => {
      cancelSilence();
      cancelSilence = this.#clock.after(SILENCE_LIMIT, () => cut.abort());
    };
    try {
      listen();
      const request = { after: this.#follower.lastEvent(), role: WatchRequest_Role.SURFACE, surface: this.#surface };
      let isLive = false;
      for await (const { kind } of this.#api.review.watch(request, { signal })) {
        listen();
        if (kind.case === "event") this.#follower.receive(kind.value);
        else if (kind.case === "surfaceAttached" || kind.case === "surfaceDetached") this.#follower.surfacesMoved();
        if (!isLive && this.#follower.lastEvent() >= target) {
          isLive = true;
          onLive();
          batch(() => {
            this.#connection.value = { state: "live" };
            this.#follower.caughtUp();
          });
        }
      }
    } finally {
      cancelSilence();
      cut.abort();
    }
  }

  #recogniseEngine(status: {
    version: string;
    process: number;
    workspace: string;
    startedMs: bigint;
    lastEvent: bigint;
    url?: string | undefined;
  }): void {
    const { version, process, workspace, startedMs, lastEvent, url } = status;
    const before = this.#engine.peek();
    this.#engine.value = { version, process, workspace, startedMs, url };
    if (before === null) return;
    if (before.startedMs !== startedMs || before.process !== process) this.#engineReplaced.value = true;
    // The journal is not the one that the events in memory are from.
    if (before.workspace !== workspace || lastEvent < this.#follower.lastEvent()) this.#follower.forget();
  }

  /** Learns if decisions are accepted, by a decision without effect: marks of reading never decrease. */
  async #probeAuthority(): Promise<void> {
    try {
      await this.#api.review.markRead({ through: 0n });
      this.#readOnly.value = false;
    } catch (error) {
      if (isDecisionForbidden(error)) this.#readOnly.value = true;
    }
  }
}

/** Read by a function, because the compiler takes the value of the loop's condition for the present one. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted;
