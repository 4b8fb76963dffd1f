import type { RequestSummary } from "@sayso/client/proto/request";
import type { GetModesResponse_Session } from "@sayso/client/proto/request_service";

/** An entry of the conversation picker. */
export interface ConversationChoice {
  session: string;
  /** `location · name · …id tail`. */
  label: string;
  lastMs: bigint;
  /** Number of the request that the entry shows: the oldest paused one, else the latest. */
  request: bigint | null;
  held: number;
}

const TAIL = 4;

/** Label of a conversation: agent, title, and the end of the session id. */
export function conversationLabel(agent: string | undefined, title: string | undefined, session: string): string {
  const parts = [agent, title].filter((part): part is string => part !== undefined && part !== "");
  return [...parts, `…${session.slice(-TAIL)}`].join(" · ");
}

/** Conversations with requests, latest activity first. */
export function conversationChoices(
  sessions: readonly GetModesResponse_Session[],
  requests: readonly RequestSummary[],
  titleOf: (session: string) => string | undefined,
): ConversationChoice[] {
  const choices = new Map<string, ConversationChoice>();
  const entry = (session: string, agent: string | undefined, lastMs: bigint): ConversationChoice => {
    const known = choices.get(session);
    if (known) {
      if (lastMs > known.lastMs) known.lastMs = lastMs;
      return known;
    }
    const label = conversationLabel(agent, titleOf(session), session);
    const choice: ConversationChoice = { session, label, lastMs, request: null, held: 0 };
    choices.set(session, choice);
    return choice;
  };
  for (const { session, agent, lastMs } of sessions) entry(session, agent, lastMs);
  // A request may be in the list of recorded ones and among the held ones.
  const byNumber = new Map(requests.map((request) => [request.request, request]));
  const newestFirst = [...byNumber.values()].sort((a, b) => (a.request < b.request ? 1 : -1));
  for (const request of newestFirst) {
    const origin = request.received?.origin;
    const choice = entry(origin?.session ?? "", origin?.agent, request.timeMs);
    choice.request ??= request.request;
  }
  for (const request of newestFirst) {
    if (!request.held) continue;
    const choice = choices.get(request.received?.origin?.session ?? "");
    if (!choice) continue;
    choice.request = request.request;
    choice.held += 1;
  }
  return [...choices.values()].sort((a, b) => (a.lastMs < b.lastMs ? 1 : a.lastMs > b.lastMs ? -1 : 0));
}

/** The request that the editor switches to when requests become paused. `null`: it stays. */
export function followTarget(options: {
  isFollowing: boolean;
  present: bigint | null;
  before: readonly bigint[];
  held: readonly bigint[];
}): bigint | null {
  const { isFollowing, present, before, held } = options;
  const fresh = held.filter((request) => !before.includes(request));
  const newest = fresh.reduce<bigint | null>((max, request) => (max === null || request > max ? request : max), null);
  if (newest !== null && isFollowing && newest !== present) return newest;
  // Without a selection, the first paused request is shown.
  if (present === null) return held[0] ?? null;
  return null;
}
