import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A part of a scripted response of the Anthropic Messages API. */
export type ResponsePart =
  { thinking: string } | { text: string } | { call: string; tool: string; input: Record<string, unknown> };

export interface ScriptedModel {
  url: string;
  /** Responses to the next requests, in order. */
  responses: ResponsePart[][];
  /** Bodies of the requests that arrived, in order. */
  bodies: string[];
  stop(): Promise<void>;
}

/** Serves scripted responses of the Anthropic Messages API, as streams. */
export async function startModel(): Promise<ScriptedModel> {
  const responses: ResponsePart[][] = [];
  const bodies: string[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(Buffer.concat(chunks).toString());
      const parts = responses.shift() ?? [{ text: "No response is scripted." }];
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(
        events(parts)
          .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
          .join(""),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    responses,
    bodies,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

type ApiEvent = { type: string } & Record<string, unknown>;

function events(parts: ResponsePart[]): ApiEvent[] {
  const usage = {
    input_tokens: 1_205,
    cache_read_input_tokens: 15_000,
    cache_creation_input_tokens: 0,
    output_tokens: 412,
  };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [], usage };
  const blocks = parts.flatMap((part, index) => block(part, index));
  const stopReason = parts.some((part) => "call" in part) ? "tool_use" : "end_turn";
  return [
    { type: "message_start", message },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: stopReason }, usage },
    { type: "message_stop" },
  ];
}

function block(part: ResponsePart, index: number): ApiEvent[] {
  const start = (content: object): ApiEvent => ({ type: "content_block_start", index, content_block: content });
  const delta = (content: object): ApiEvent => ({ type: "content_block_delta", index, delta: content });
  const stop: ApiEvent = { type: "content_block_stop", index };
  if ("text" in part) {
    return [start({ type: "text", text: "" }), delta({ type: "text_delta", text: part.text }), stop];
  }
  if ("thinking" in part) {
    return [
      start({ type: "thinking", thinking: "", signature: "" }),
      delta({ type: "thinking_delta", thinking: part.thinking }),
      delta({ type: "signature_delta", signature: "c2lnbmVk" }),
      stop,
    ];
  }
  return [
    start({ type: "tool_use", id: part.call, name: part.tool, input: {} }),
    delta({ type: "input_json_delta", partial_json: JSON.stringify(part.input) }),
    stop,
  ];
}
