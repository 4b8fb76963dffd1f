import { create } from "@bufbuild/protobuf";
import type { Change } from "@sayso/client/proto/change";
import { type FileIntent, FileIntentSchema, type Intent, Performer } from "@sayso/client/proto/intent";
import { AskMode } from "@sayso/client/proto/intent_service";

import type { Engine } from "./engine.js";
import type { ResponsePart, ScriptedModel } from "./model.js";

type Message = { role: "user" | "assistant"; content: unknown };

/** An agent that behaves like another program under the gate: it sends requests by the proxy, and asks before it acts. */
export class Agent {
  #messages: Message[] = [];
  #turn: string | undefined;
  #url = "";

  private constructor(
    readonly engine: Engine,
    readonly model: ScriptedModel,
    readonly session: string,
    readonly name: string,
  ) {}

  static async start(engine: Engine, model: ScriptedModel, session: string, name = "claude"): Promise<Agent> {
    const agent = new Agent(engine, model, session, name);
    const { endpoint } = await engine.api.requests.openEndpoint({ agent: name, upstreams: { anthropic: model.url } });
    agent.#url = `${endpoint?.url ?? ""}/anthropic/v1/messages`;
    await engine.intents.startSession({ session, agent: name, location: engine.workspace });
    return agent;
  }

  /** Starts a turn with a prompt, and returns when the model has answered. */
  async prompt(text: string, response: ResponsePart[]): Promise<void> {
    this.#turn = `turn-${this.#messages.length}`;
    await this.engine.intents.startTurn({ session: this.session, turn: this.#turn });
    this.#messages.push({ role: "user", content: [{ type: "text", text }] });
    await this.#send(response);
  }

  /** Gives the model the results of its calls. */
  async results(results: Record<string, string>, response: ResponsePart[]): Promise<void> {
    const content = Object.entries(results).map(([call, text]) => ({
      type: "tool_result",
      tool_use_id: call,
      content: text,
    }));
    this.#messages.push({ role: "user", content });
    await this.#send(response);
  }

  async endTurn(): Promise<void> {
    await this.engine.intents.endTurn({ session: this.session, ...(this.#turn !== undefined && { turn: this.#turn }) });
    this.#turn = undefined;
  }

  /** Asks to change files. The change is pending unless a rule decides. */
  changeFiles(operations: FileIntent["operation"][], call?: string, mode = AskMode.POLICY): Promise<Change> {
    const changes = operations.map((operation) => create(FileIntentSchema, { operation }));
    return this.submit({ case: "changeFiles", value: { changes } as never }, call, mode);
  }

  async submit(intent: Intent["intent"], call?: string, askMode = AskMode.POLICY): Promise<Change> {
    const { details } = await this.engine.intents.submit({
      intent: { intent },
      origin: {
        agent: this.name,
        session: this.session,
        ...(this.#turn !== undefined && { turn: this.#turn }),
        ...(call !== undefined && { call }),
      },
      performer: intent.case === "changeFiles" ? Performer.GATE : Performer.AGENT,
      askMode,
    });
    if (!details?.change) throw new Error("the engine returned no change");
    return details.change;
  }

  async #send(response: ResponsePart[]): Promise<void> {
    this.model.responses.push(response);
    const answer = await fetch(this.#url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": "sk-none",
        "anthropic-version": "2023-06-01",
        "x-claude-code-session-id": this.session,
      },
      body: JSON.stringify({
        model: "claude-sonnet-4-5",
        max_tokens: 4096,
        stream: true,
        system: "You write Rust.",
        tools: [{ name: "Edit", description: "Edits a file", input_schema: { type: "object" } }],
        messages: this.#messages,
      }),
    });
    await answer.text();
    if (!answer.ok) throw new Error(`the proxy answered ${answer.status}`);
    this.#messages.push({ role: "assistant", content: response.map(asContent) });
  }
}

function asContent(part: ResponsePart): object {
  if ("text" in part) return { type: "text", text: part.text };
  if ("thinking" in part) return { type: "thinking", thinking: part.thinking, signature: "c2lnbmVk" };
  return { type: "tool_use", id: part.call, name: part.tool, input: part.input };
}

/** Operation that replaces the content of a file. */
export const write = (path: string, newContent: string): FileIntent["operation"] =>
  ({ case: "write", value: { path, newContent } }) as FileIntent["operation"];
