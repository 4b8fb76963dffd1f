import { create } from "@bufbuild/protobuf";

import type { Event } from "../generated/sayso/v1/event_pb.js";
import { RequestStatus, RequestSummarySchema, type RequestSummary } from "../generated/sayso/v1/request_pb.js";

/** Returns the request after an event, in the same way as the engine folds it. The given request stays as it is. */
export function foldRequest(before: RequestSummary | undefined, event: Event): RequestSummary | undefined {
  if (event.kind.case !== "request") return before;
  const { request, step } = event.kind.value;
  // An upstream can respond before the body is fully received, so any step may be the first one.
  const summary = before
    ? { ...before }
    : create(RequestSummarySchema, { request, timeMs: event.timeMs, status: RequestStatus.RECEIVED });
  switch (step.case) {
    case "received":
      summary.received = step.value;
      summary.timeMs = event.timeMs;
      break;
    case "paused":
      summary.status = RequestStatus.PAUSED;
      summary.held = true;
      if (step.value.reason) summary.pauseReason = step.value.reason;
      if (step.value.deadlineMs !== undefined) summary.deadlineMs = step.value.deadlineMs;
      if (step.value.inherits !== undefined) summary.inherits = step.value.inherits;
      break;
    case "edited":
      summary.revision = step.value.revision;
      break;
    case "resumed":
      summary.resumedBy = step.value.by;
      break;
    case "sent":
      summary.status = RequestStatus.SENT;
      summary.held = false;
      summary.edited = step.value.body !== undefined;
      if (step.value.body) summary.sent = step.value.body;
      if (step.value.overrides) summary.overrides = step.value.overrides;
      break;
    case "upstreamRetry":
      summary.upstreamRetry = step.value;
      break;
    case "answered":
      summary.status = RequestStatus.ANSWERED;
      summary.held = false;
      summary.answer = step.value;
      break;
    case "ended":
      summary.status = RequestStatus.ENDED;
      summary.held = false;
      summary.ended = step.value;
      break;
    default:
  }
  return summary;
}
