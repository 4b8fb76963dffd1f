import { useMemo, useState } from "preact/hooks";

import type { RequestSummary } from "@sayso/client/proto/request";

import { useApp } from "../context.js";
import { count, escapeUntrusted, formatSize } from "../diff/words.js";
import { Icon, type IconName } from "../icon.js";
import { clockTime, formatDollars, fullTime } from "../times.js";
import { editorState } from "./banner-state.js";
import { matchesFilter, parseFilter } from "./filter.js";
import "./log.css";
import { useModels } from "./shared.js";
import { percent, statusWord } from "./words.js";

/** Requests, newest first, with marks and a filter over the loaded ones. */
export function RequestLog() {
  const { store } = useApp();
  const { list } = useModels();
  const [text, setText] = useState("");
  const filter = useMemo(() => parseFilter(text), [text]);
  const numbers = list.numbers.value;
  const requests = numbers.flatMap((number) => {
    const request = store.request(number).value;
    return request ? [request] : [];
  });
  const shown = filter.problem === null ? requests.filter((request) => matchesFilter(request, filter.terms)) : requests;
  const problem = list.problem.value;
  return (
    <section class="request-log" aria-label="Request log">
      <div class="log-head">
        <label class="log-filter">
          <Icon name="search" small />
          <span class="visually-hidden">Filter of the log</span>
          <input
            type="search"
            data-search
            placeholder="model:sonnet is:edited size>50k -agent:codex text"
            value={text}
            aria-invalid={filter.problem !== null}
            aria-describedby="log-filter-words"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class="secondary small-text" id="log-filter-words" role="status">
          {filter.problem ??
            (text.trim() === ""
              ? count(requests.length, "request")
              : `${shown.length} of ${count(requests.length, "loaded request")}`)}
        </p>
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          The requests cannot be read: {problem}
        </p>
      )}
      {requests.length === 0 && list.state.value === "ready" && problem === null && (
        <p class="stream-note">No requests yet. They appear when an agent's model traffic goes through sayso.</p>
      )}
      {shown.length > 0 && (
        <div class="log-scroller" tabIndex={0} role="group" aria-label="Requests">
          <table class="log-table numeric">
            <thead>
              <tr>
                <th scope="col">Request</th>
                <th scope="col">Conversation</th>
                <th scope="col">Marks</th>
                <th scope="col" class="right">
                  Size
                </th>
                <th scope="col" class="right">
                  Tokens
                </th>
                <th scope="col" class="right">
                  Cache
                </th>
                <th scope="col" class="right">
                  Price
                </th>
                <th scope="col" class="right">
                  Time
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((request) => (
                <LogRow key={String(request.request)} request={request} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.hasMore.value && (
        <button type="button" class="button" onClick={() => void list.loadMore()}>
          Load older requests
        </button>
      )}
    </section>
  );
}

function LogRow({ request }: { request: RequestSummary }) {
  const { router } = useApp();
  const route = { view: "request", request: request.request } as const;
  const { cost, received } = request;
  const input = cost ? cost.input + cost.cacheRead + cost.cacheWritten : (request.answer?.usage?.input ?? null);
  return (
    <tr class={`is-${editorState(request)}`}>
      <th scope="row">
        <a
          href={router.href(route)}
          onClick={(event) => {
            event.preventDefault();
            router.go(route);
          }}
        >
          <StatusIcon request={request} />
          <span class="log-number">{String(request.request)}</span>
          <span>{statusWord(request)}</span>
        </a>
      </th>
      <td class="ellipsis log-conversation" title={escapeUntrusted(request.conversation)}>
        {escapeUntrusted(request.conversation)}
      </td>
      <td>
        <Marks request={request} />
      </td>
      <td class="right">{formatSize(Number(request.sent?.size ?? received?.body?.size ?? 0n))}</td>
      <td class="right">{input === null ? "" : Number(input).toLocaleString("en-US")}</td>
      <td class="right">{cost ? percent(cost.cacheShare) : ""}</td>
      <td class="right">{cost?.nanoDollars === undefined ? "" : formatDollars(cost.nanoDollars)}</td>
      <td class="right">
        <time title={fullTime(request.timeMs)}>{clockTime(request.timeMs)}</time>
      </td>
    </tr>
  );
}

function StatusIcon({ request }: { request: RequestSummary }) {
  const isFailed = request.ended !== undefined || (request.answer?.status ?? 200) >= 400;
  const name: IconName = request.held ? "paused" : isFailed ? "failed" : request.answer ? "applied" : "running";
  const tone = request.held ? "paused" : isFailed ? "failed" : request.answer ? "applied" : "running";
  return (
    <span class={`state ${tone}`}>
      <Icon name={name} small />
    </span>
  );
}

/** Facts that set a request apart from the ordinary. */
export function marksOf(request: RequestSummary): string[] {
  const marks: string[] = [];
  if (request.edited || request.revision > 0n) marks.push("edited");
  if ((request.overrides?.applied.length ?? 0) > 0) marks.push("saved edits");
  if (request.received?.subagent !== undefined) marks.push("subagent");
  if (request.received?.replayOf !== undefined) marks.push(`replay of ${request.received.replayOf}`);
  if ((request.answer?.retries ?? 0) > 0) marks.push("retried");
  if ((request.received?.body?.redacted ?? 0n) > 0n) marks.push("redacted");
  if (request.inherits !== undefined) marks.push(`edits of ${request.inherits}`);
  return marks;
}

function Marks({ request }: { request: RequestSummary }) {
  return (
    <span class="marks">
      {marksOf(request).map((mark) => (
        <span class="mark" key={mark}>
          {mark}
        </span>
      ))}
    </span>
  );
}
