import type { Api } from "@sayso/client";

import type { Router } from "../router.js";
import { preferences } from "../preferences.js";
import { dialogs } from "../shell/dialogs.js";

interface Target {
  api: Api;
  router: Router;
  session: string;
}

interface Command {
  description: string;
  run: (target: Target) => Promise<unknown>;
}

const now = (action: () => void): Promise<void> => {
  action();
  return Promise.resolve();
};

/** Commands of the message field, by name. */
export const COMMANDS = {
  new: { description: "Start a session", run: () => now(() => (dialogs.newSession.value = true)) },
  clear: {
    description: "Remove this session's history",
    run: async ({ api, router, session }) => {
      await api.agent.clearSession({ session });
      router.go({ view: "sessions" });
    },
  },
  todos: { description: "Show the todo list", run: ({ router }) => now(() => router.show({ kind: "todos" })) },
  history: {
    description: "Show the session's changes",
    run: ({ router }) => now(() => router.show({ kind: "history" })),
  },
  thinking: {
    description: "Show or hide thinking",
    run: () => now(() => (preferences.showThinking.value = !preferences.showThinking.peek())),
  },
  pause: { description: "Pause the next request", run: ({ api, session }) => api.requests.pauseNext({ session }) },
  interrupt: { description: "Interrupt the turn", run: ({ api, session }) => api.agent.interrupt({ session }) },
  keys: { description: "Show the keys", run: () => now(() => (dialogs.keys.value = true)) },
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof COMMANDS;

/** Name of the command that a text is; `null` for a prompt. */
export function commandOf(text: string): CommandName | null {
  const name = /^\/([a-z]+)$/.exec(text)?.[1];
  return name !== undefined && Object.hasOwn(COMMANDS, name) ? (name as CommandName) : null;
}
