import type { MessageInitShape } from "@bufbuild/protobuf";

import { type EventSchema, Outcome_Kind } from "../../src/generated/sayso/v1/event_pb.js";
import { Operation } from "../../src/generated/sayso/v1/file_pb.js";

export type Kind = NonNullable<MessageInitShape<typeof EventSchema>["kind"]>;

const file = (size: bigint) => ({ state: { case: "file" as const, value: { hash: `h${size}`, size, mode: 0o644 } } });

export const proposed = (change: bigint, session = "s1"): Kind => ({
  case: "proposed",
  value: {
    change,
    origin: { session, agent: "claude", call: `call-${change}` },
    subject: { subject: { case: "files", value: {} } },
    files: [
      { path: "a.rs", location: "a.rs", operation: Operation.UPDATE, added: 2n, before: file(1n), after: file(2n) },
    ],
    previewHash: `p${change}`,
  },
});

export const decided = (change: bigint): Kind => ({
  case: "decided",
  value: {
    change,
    verdict: { previewHash: `p${change}`, answer: { answer: { case: "approve", value: {} } } },
    agentMessage: "approved",
  },
});

export const applying = (change: bigint, after = 2n): Kind => ({
  case: "applying",
  value: { change, record: { steps: [{ path: "a.rs", before: file(1n), after: file(after) }] } },
});

export const ended = (change: bigint, kind = Outcome_Kind.APPLIED): Kind => ({
  case: "ended",
  value: { change, outcome: { kind, reason: "disk is full" } },
});

export const undone = (change: bigint, by: bigint, paths: string[] = []): Kind => ({
  case: "undone",
  value: { change, by, paths },
});

export const received = (request: bigint, session = "s1"): Kind => ({
  case: "request",
  value: { request, step: { case: "received", value: { origin: { session, agent: "claude" }, model: "m" } } },
});

export const sessionStarted = (session: string): Kind => ({
  case: "sessionStarted",
  value: { session, agent: "claude" },
});
