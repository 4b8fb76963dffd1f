import type { SessionInfo } from "@sayso/client";
import { Change_Status, type Change } from "@sayso/client/proto/change";
import type { InboxItem } from "@sayso/client/proto/inbox";
import { RequestStatus, type RequestSummary } from "@sayso/client/proto/request";

import { count } from "../diff/words.js";
import type { IconName } from "../icon.js";

export type Tone = "ask" | "run" | "bad" | "quiet";

/** State of a session in a list: icon, words and colour. */
export interface SessionStatus {
  icon: IconName;
  text: string;
  tone: Tone;
  /** Number of items that wait for a person. */
  waiting: number;
  group: "waiting" | "running" | "past";
}

/** Words for what a waiting item asks. */
export function waitingText(item: InboxItem): string {
  switch (item.subject.case) {
    case "request":
      return "request paused";
    case "turn":
      return `${count(Number(item.files), "file")} to review`;
    default:
      return item.files > 0n ? `write to ${count(Number(item.files), "file")}` : item.summary;
  }
}

export function sessionStatus(
  session: SessionInfo,
  inbox: readonly InboxItem[],
  lastChange: Change | undefined,
  lastRequest: RequestSummary | undefined,
): SessionStatus {
  const items = inbox.filter((item) => (item.session ?? "") === session.session);
  const decisions = items.filter((item) => item.subject.case !== "turn");
  const [first] = decisions;
  if (first) {
    const icon = first.subject.case === "request" ? "paused" : "waiting";
    return { icon, text: waitingText(first), tone: "ask", waiting: decisions.length, group: "waiting" };
  }
  const isRetrying = lastRequest?.status === RequestStatus.SENT && lastRequest.upstreamRetry !== undefined;
  const isRunning =
    !session.ended && (session.turn !== undefined || lastRequest?.status === RequestStatus.SENT || isRetrying);
  if (isRunning) {
    const status = lastRequest?.upstreamRetry?.status;
    const text = isRetrying ? `retrying${status === undefined ? "" : `, ${status}`}` : "running";
    return { icon: "running", text, tone: "run", waiting: 0, group: "running" };
  }
  const [turn] = items;
  if (turn) return { icon: "later", text: waitingText(turn), tone: "run", waiting: 0, group: "past" };
  return { ...pastStatus(lastChange), waiting: 0, group: "past" };
}

function pastStatus(change: Change | undefined): { icon: IconName; text: string; tone: Tone } {
  if (!change) return { icon: "chat", text: "no changes", tone: "quiet" };
  const { icon, text, state } = changeState(change);
  return { icon, text, tone: state === "failed" || state === "denied" ? "bad" : "quiet" };
}

/** State of a change: icon, word and the class of its colour. */
export function changeState(change: Change): { icon: IconName; text: string; state: string } {
  switch (change.status) {
    case Change_Status.PENDING:
      return { icon: "waiting", text: "waiting", state: "waiting" };
    case Change_Status.PERMITTED:
      return { icon: "running", text: "running", state: "running" };
    case Change_Status.INTERRUPTED:
      return { icon: "running", text: "applying", state: "running" };
    case Change_Status.APPLIED:
      return appliedState(change);
    case Change_Status.UNDONE:
      return { icon: "undone", text: "undone", state: "undone" };
    case Change_Status.DENIED:
      return { icon: "denied", text: "denied", state: "denied" };
    case Change_Status.STALE:
      return { icon: "stale", text: "stale", state: "stale" };
    case Change_Status.CANCELLED:
      return { icon: "close", text: "cancelled", state: "cancelled" };
    case Change_Status.FAILED:
      return { icon: "failed", text: "failed", state: "failed" };
    default:
      return { icon: "notice", text: "unknown", state: "cancelled" };
  }
}

function appliedState(change: Change): { icon: IconName; text: string; state: string } {
  if (change.subject?.subject.case === "files") {
    return { icon: "applied", text: change.partial ? "applied in part" : "applied", state: "applied" };
  }
  const code = change.exitCode;
  if (code !== undefined && code !== 0) return { icon: "failed", text: `exit ${code}`, state: "failed" };
  return { icon: "applied", text: code === undefined ? "ran" : "exit 0", state: "applied" };
}
