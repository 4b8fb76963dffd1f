import { RequestStatus, type RequestSummary } from "@sayso/client/proto/request";

import { useApp } from "../context.js";
import { escapeUntrusted, formatNumber, formatSize } from "../diff/words.js";
import { Icon } from "../icon.js";
import { formatDollars } from "../times.js";

/** A request to the model, in one line. */
export function RequestLine({ request: number }: { request: bigint }) {
  const { store, router } = useApp();
  const request = store.request(number).value;
  if (!request) return null;
  if (request.held) return <PausedRequest request={request} />;
  const isFailed = request.ended !== undefined || (request.answer?.status ?? 200) >= 400;
  return (
    <div class="row request-line">
      <Icon name="request" />
      <span class="line numeric">
        {requestFacts(request).map((fact, index) => (
          <span key={index}>
            {index > 0 && <span class="dot">·</span>}
            {fact}
          </span>
        ))}
        {isFailed && <span class="failure ellipsis">{failureText(request)}</span>}
      </span>
      <span class="end">
        {request.edited && <span class="edited">Edited</span>}
        <a
          href={router.href({ view: "request", request: number })}
          onClick={(event) => {
            event.preventDefault();
            router.go({ view: "request", request: number });
          }}
        >
          View prompt
        </a>
      </span>
    </div>
  );
}

function PausedRequest({ request }: { request: RequestSummary }) {
  const { router } = useApp();
  return (
    <section class="paused-request" aria-label="Paused request">
      <Icon name="paused" />
      <div class="grow">
        <h3>Request to {escapeUntrusted(request.received?.model ?? "the model")} is paused before it is sent</h3>
        <p class="secondary small-text numeric">{requestFacts(request).slice(1).join(" · ")}</p>
      </div>
      <button type="button" class="button" onClick={() => router.go({ view: "request", request: request.request })}>
        Open
      </button>
    </section>
  );
}

/** Facts about a request: model, size, tokens, share of the window, state, price, cache. */
export function requestFacts(request: RequestSummary): string[] {
  const { received, cost, answer } = request;
  const size = request.sent?.size ?? received?.body?.size;
  const facts = [escapeUntrusted(received?.model ?? received?.path ?? "request")];
  if (size !== undefined) facts.push(formatSize(Number(size)));
  const input = cost ? cost.input + cost.cacheRead + cost.cacheWritten : answer?.usage?.input;
  if (input !== undefined && input > 0n) facts.push(`${formatNumber(Number(input))} tokens`);
  if (cost?.contextShare !== undefined) facts.push(`${Math.round(cost.contextShare * 100)} %`);
  facts.push(stateWord(request));
  if (cost?.nanoDollars !== undefined) facts.push(formatDollars(cost.nanoDollars));
  if (cost && cost.cacheShare > 0) facts.push(`cache ${Math.round(cost.cacheShare * 100)} %`);
  return facts;
}

function stateWord(request: RequestSummary): string {
  switch (request.status) {
    case RequestStatus.PAUSED:
      return request.held ? "paused" : "orphaned";
    case RequestStatus.SENT:
      return request.upstreamRetry
        ? `retrying, ${request.upstreamRetry.status ?? "no connection"}`
        : "waiting for the model";
    case RequestStatus.ANSWERED:
      return (request.answer?.status ?? 200) >= 400 ? `answered ${request.answer?.status ?? ""}` : "sent";
    case RequestStatus.ENDED:
      return "not sent";
    default:
      return "received";
  }
}

function failureText(request: RequestSummary): string {
  const text = request.ended?.message ?? request.answer?.error ?? request.answer?.problem ?? "";
  return text === "" ? "" : ` · ${escapeUntrusted(text)}`;
}
