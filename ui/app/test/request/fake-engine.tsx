import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { signal } from "@preact/signals";
import { render } from "@testing-library/preact";
import type { ComponentChildren } from "preact";

import { createApi, type Store } from "@sayso/client";
import {
  ModeState_AutoApply,
  ModeStateSchema,
  OverrideScope,
  RequestMode,
  RequestStatus,
  type RequestEdit,
  type RequestProblem,
  type RequestSummary,
  type Section,
} from "@sayso/client/proto/request";
import {
  RequestService,
  ShowRequestResponseSchema,
  type EditRequestRequest,
  type ListSubagentsResponse_Run,
  type SetModeRequest,
  type ShowRequestResponse,
} from "@sayso/client/proto/request_service";

import { AppProvider } from "../../src/context.js";
import { createRouter, type Router } from "../../src/router.js";
import { Theme } from "../../src/theme/theme.js";
import { conversation, summary } from "./builders.js";

export const SESSION = "6f0c1d2e-9f3c";
const BODY = {
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "context" },
        { type: "text", text: "Add a **flag**." },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "I search." }] },
  ],
  temperature: 1,
};

/** An engine in memory with one request. Records the calls that change something. */
export class FakeEngine {
  readonly edits: EditRequestRequest[] = [];
  readonly resumed: { request: bigint; revision: bigint | undefined }[] = [];
  readonly canceled: bigint[] = [];
  readonly modesSet: SetModeRequest[] = [];
  readonly paused: string[] = [];
  readonly captured: string[] = [];
  readonly removed: OverrideScope[] = [];
  sections: Section[] = conversation();
  problems: RequestProblem[] = [];
  pinned: string[] = [];
  done: RequestEdit[] = [];
  undone: RequestEdit[] = [];
  mode = create(ModeStateSchema, { mode: RequestMode.INTERCEPT_ALWAYS });
  previewLimit: bigint | undefined;
  runs: ListSubagentsResponse_Run[] = [];
  others: RequestSummary[] = [];
  request = summary(5n, {
    status: RequestStatus.PAUSED,
    held: true,
    received: {
      origin: { agent: "claude", session: SESSION },
      model: "claude-sonnet-4-5",
      body: { size: 1_000n },
    },
  });
  readonly requests = new Map<bigint, ReturnType<typeof signal<RequestSummary | undefined>>>();

  show(): ShowRequestResponse {
    const { capturedSections } = this;
    return create(ShowRequestResponseSchema, {
      summary: this.request,
      sections: this.sections.map((section) => ({ ...section, pinned: this.pinned.includes(section.id) })),
      pinned: this.pinned,
      pinnedTokens: { count: BigInt(this.pinned.length * 10) },
      tokens: { count: 100n },
      contextWindow: 1_000n,
      problems: this.problems,
      edits: this.done,
      undone: this.undone,
      metadata: [
        { name: "sessionId", value: SESSION },
        { name: "requestId", value: "5" },
        { name: "location", value: "panel" },
        { name: "model", value: "claude-sonnet-4-5" },
      ],
      mode: this.mode,
      ...(capturedSections === undefined ? {} : { capturedSections }),
    });
  }
  capturedSections: bigint | undefined;
  readonly lastEvent = signal(1n);

  #apply(edit: EditRequestRequest): void {
    this.edits.push(edit);
    const mark = (id: string, fields: Partial<Section>) => {
      this.sections = this.sections.map((section) => (section.id === id ? { ...section, ...fields } : section));
    };
    const step = edit.edit;
    const targetOf = (target: { target: { value?: string | undefined } } | undefined) => target?.target.value ?? "";
    const record = { revision: this.request.revision + 1n, targetKind: "contentText", targetPath: "" } as RequestEdit;
    if (step.case === "delete") mark(targetOf(step.value), { deleted: true });
    if (step.case === "restore") mark(targetOf(step.value), { deleted: false });
    if (step.case === "pin") {
      const id = targetOf(step.value.target);
      const rest = this.pinned.filter((other) => other !== id);
      const at = step.value.before === undefined ? rest.length : rest.indexOf(step.value.before);
      rest.splice(at, 0, id);
      this.pinned = rest;
      record.targetKind = "pins";
    }
    if (step.case === "unpin") this.pinned = this.pinned.filter((id) => id !== targetOf(step.value));
    if (step.case === "undo") this.undone.push(...this.done.splice(-1));
    else if (step.case === "redo") this.done.push(...this.undone.splice(-1));
    else if (step.case === "reset") this.done = [];
    else this.done.push(record);
    this.request = { ...this.request, revision: this.request.revision + 1n };
  }

  api() {
    const transport = createRouterTransport(({ service }) => {
      service(RequestService, {
        showRequest: () => this.show(),
        listRequests: ({ held }) => ({ requests: [this.request, ...this.others].filter((item) => !held || item.held) }),
        getRequestBody: () => ({ content: new TextEncoder().encode(JSON.stringify(BODY)) }),
        getModes: () => ({
          defaultState: this.mode,
          sessions: [
            { session: SESSION, agent: "claude", lastMs: 5n, held: this.request.held ? 1n : 0n, state: this.mode },
            { session: "older-1111", agent: "codex", lastMs: 1n, state: this.mode },
          ],
          captureScope: OverrideScope.SESSION,
          ...(this.previewLimit === undefined ? {} : { previewLimit: this.previewLimit }),
        }),
        editRequest: (edit) => {
          this.#apply(edit);
          return { revision: this.request.revision, tokensSavedHere: -4n, problems: this.problems };
        },
        resumeRequest: ({ request, revision }) => {
          this.resumed.push({ request, revision });
          this.request = { ...this.request, held: false, status: RequestStatus.SENT };
          return {};
        },
        cancelRequest: ({ request }) => {
          this.canceled.push(request);
          return {};
        },
        setMode: (request) => {
          this.modesSet.push(request);
          this.mode = create(ModeStateSchema, { mode: request.mode });
          return { state: this.mode };
        },
        pauseNext: ({ session }) => {
          this.paused.push(session ?? "");
          this.mode = { ...this.mode, pauseNext: true };
          return { state: this.mode };
        },
        captureNext: ({ session }) => {
          this.captured.push(session ?? "");
          this.mode = { ...this.mode, captureNext: true, autoApply: ModeState_AutoApply.CAPTURING };
          return { state: this.mode };
        },
        removeOverrides: ({ scope }) => {
          this.removed.push(scope);
          return { removed: 2n };
        },
        diffRequest: () => ({
          sections: [{ section: "ask.1", path: "messages[0].content[1]", unified: "-Add a flag\n+Add two flags\n" }],
        }),
        listSubagents: () => ({ runs: this.runs, maxRuns: 10n }),
        replayRequest: ({ request }) => ({
          request: request + 1n,
          status: 200,
          answer: "new",
          earlierAnswer: "old",
          diff: "-old\n+new\n",
        }),
      });
    });
    return createApi(transport);
  }

  /** The parts of the store that the views of requests read. */
  store(): Store {
    const slot = (number: bigint) => {
      const known = this.requests.get(number);
      if (known) return known;
      const created = signal<RequestSummary | undefined>(number === this.request.request ? this.request : undefined);
      this.requests.set(number, created);
      return created;
    };
    return {
      connection: signal({ state: "live" }),
      canDecide: signal(true),
      readOnly: signal(false),
      lastEvent: this.lastEvent,
      engine: signal({}),
      sessions: { all: signal(new Map([[SESSION, { session: SESSION, title: "Add --json" }]])) },
      request: slot,
      learnRequests: (requests: readonly RequestSummary[]) => {
        for (const request of requests) slot(request.request).value = request;
      },
      loadTitle: () => undefined,
    } as unknown as Store;
  }
}

/** Renders a view with an engine. */
export function renderWith(engine: FakeEngine, children: ComponentChildren): { router: Router } {
  const router = createRouter({
    read: () => ({ path: "/request/5", query: "" }),
    push: () => undefined,
    onChange: () => undefined,
  });
  const theme = new Theme(document.documentElement, undefined);
  render(<AppProvider value={{ api: engine.api(), store: engine.store(), router, theme }}>{children}</AppProvider>);
  return { router };
}

/** Layout for jsdom, which has none: views are 4,000 px high, and rows 40 px. */
export function stubLayout(): void {
  const size = (name: "offsetHeight" | "offsetWidth" | "clientWidth" | "clientHeight", value: number) =>
    Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => value });
  size("offsetHeight", 40);
  size("clientHeight", 4_000);
  size("offsetWidth", 1_200);
  size("clientWidth", 1_200);
  globalThis.ResizeObserver = class {
    observe(): void {
      // The size never changes.
    }
    unobserve(): void {
      // As above.
    }
    disconnect(): void {
      // As above.
    }
  };
  HTMLDialogElement.prototype.showModal = function showModal() {
    this.open = true;
  };
  HTMLElement.prototype.setPointerCapture = () => undefined;
}
