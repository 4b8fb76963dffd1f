import type { MessageInitShape } from "@bufbuild/protobuf";
import { batch, signal, type ReadonlySignal } from "@preact/signals";

import { describeFailure, type Api, type Failure } from "@sayso/client";
import { ErrorKind } from "@sayso/client/proto/error";
import type { Section } from "@sayso/client/proto/request";
import {
  RequestBody,
  type EditRequestRequestSchema,
  type EditRequestResponse,
  type ResumeRequestResponse,
  type ShowRequestResponse,
} from "@sayso/client/proto/request_service";

import { parseJson, type Json } from "./leaves.js";

/** Bytes of content per section in the first read. */
const PREVIEW = 2_000;
/** In larger requests, cards read their content when they open. */
const LARGE_BODY = 300_000n;
const LARGE_PREVIEW = 160;
const WHOLE = 8_000_000;
const BODY_CHUNK = 1_048_576;

export interface EditRequest {
  edit: NonNullable<MessageInitShape<typeof EditRequestRequestSchema>["edit"]>;
}

/** The body of a request at a revision. */
export interface ParsedBody {
  revision: bigint;
  value: Json;
}

/** A request in the editor: its sections as the engine shows them, and its edits. Holds no DOM. */
export class RequestModel {
  readonly number: bigint;
  readonly #api: Api;
  readonly #show = signal<ShowRequestResponse | null>(null);
  readonly #failure = signal<Failure | null>(null);
  readonly #lastEdit = signal<EditRequestResponse | null>(null);
  readonly #isBusy = signal(false);
  readonly #body = signal<ParsedBody | null>(null);
  readonly #texts = signal<ReadonlyMap<string, string>>(new Map());
  #queue: Promise<unknown> = Promise.resolve();
  #loading: Promise<void> | null = null;
  #again = false;

  constructor(api: Api, number: bigint) {
    this.#api = api;
    this.number = number;
  }

  get show(): ReadonlySignal<ShowRequestResponse | null> {
    return this.#show;
  }
  /** Failure of the last call. */
  get failure(): ReadonlySignal<Failure | null> {
    return this.#failure;
  }
  get lastEdit(): ReadonlySignal<EditRequestResponse | null> {
    return this.#lastEdit;
  }
  get isBusy(): ReadonlySignal<boolean> {
    return this.#isBusy;
  }
  /** The body as it would be sent, for the tree of keys and values. `null` until `loadBody`. */
  get body(): ReadonlySignal<ParsedBody | null> {
    return this.#body;
  }
  /** Whole contents by section id, as far as they were asked for. */
  get texts(): ReadonlySignal<ReadonlyMap<string, string>> {
    return this.#texts;
  }

  /** Reads the request. Calls during a read cause one more read. */
  refresh(): Promise<void> {
    if (this.#loading) {
      this.#again = true;
      return this.#loading;
    }
    this.#loading = this.#read().finally(() => {
      this.#loading = null;
      if (!this.#again) return;
      this.#again = false;
      void this.refresh();
    });
    return this.#loading;
  }

  async #read(): Promise<void> {
    try {
      const known = this.#show.peek();
      const size = known ? this.#sizeOf(known) : undefined;
      const contentLimit = size === undefined || size > LARGE_BODY ? LARGE_PREVIEW : PREVIEW;
      let show = await this.#api.requests.showRequest({ request: this.number, contentLimit, values: false });
      // The size is unknown before the first read. A small request is read again with its contents.
      if (size === undefined && this.#sizeOf(show) <= LARGE_BODY) {
        show = await this.#api.requests.showRequest({ request: this.number, contentLimit: PREVIEW });
      }
      batch(() => {
        const before = this.#show.peek();
        if (before && before.summary?.revision !== show.summary?.revision) this.#texts.value = new Map();
        this.#show.value = show;
        this.#failure.value = null;
      });
      if (this.#body.peek() && show.summary?.held === true) await this.loadBody();
    } catch (error) {
      this.#failure.value = describeFailure(error);
    }
  }

  #sizeOf(show: ShowRequestResponse): bigint {
    return show.summary?.sent?.size ?? show.summary?.received?.body?.size ?? 0n;
  }

  /** Reads the whole content of a section. */
  async loadText(section: Section): Promise<void> {
    if (this.#texts.peek().has(section.id) || section.contentSize <= BigInt(section.content.length)) return;
    try {
      const { sections } = await this.#api.requests.showRequest({
        request: this.number,
        path: section.rawPath.replace(/<.*$/, ""),
        contentLimit: WHOLE,
      });
      const texts = new Map(this.#texts.peek());
      for (const read of sections) texts.set(read.id, read.content);
      this.#texts.value = texts;
    } catch (error) {
      this.#failure.value = describeFailure(error);
    }
  }

  /** Reads the body as it would be sent. The tree of keys and values follows it. */
  async loadBody(): Promise<void> {
    const revision = this.#show.peek()?.summary?.revision ?? 0n;
    if (this.#body.peek()?.revision === revision) return;
    try {
      const text = await this.readBody(RequestBody.AS_SENT, this.#show.peek()?.summary?.held === true);
      this.#body.value = { revision, value: parseJson(text) };
    } catch (error) {
      this.#failure.value = describeFailure(error);
    }
  }

  /** Reads a body in pieces. `exact` leaves credentials unmasked, which only a held request allows. */
  async readBody(body: RequestBody, exact: boolean): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    let offset = 0n;
    for (;;) {
      const part = await this.#api.requests.getRequestBody({
        request: this.number,
        body,
        offset,
        limit: BODY_CHUNK,
        exact,
      });
      text += decoder.decode(part.content, { stream: part.hasMore });
      offset += BigInt(part.content.length);
      if (!part.hasMore || part.content.length === 0) return text;
    }
  }

  /** Edits the request, after the edits before it. Returns `null` after a failure, which `failure` describes. */
  edit(edit: EditRequest): Promise<EditRequestResponse | null> {
    const run = async (): Promise<EditRequestResponse | null> => {
      this.#isBusy.value = true;
      try {
        const revision = this.#show.peek()?.summary?.revision;
        const answer = await this.#api.requests.editRequest({
          ...edit,
          request: this.number,
          ...(revision === undefined ? {} : { revision }),
        });
        this.#lastEdit.value = answer;
        await this.refresh();
        return answer;
      } catch (error) {
        const failure = describeFailure(error);
        if (failure.kind === ErrorKind.STALE) {
          await this.refresh();
          failure.message = "Another surface edited the request meanwhile. It is shown as it is now; edit again.";
        }
        this.#failure.value = failure;
        return null;
      } finally {
        this.#isBusy.value = false;
      }
    };
    const result = this.#queue.then(run, run);
    this.#queue = result;
    return result;
  }

  /** Sends the request on. */
  async resume(): Promise<ResumeRequestResponse | null> {
    await this.#queue;
    const revision = this.#show.peek()?.summary?.revision;
    return this.#act(() =>
      this.#api.requests.resumeRequest({
        request: this.number,
        ...(revision === undefined ? {} : { revision }),
      }),
    );
  }

  async cancel(): Promise<boolean> {
    return (await this.#act(() => this.#api.requests.cancelRequest({ request: this.number }))) !== null;
  }

  dismissFailure(): void {
    this.#failure.value = null;
  }

  async #act<Answer>(call: () => Promise<Answer>): Promise<Answer | null> {
    this.#isBusy.value = true;
    try {
      const answer = await call();
      await this.refresh();
      return answer;
    } catch (error) {
      const failure = describeFailure(error);
      await this.refresh();
      this.#failure.value = failure;
      return null;
    } finally {
      this.#isBusy.value = false;
    }
  }
}
