// A whole invocation of the built-in agent over an official transport: the client answers the agent's requests to surfaces.
// Standard input: {"server":{url,login,…},"transports":[name,…]}. Standard output: one JSON object for each transport.
import { createClient } from "@connectrpc/connect";
import { toJson } from "@bufbuild/protobuf";
import * as protocol from "./generated/sayso/v1/agent_service_pb.js";
import { open } from "./transports.mjs";

const { AgentService, InvokeEventSchema, CommandDispatchResponse_Status } = protocol;

async function input() {
  let text = "";
  for await (const piece of process.stdin.setEncoding("utf8")) text += piece;
  return JSON.parse(text);
}

/** The answer of an editor or a terminal to a request of the agent. */
function answer({ case: kind, value }) {
  if (kind === "requestFileRead") {
    const { requestId, path } = value;
    return { case: "fileReadResponse", value: { requestId, path, content: "from the editor\n", encoding: "utf-8", dirty: true } };
  }
  if (kind === "executeCommandRequest") {
    const { requestId } = value;
    const status = CommandDispatchResponse_Status.RAN;
    return {
      case: "commandDispatchResponse",
      value: { requestId, terminalId: "terminal-1", status, exitCode: 0, output: "from the terminal\n" },
    };
  }
}

/** Runs a prompt, and returns its events as JSON. */
async function run(client, scenario, prompt) {
  const settings = { model: "test", dialect: "anthropic-messages", upstream: "anthropic", scenario };
  const { session } = await client.startSession({ settings });
  const events = [];
  for await (const { kind } of client.invoke({ session: session.session, prompt })) {
    if (kind.case !== "event") continue;
    events.push(toJson(InvokeEventSchema, kind.value));
    const event = answer(kind.value.event);
    if (event) await client.submitClientEvent({ session: session.session, event: { event } });
  }
  return events;
}

const { server, transports } = await input();
for (const transport of transports) {
  const client = createClient(AgentService, open(transport, server, server.login));
  const reads = await run(client, "EDITOR_CODE", "read it");
  const runs = await run(client, "CODE", "run it");
  process.stdout.write(`${JSON.stringify({ transport, reads, runs })}\n`);
}
process.stdout.write("", () => process.exit(0));
