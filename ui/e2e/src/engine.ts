import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, mkdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { type Api, createApi, createBrowserTransport } from "@sayso/client";
import { IntentService } from "@sayso/client/proto/intent_service";
import { type Client, createClient } from "@connectrpc/connect";

/** The real binary: `SAYSO_BIN`, or the debug build of this checkout. */
export function binary(): string {
  const found = process.env.SAYSO_BIN ?? join(import.meta.dirname, "../../../target/debug/sayso");
  if (!existsSync(found)) {
    throw new Error(
      `${found} does not exist. Build it with \`cargo build -p sayso\`, or name another one in SAYSO_BIN.`,
    );
  }
  return found;
}

/** Line that `sayso serve --json` prints. */
interface Serving {
  url: string;
  token: string;
}

export interface Engine {
  url: string;
  workspace: string;
  /** Variables of the engine's process. */
  environment: Record<string, string>;
  /** Calls as a person: with a login. */
  api: Api;
  /** Calls as an agent: with the token. */
  intents: Client<typeof IntentService>;
  /** A link that logs a browser in, once. */
  loginLink(view?: string): Promise<string>;
  write(path: string, content: string): Promise<void>;
  /** Ends the engine's process and starts another one on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts `sayso serve` in a throw-away workspace, with an environment of its own and the variables given. */
export async function startEngine(variables: Record<string, string> = {}): Promise<Engine> {
  const home = await realpath(await mkdtemp(join(tmpdir(), "sayso-e2e-")));
  const workspace = join(home, "ledger-cli");
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    XDG_STATE_HOME: join(home, "state"),
    XDG_CONFIG_HOME: join(home, "config"),
    ...variables,
  };
  await mkdir(workspace);

  const run = (command: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn(binary(), command, { cwd: workspace, env: environment, stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      child.stdout.on("data", (data) => (output += String(data)));
      child.stderr.on("data", (data) => (output += String(data)));
      child.on("close", (code) => {
        if (code === 0) resolve(output.trim());
        else reject(new Error(`sayso ${command.join(" ")} exited with ${code ?? "a signal"}: ${output}`));
      });
    });
  let child: ChildProcess;
  const start = async (port: string): Promise<Serving> => {
    const started = spawn(binary(), ["serve", "--json", "--port", port], {
      cwd: workspace,
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    child = started;
    for await (const line of createInterface({ input: started.stdout })) return JSON.parse(line) as Serving;
    throw new Error("sayso serve ended before it printed its address");
  };
  const end = (): Promise<void> =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) {
        resolve();
        return;
      }
      child.once("exit", () => resolve());
      child.kill("SIGINT");
    });

  const serving = await start("0");
  const withToken = (token: string) =>
    createBrowserTransport({
      baseUrl: serving.url,
      fetch: (input, init) => {
        const headers = new Headers(init?.headers);
        headers.set("authorization", `Bearer ${token}`);
        return fetch(input, { ...init, headers });
      },
    });
  const logIn = async () => (JSON.parse(await run(["login", "--json"])) as { login: string }).login;
  const engine: Engine = {
    url: serving.url,
    workspace,
    environment,
    api: createApi(withToken(await logIn())),
    intents: createClient(IntentService, withToken(serving.token)),
    loginLink: async (view) => {
      const output = await run(["open", "--print", ...(view === undefined ? [] : [view])]);
      const link = /https?:\S+/.exec(output)?.[0];
      if (link === undefined) throw new Error(`sayso open printed no link: ${output}`);
      return link;
    },
    write: async (path, content) => {
      await mkdir(dirname(join(workspace, path)), { recursive: true });
      await writeFile(join(workspace, path), content);
    },
    restart: async () => {
      await end();
      const again = await start(new URL(serving.url).port);
      engine.intents = createClient(IntentService, withToken(again.token));
      engine.api = createApi(withToken(await logIn()));
    },
    stop: async () => {
      await end();
      await rm(home, { recursive: true, force: true });
    },
  };
  return engine;
}
