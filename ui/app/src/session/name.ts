import type { SessionInfo } from "@sayso/client";

import { escapeUntrusted } from "../diff/words.js";

const MAX_TITLE = 120;

/** Title of a session: its first prompt, or the agent with the end of the session's id. */
export function sessionTitle(session: SessionInfo | undefined, id: string): string {
  if (id === "") return "Without a session";
  const title = session?.title;
  if (title !== undefined && title !== "") {
    const line = escapeUntrusted(title.trim());
    return line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE)}…` : line;
  }
  return `${escapeUntrusted(session?.agent ?? "Session")} …${escapeUntrusted(id.slice(-4))}`;
}

/** Last part of the directory that a session works in. */
export function locationName(location: string | undefined): string | undefined {
  if (location === undefined || location === "") return undefined;
  return escapeUntrusted(location.replace(/\/+$/, "").split("/").at(-1) ?? location);
}
