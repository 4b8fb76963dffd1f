import { useEffect, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";

import { announce } from "./announce.js";
import { useApp } from "./context.js";
import { escapeUntrusted } from "./diff/words.js";
import { Icon } from "./icon.js";
import { requestFacts } from "./stream/request-line.js";
import { clockTime, fullTime } from "./times.js";

const PAGE = 100;

/** Requests to models, newest first. */
export function RequestsView() {
  const { api, store, router } = useApp();
  const [numbers, setNumbers] = useState<bigint[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const newest = [...store.sessions.all.value.values()].reduce(
    (max, { lastRequest }) => (lastRequest !== undefined && lastRequest > max ? lastRequest : max),
    0n,
  );
  useEffect(() => {
    api.requests.listRequests({ limit: PAGE }).then(
      ({ requests }) => {
        store.learnRequests(requests);
        setNumbers(requests.map((request) => request.request));
        setProblem(null);
      },
      (error: unknown) => setProblem(describeFailure(error).message),
    );
  }, [api, store, newest]);
  return (
    <section class="page" aria-label="Requests">
      {problem !== null && (
        <p class="problem" role="alert">
          The requests cannot be read: {problem}
        </p>
      )}
      {numbers.length === 0 && problem === null && (
        <p class="stream-note">No requests yet. They appear when an agent's model traffic goes through sayso.</p>
      )}
      <ul class="history-list">
        {numbers.map((number) => {
          const request = store.request(number).value;
          if (!request) return null;
          return (
            <li class="history-row" key={String(number)}>
              <span class="numeric tertiary change-number">{String(number)}</span>
              <Icon name={request.held ? "paused" : "request"} />
              <a
                class="line numeric"
                href={router.href({ view: "request", request: number })}
                onClick={(event) => {
                  event.preventDefault();
                  router.go({ view: "request", request: number });
                }}
              >
                <span class="ellipsis">{requestFacts(request).join(" · ")}</span>
              </a>
              <span class="secondary small-text agent-name ellipsis">{escapeUntrusted(request.conversation)}</span>
              <time class="numeric tertiary" title={fullTime(request.timeMs)}>
                {clockTime(request.timeMs)}
              </time>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** One request: its facts, and the verdict on it while it is held. The request editor replaces this view. */
export function RequestView({ request: number }: { request: bigint }) {
  const { api, store } = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const request = store.request(number).value;
  if (!request) return <p class="stream-note">Loading request {String(number)}…</p>;
  const act = async (name: string, call: () => Promise<unknown>) => {
    try {
      await call();
      announce(name);
    } catch (error) {
      setProblem(describeFailure(error).message);
    }
  };
  return (
    <section class="page request-page" aria-label={`Request ${number}`}>
      <h2>{request.held ? "Paused before it is sent" : "Request"}</h2>
      <p class="secondary numeric">{requestFacts(request).join(" · ")}</p>
      <p class="secondary">{escapeUntrusted(request.conversation)}</p>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {request.held && (
        <div class="dialog-actions">
          <button
            type="button"
            class="button ask"
            disabled={!store.canDecide.value}
            onClick={() =>
              void act("Resumed", () => api.requests.resumeRequest({ request: number, revision: request.revision }))
            }
          >
            Resume send
          </button>
          <button
            type="button"
            class="button"
            disabled={!store.canDecide.value}
            onClick={() => void act("Cancelled", () => api.requests.cancelRequest({ request: number }))}
          >
            Cancel
          </button>
        </div>
      )}
    </section>
  );
}
