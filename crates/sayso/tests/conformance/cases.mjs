// Cases for every transport. A failed case throws. The names are those of the Rust table.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Code, ConnectError, cors, createClient } from "@connectrpc/connect";
import { called, open } from "./transports.mjs";
import { Change_Status as Status } from "./generated/sayso/v1/change_pb.js";
import { ErrorDetailSchema, ErrorKind } from "./generated/sayso/v1/error_pb.js";
import { PreviewView } from "./generated/sayso/v1/file_pb.js";
import { IntentService } from "./generated/sayso/v1/intent_service_pb.js";
import {
  GetChangeRequest_PreviewOf,
  ProposeRequest_Mode,
  ReviewService,
  WatchRequest_Role,
} from "./generated/sayso/v1/review_service_pb.js";

/** Returned by a case that does not apply to a transport. */
export const NOT_ASKED = "–";
export const FILE = "haiku.txt";
export const BEFORE = "old pond\na frog jumps in\nthe sound of water\n";

/** One transport and its server, which starts with the one file. */
export class Scene {
  constructor(name, server, traits) {
    Object.assign(this, { name, server, traits });
    const transport = open(name, server, traits.overSocket ? null : server.login);
    this.review = createClient(ReviewService, transport);
    this.intent = createClient(IntentService, transport);
  }

  read = (path = FILE) => readFile(join(this.server.workspace, path), "utf8");

  /** Proposes a change that waits. */
  async propose(newContent, path = FILE, view = PreviewView.DIFF) {
    const write = { operation: { case: "write", value: { path, newContent } } };
    const changes = { case: "proposal", value: { changes: [write] } };
    const origin = { agent: this.name, session: "s–1" };
    const { details } = await this.review.propose({ changes, origin, mode: ProposeRequest_Mode.ASK, view });
    assert.equal(details.change.status, Status.PENDING);
    assert.equal(details.change.origin.session, "s–1");
    return details;
  }

  async decide({ change }, answer) {
    const { details } = await this.review.decide({
      change: change.change,
      verdict: { previewHash: change.previewHash, answer: { answer } },
    });
    return details.change;
  }

  approve = (details) => this.decide(details, { case: "approve", value: {} });
  deny = (details) => this.decide(details, { case: "deny", value: { reason: "enough seen" } });
  undo = (change) => this.review.undo({ target: { target: { case: "change", value: change.change } } });

  async status(change) {
    return (await this.review.getChange({ change: change.change })).details.change.status;
  }

  /** Follows the stream until `enough`, then breaks off. The first message is a heartbeat, and numbers have no gap. */
  async watch(after, enough) {
    const events = [];
    let greeted = false;
    for await (const { kind } of this.review.watch({ after })) {
      if (!greeted) {
        assert.equal(kind.case, "heartbeat");
        greeted = true;
      } else if (kind.case === "event") {
        assert.equal(kind.value.number, after + BigInt(events.length) + 1n);
        events.push(kind.value);
      }
      if (await enough(events)) break;
    }
    return events;
  }
}

async function refused(call, code) {
  const error = await call.then(() => assert.fail("it was not refused"), (error) => error);
  assert.ok(error instanceof ConnectError, String(error));
  assert.equal(Code[error.code], Code[code], error.message);
  return error;
}

async function drained(stream) {
  for await (const _ of stream);
}

/** Checks the error about an unknown change: kind, message and hint are among its details. */
function explains(error) {
  const [detail, ...more] = error.findDetails(ErrorDetailSchema);
  assert.ok(detail, `no detail: ${error}`);
  assert.deepEqual(more, []);
  assert.equal(detail.kind, ErrorKind.INVALID_ARGS);
  assert.equal(detail.message, error.rawMessage);
  assert.match(detail.message, /999999/);
  assert.match(detail.hint, /sayso log/);
}

/** Waits for a condition, at most for 20 s. */
export async function until(what, check) {
  const end = Date.now() + 20_000;
  while (!(await check())) {
    assert.ok(Date.now() < end, `${what}: not within 20 s`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Fails with the name of the step if it takes too long, so that a hang names its place. */
function step(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within 20 s`)), 20_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const UNKNOWN = 999_999n;

export const cases = {
  async status({ review, server }) {
    const status = await review.status({ details: true });
    assert.equal(status.workspace, server.workspace);
    assert.equal(status.process, server.process);
    assert.match(status.version, /^\d+\.\d+\.\d+/);
    assert.ok(status.startedMs > 1_500_000_000_000n);
  },

  async propose(scene) {
    const details = await scene.propose(BEFORE.replace("frog", "grüne 🐸"));
    const [file] = details.preview.files;
    assert.equal(file.path, FILE);
    assert.equal(file.hunks.length, 1);
    assert.match(file.unifiedDiff, /^-a frog jumps in$/m);
    assert.match(file.unifiedDiff, /^\+a grüne 🐸 jumps in$/m);
    assert.equal(await scene.read(), BEFORE, "nothing happens before a verdict");
    await scene.deny(details);
  },

  async pending(scene) {
    const { change } = await scene.propose("pending\n");
    const listed = async (session) =>
      (await scene.review.listPending({ session })).pending.map((details) => details.change.change);
    assert.ok((await listed()).includes(change.change));
    assert.ok((await listed("s–1")).includes(change.change));
    assert.deepEqual(await listed("another"), []);
    await scene.deny({ change });
    assert.ok(!(await listed()).includes(change.change));
  },

  async show(scene) {
    const proposed = await scene.propose("shown\n");
    const request = { change: proposed.change.change, view: PreviewView.FULL };
    const { details } = await scene.review.getChange(request);
    const [file] = details.preview.files;
    assert.match(file.unifiedDiff, /^\+shown$/m);
    assert.equal(new TextDecoder().decode(file.afterContent.state.value.content), "shown\n");
    assert.equal(details.change.previewHash, proposed.change.previewHash);
    await scene.deny(proposed);
  },

  async decide(scene) {
    const details = await scene.propose(BEFORE + "decided\n");
    const change = await scene.approve(details);
    assert.equal(change.status, Status.APPLIED);
    assert.equal(await scene.read(), BEFORE + "decided\n");
    await refused(scene.approve(details), Code.FailedPrecondition);
    await scene.undo(change);
  },

  async undo(scene) {
    const change = await scene.approve(await scene.propose("to be undone\n"));
    assert.equal(await scene.read(), "to be undone\n");
    const { details } = await scene.undo(change);
    assert.equal(details.change.status, Status.APPLIED);
    assert.equal(await scene.read(), BEFORE);
    assert.equal(await scene.status(change), Status.UNDONE);
  },

  async large(scene) {
    const content = "ein großer Text 🐸\n".repeat(100_000);
    const details = await scene.propose(content, "large.txt", PreviewView.CONTENT);
    const previewOf = GetChangeRequest_PreviewOf.APPLIED;
    await scene.approve(details);
    const change = details.change.change;
    const got = await scene.review.getChange({ change, previewOf, view: PreviewView.FULL });
    const bytes = got.details.preview.files[0].afterContent.state.value.content;
    assert.ok(new TextDecoder().decode(bytes) === content, `${bytes.length} bytes came back, and not those`);
    assert.ok((await scene.read("large.txt")) === content);
    await scene.undo(details.change);
  },

  async stream(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const { lastEvent } = await scene.review.status({});
    let proposed;
    const events = await scene.watch(lastEvent, async (events) => {
      // Once the watch has begun, so that it is the stream which tells.
      proposed ??= scene.propose("streamed\n").then((details) => scene.approve(details));
      return events.at(-1)?.kind.case === "ended";
    });
    const kinds = events.map((event) => event.kind.case);
    assert.deepEqual(kinds, ["proposed", "decided", "applying", "ended"]);
    await scene.undo(await proposed);
  },

  async resume(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const { lastEvent } = await scene.review.status({});
    assert.ok(lastEvent > 10n, `only ${lastEvent} events`);
    const whole = await scene.watch(0n, (events) => BigInt(events.length) === lastEvent);
    const first = await scene.watch(0n, (events) => events.length === 7);
    const rest = await scene.watch(7n, (events) => BigInt(events.length) === lastEvent - 7n);
    assert.deepEqual([...first, ...rest], whole);
  },

  async cancel(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const surfaces = async () => (await scene.review.status({})).surfaces;
    const before = await step("status before", surfaces());
    const cancelling = new AbortController();
    const watching = scene.review.watch({ role: WatchRequest_Role.SURFACE }, { signal: cancelling.signal });
    const stream = watching[Symbol.asyncIterator]();
    const first = await step("first message", stream.next());
    assert.equal(first.value.kind.case, "heartbeat");
    assert.equal(await step("status while attached", surfaces()), before + 1);
    cancelling.abort();
    const rest = drained({ [Symbol.asyncIterator]: () => stream });
    await step("end of the cancelled stream", refused(rest, Code.Canceled));
    await until("the surface is gone", async () => (await surfaces()) === before);
  },

  async error(scene) {
    explains(await refused(scene.review.getChange({ change: UNKNOWN }), Code.InvalidArgument));
  },

  async "stream error"(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    explains(await refused(drained(scene.intent.await({ change: UNKNOWN })), Code.InvalidArgument));
  },

  async deadline(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const details = await scene.propose("undecided\n");
    const { change } = details.change;
    await refused(drained(scene.intent.await({ change }, { timeoutMs: 300 })), Code.DeadlineExceeded);
    assert.equal(await scene.status(details.change), Status.PENDING);
    await scene.deny(details);
  },

  // The client's own clock is left out, so that it is the server which ends the call.
  async "server deadline"(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const details = await scene.propose("undecided\n");
    const { change } = details.change;
    const headers = scene.name.includes("gRPC") ? { "Grpc-Timeout": "300m" } : { "Connect-Timeout-Ms": "300" };
    await refused(drained(scene.intent.await({ change }, { headers })), Code.DeadlineExceeded);
    assert.equal(await scene.status(details.change), Status.PENDING);
    await scene.deny(details);
  },

  async "no token"({ name, server, traits }) {
    const review = createClient(ReviewService, open(name, server, null));
    // Over the socket the system vouches for who calls.
    if (traits.overSocket) return void (await review.status({}));
    const error = await refused(review.status({}), Code.Unauthenticated);
    const [detail] = error.findDetails(ErrorDetailSchema);
    assert.ok(detail, `no detail: ${error}`);
    assert.equal(detail.kind, ErrorKind.TOOL_DENIED);
    assert.match(detail.hint, /Authorization: Bearer/);
    if (!traits.unaryOnly) await refused(drained(review.watch({})), Code.Unauthenticated);
  },

  async "wrong token"({ name, server, traits }) {
    if (traits.overSocket) return NOT_ASKED;
    const review = createClient(ReviewService, open(name, server, `${server.token}x`));
    await refused(review.status({}), Code.Unauthenticated);
    await refused(review.decide({ change: 1n }), Code.Unauthenticated);
  },

  // Looks back at all of them.
  async get({ server, traits }) {
    if (!traits.usesGet) return NOT_ASKED;
    const [gets, posts] = [called(server, "GET"), called(server, "POST")];
    const reading = ["GetChange", "GetDiff", "ListInbox", "ListPending", "ListSurfaces", "Status", "SuggestRule"];
    assert.deepEqual([...gets].sort(), reading);
    const streams = ["AwaitChange", "Watch", "WatchInbox"];
    const effects = ["Decide", "MarkRead", "MarkSeen", "Propose", "Undo"];
    assert.deepEqual([...posts].sort(), [...streams, ...effects].sort());
  },

  // What a browser asks for on behalf of a page, and what it lets the page read.
  async page({ server, traits }) {
    if (!traits.inBrowsers) return NOT_ASKED;
    const url = `${server.url}/sayso.v1.ReviewService/Status`;
    const list = (response, name) => (response.headers.get(name) ?? "").toLowerCase().split(/, */);
    const includes = (all, some) => {
      const missing = some.filter((one) => !all.includes(one.toLowerCase()));
      assert.deepEqual(missing, []);
    };
    const ask = (origin, token) =>
      fetch(url, {
        method: "POST",
        headers: { origin, "content-type": "application/json", authorization: `Bearer ${token}` },
        body: "{}",
      });
    const preflight = await fetch(url, {
      method: "OPTIONS",
      headers: { origin: server.origin, "access-control-request-method": "POST" },
    });
    assert.equal(preflight.headers.get("access-control-allow-origin"), server.origin);
    includes(list(preflight, "access-control-allow-methods"), cors.allowedMethods);
    includes(list(preflight, "access-control-allow-headers"), [...cors.allowedHeaders, "Authorization"]);
    const expected = { [server.token]: 200, wrong: 401 };
    for (const [token, status] of Object.entries(expected)) {
      const answer = await ask(server.origin, token);
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get("access-control-allow-origin"), server.origin, `the page may read the ${status}`);
      includes(list(answer, "access-control-expose-headers"), cors.exposedHeaders);
    }
    const foreign = await ask("http://elsewhere.example", server.token);
    assert.equal(foreign.status, 403);
    assert.equal(foreign.headers.get("access-control-allow-origin"), null);
  },
};
