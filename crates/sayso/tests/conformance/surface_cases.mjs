// Cases of what surfaces draw from: diffs, the inbox, marks, suggested rules, requests and conversations.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createClient } from "@connectrpc/connect";
import { BEFORE, FILE, NOT_ASKED, until } from "./cases.mjs";
import { open } from "./transports.mjs";
import { Change_Status as Status, RememberAs_Scope, Ruling, Surface_Kind } from "./generated/sayso/v1/change_pb.js";
import {
  ConversationBlock_Kind as BlockKind,
  ConversationService,
} from "./generated/sayso/v1/conversation_service_pb.js";
import { DiffLayout, DiffRow_Kind as RowKind } from "./generated/sayso/v1/diff_pb.js";
import { RequestService } from "./generated/sayso/v1/request_service_pb.js";
import { WatchRequest_Role } from "./generated/sayso/v1/review_service_pb.js";

const AFTER = BEFORE.replace("frog", "toad");
const subject = (value) => ({ subject: { case: "change", value } });

/** Reads a stream of messages up to the first one that fits. */
async function first(stream, fits) {
  for await (const { kind } of stream) {
    if (fits(kind)) return kind.value;
  }
  return assert.fail("the stream ended");
}

/** A model that says one sentence. */
async function model(use) {
  const answer = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5",
    content: [{ type: "text", text: "Two lines." }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  };
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Sends a prompt as Claude Code does. */
async function ask(url, session, prompt) {
  const body = {
    model: "claude-sonnet-4-5",
    max_tokens: 100,
    tools: [{ name: "Read", description: "Reads.", input_schema: { type: "object" } }],
    messages: [{ role: "user", content: prompt }],
  };
  const headers = { "content-type": "application/json", "x-claude-code-session-id": session };
  const answer = await fetch(`${url}/anthropic/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 200);
  await answer.json();
}

export const surfaceCases = {
  async diff(scene) {
    const details = await scene.propose(AFTER);
    const request = { subject: subject(details.change.change) };
    const list = await scene.review.getDiff(request);
    assert.deepEqual(
      list.files.map((file) => [file.path, Number(file.added), Number(file.removed)]),
      [[FILE, 1, 1]],
    );
    const page = await scene.review.getDiff({ ...request, path: FILE, previewHash: list.previewHash });
    const line = ({ kind, content }) => `${RowKind[kind]} ${content.text}`;
    assert.deepEqual(page.rows.map(line), [
      "CONTEXT old pond",
      "REMOVED a frog jumps in",
      "ADDED a toad jumps in",
      "CONTEXT the sound of water",
    ]);
    const beside = await scene.review.getDiff({ ...request, path: FILE, layout: DiffLayout.SIDE_BY_SIDE });
    assert.equal(beside.sideBySideRows.length, 3);
    await scene.deny(details);
  },

  async inbox(scene) {
    const details = await scene.propose(AFTER);
    const key = `change:${details.change.change}`;
    const { items, total } = await scene.review.listInbox({ session: "s–1" });
    assert.deepEqual(items.map((item) => item.key), [key]);
    assert.equal(total, 1n);
    assert.equal(items[0].subject.value.previewHash, details.change.previewHash);
    assert.equal((await scene.review.listInbox({ session: "another" })).items.length, 0);
    await scene.deny(details);
    assert.equal((await scene.review.listInbox({})).items.length, 0);
  },

  async "inbox stream"(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const messages = [];
    let details;
    for await (const { kind } of scene.review.watchInbox({})) {
      if (kind.case === "heartbeat") continue;
      messages.push([kind.case, kind.value.key ?? kind.value.items?.length ?? kind.value]);
      if (kind.case === "page") details = await scene.propose(AFTER);
      else if (kind.case === "removed") break;
      else await scene.deny(details);
    }
    const key = `change:${details.change.change}`;
    assert.deepEqual(messages, [["page", 0], ["added", key], ["removed", key]]);
  },

  async "await"(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const details = await scene.propose(AFTER);
    const kinds = [];
    let status;
    for await (const { kind } of scene.review.awaitChange({ change: details.change.change })) {
      kinds.push(kind.case);
      if (kind.case === "details") status = kind.value.change.status;
      else if (kinds.length === 1) await scene.deny(details);
    }
    assert.equal(kinds[0], "heartbeat");
    assert.equal(kinds.at(-1), "details");
    assert.equal(status, Status.DENIED);
  },

  async marks(scene) {
    const details = await scene.propose(AFTER);
    const { seen } = await scene.review.markSeen({ change: details.change.change, path: FILE, hunks: [1n] });
    assert.deepEqual(seen.map(({ path, hunks }) => [path, hunks]), [[FILE, [1n]]]);
    const { lastEvent } = await scene.review.status({});
    assert.equal((await scene.review.markRead({ through: lastEvent })).through, lastEvent);
    assert.equal((await scene.review.markRead({ through: 1n })).through, lastEvent, "it never decreases");
    await scene.deny(details);
  },

  async rule(scene) {
    const details = await scene.propose(AFTER);
    const rememberAs = { scope: RememberAs_Scope.ALWAYS, ruling: Ruling.ALLOW };
    const suggested = await scene.review.suggestRule({ change: details.change.change, rememberAs });
    assert.match(suggested.ruleToml, /haiku\.txt/);
    assert.match(suggested.file, /config\.toml$/);
    assert.ok(suggested.explanation.length > 0);
    assert.ok(suggested.covered.length <= suggested.inspected);
    await scene.deny(details);
  },

  async surfaces(scene) {
    if (scene.traits.unaryOnly) return NOT_ASKED;
    const surface = { kind: Surface_Kind.BROWSER, name: scene.name };
    const named = async () => (await scene.review.listSurfaces({})).surfaces.map((attached) => attached.surface.name);
    const detaching = new AbortController();
    const watching = scene.review.watch({ role: WatchRequest_Role.SURFACE, surface }, { signal: detaching.signal });
    const stream = watching[Symbol.asyncIterator]();
    assert.equal((await stream.next()).value.kind.case, "heartbeat");
    assert.ok((await named()).includes(scene.name));
    detaching.abort();
    await stream.next().catch(() => {});
    await until("the surface is gone", async () => !(await named()).includes(scene.name));
  },

  async conversation(scene) {
    const { name, server, traits } = scene;
    const transport = () => open(name, server, traits.overSocket ? null : server.login);
    const requests = createClient(RequestService, transport());
    const conversations = createClient(ConversationService, transport());
    const session = "0d6a3f0e-5b1c-4c3e-9a57-2f6f0a9b7c11";
    await model(async (url) => {
      const { endpoint } = await requests.openEndpoint({ agent: "claude", upstreams: { anthropic: url } });
      await ask(endpoint.url, session, "Count the lines.");
      const preview = () => conversations.getConversationPreview({ session });
      // A response is recorded after the agent has received it.
      await until("the answer is recorded", async () => (await preview()).last === 2n);
      const { blocks } = await preview();
      assert.deepEqual(
        blocks.map((block) => [block.number, block.kind, block.text]),
        [
          [1n, BlockKind.PROMPT, "Count the lines."],
          [2n, BlockKind.ASSISTANT_TEXT, "Two lines."],
        ],
      );
      const { block } = await conversations.getConversationBlock({ session, number: 2n });
      assert.equal(block.text, "Two lines.");
      if (!traits.unaryOnly) {
        const stream = conversations.watchConversation({ session, after: 1n });
        const next = await first(stream, (kind) => kind.case === "block");
        assert.deepEqual([next.number, next.text], [2n, "Two lines."]);
      }
      const [summary] = (await requests.listRequests({ session })).requests;
      assert.equal(summary.cost.input, 10n);
      const shown = await requests.showRequest({ request: summary.request });
      assert.ok(shown.sections.some((section) => section.content === "Count the lines."));
      const costs = await requests.getCost({ session });
      assert.equal(costs.total.output, 5n);
      assert.match(costs.pricesDate, /^\d{4}-\d{2}/);
      assert.equal((await requests.closeEndpoint({ capability: endpoint.capability })).closed, true);
    });
  },
};
