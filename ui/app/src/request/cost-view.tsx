import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import type { RequestSummary } from "@sayso/client/proto/request";
import type { GetCostResponse } from "@sayso/client/proto/request_service";

import { useApp } from "../context.js";
import { escapeUntrusted, formatNumber } from "../diff/words.js";
import { Icon } from "../icon.js";
import { formatDollars, secondTime } from "../times.js";
import { CostChart, ClassChart } from "./cost-chart.js";
import { barOf, CLASS_NAMES, CLASSES, suspectedBreaks, sumBars, type Bar, type CacheBreak } from "./cost-model.js";
import "./cost.css";
import { conversationChoices } from "./follow.js";
import { useModels } from "./shared.js";
import { percent, shortId } from "./words.js";

type Unit = "request" | "turn" | "session";
const UNITS: readonly Unit[] = ["request", "turn", "session"];
/** Explanations that are read for one chart. */
const MAX_BREAKS = 24;

/** Tokens, cache share and price per request, turn or session, and what broke the cache. */
export function CostView() {
  const { api, store, router } = useApp();
  const { list, modes } = useModels();
  const [session, setSession] = useState("");
  const [unit, setUnit] = useState<Unit>("request");
  const [cost, setCost] = useState<GetCostResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  const newest = list.numbers.value[0];
  useEffect(() => {
    api.requests.getCost(session === "" ? {} : { session }).then(
      (answer) => {
        setCost(answer);
        setProblem(null);
      },
      (error: unknown) => setProblem(describeFailure(error).message),
    );
  }, [api, session, newest]);
  useLayoutEffect(() => {
    const element = root.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.max(280, Math.round(element.clientWidth - 40)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const all = list.numbers.value.flatMap((number) => {
    const request = store.request(number).value;
    return request ? [request] : [];
  });
  const requests = all
    .filter((request) => request.cost && (session === "" || request.received?.origin?.session === session))
    .sort((a, b) => (a.request < b.request ? -1 : 1));
  const breaks = useCacheBreaks(requests);
  const sessions = store.sessions.all.value;
  const choices = conversationChoices(modes.modes.value?.sessions ?? [], all, (id) => sessions.get(id)?.title);
  const bars = barsOf(unit, requests, cost);
  const sums = sumBars(bars);
  const total = cost?.total;
  const lost = breaks.reduce((sum, { miss }) => sum + Number(miss.tokensLost?.count ?? 0n), 0);
  return (
    <section class="cost-view" aria-label="Cost" ref={root}>
      <div class="cost-head">
        <label class="conversation-picker">
          <span class="visually-hidden">Conversation</span>
          <select value={session} onChange={(event) => setSession(event.currentTarget.value)}>
            <option value="">All conversations</option>
            {choices.map((choice) => (
              <option key={choice.session} value={choice.session}>
                {escapeUntrusted(choice.label)}
              </option>
            ))}
          </select>
        </label>
        <span class="segments" role="group" aria-label="Bars">
          {UNITS.map((name) => (
            <button key={name} type="button" aria-pressed={unit === name} onClick={() => setUnit(name)}>
              per {name}
            </button>
          ))}
        </span>
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          The cost cannot be read: {problem}
        </p>
      )}
      <dl class="cost-sums numeric">
        <Sum
          name={session === "" ? "All conversations" : "Session"}
          value={total?.nanoDollars === undefined ? "unknown" : formatDollars(total.nanoDollars)}
        />
        <Sum name="Requests" value={formatNumber(requests.length)} />
        <Sum name="Read from cache" value={percent(total?.cacheShare ?? sums.cacheShare)} />
        <Sum name="Cache breaks" value={formatNumber(breaks.length)} />
        <Sum name="Tokens behind the breaks" value={formatNumber(lost)} />
      </dl>
      {bars.length === 0 ? (
        <p class="stream-note">No request with reported usage yet.</p>
      ) : (
        <>
          <div class="cost-legend">
            <h3>Tokens per {unit}</h3>
            <span class="grow" />
            {CLASSES.map((name) => (
              <span key={name}>
                <i class={`legend-${name}`} />
                {CLASS_NAMES[name]}
              </span>
            ))}
            <span class="bad-text">
              <Icon name="flag" small /> Cache break
            </span>
          </div>
          <CostChart
            bars={bars}
            breaks={unit === "request" ? breaks : []}
            width={width}
            onOpen={(request) => router.go({ view: "request", request })}
          />
          <div class="class-charts">
            {CLASSES.map((name) => (
              <ClassChart key={name} bars={bars} name={name} breaks={unit === "request" ? breaks : []} />
            ))}
          </div>
          <BreakTable breaks={breaks} />
          <BarTable bars={bars} unit={unit} />
        </>
      )}
      <p class="secondary small-text cost-note">
        List prices of {cost?.pricesDate ?? "…"}; <code>[[request.price]]</code> replaces them. The bars use what the
        provider billed.
        {(cost?.sessions ?? []).some(({ unknownModels }) => unknownModels.length > 0) &&
          ` Without a price: ${[...new Set(cost?.sessions.flatMap(({ unknownModels }) => unknownModels))].join(", ")}.`}
      </p>
    </section>
  );
}

function Sum({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function barsOf(unit: Unit, requests: readonly RequestSummary[], cost: GetCostResponse | null): Bar[] {
  if (unit === "request") {
    return requests.flatMap((request) =>
      request.cost
        ? [
            barOf(
              String(request.request),
              String(request.request),
              `Request ${request.request}`,
              request.cost,
              request.request,
            ),
          ]
        : [],
    );
  }
  const bars: Bar[] = [];
  if (unit === "turn") {
    cost?.turns.forEach((turn, index) => {
      const name = turn.turn === undefined ? "outside a turn" : `turn ${index + 1}`;
      if (turn.cost)
        bars.push(
          barOf(
            `${turn.session}/${turn.turn ?? ""}`,
            String(index + 1),
            `${name}, ${turn.requests} requests`,
            turn.cost,
            null,
          ),
        );
    });
    return bars;
  }
  for (const item of cost?.sessions ?? []) {
    const id = item.session ?? "no session";
    if (item.cost)
      bars.push(
        barOf(id, `…${id.slice(-4)}`, `${item.agent ?? ""} ${shortId(id)}, ${item.requests} requests`, item.cost, null),
      );
  }
  return bars;
}

/** Explanations of the engine for requests whose cache share fell. */
function useCacheBreaks(requests: readonly RequestSummary[]): CacheBreak[] {
  const { api } = useApp();
  const [found, setFound] = useState<ReadonlyMap<bigint, CacheBreak | null>>(new Map());
  const suspects = suspectedBreaks(requests).slice(-MAX_BREAKS);
  const key = suspects.filter((request) => !found.has(request)).join(",");
  useEffect(() => {
    const missing = key === "" ? [] : key.split(",").map(BigInt);
    if (missing.length === 0) return undefined;
    let isCurrent = true;
    void Promise.all(
      missing.map(async (number): Promise<[bigint, CacheBreak | null]> => {
        try {
          const { cacheMiss, summary } = await api.requests.showRequest({
            request: number,
            contentLimit: 0,
            path: "model",
          });
          if (!cacheMiss || !summary) return [number, null];
          return [number, { request: number, timeMs: summary.timeMs, miss: cacheMiss, cost: summary.cost }];
        } catch {
          return [number, null];
        }
      }),
    ).then((entries) => {
      if (isCurrent) setFound((before) => new Map([...before, ...entries]));
    });
    return () => {
      isCurrent = false;
    };
  }, [api, key]);
  return suspects.flatMap((request) => found.get(request) ?? []);
}

function BreakTable({ breaks }: { breaks: readonly CacheBreak[] }) {
  const { router } = useApp();
  if (breaks.length === 0)
    return <p class="secondary small-text cost-note">The cache never broke in these requests.</p>;
  return (
    <div class="table-scroller" tabIndex={0} role="group" aria-label="Cache breaks">
      <table class="cost-table numeric">
        <caption class="visually-hidden">Cache breaks</caption>
        <thead>
          <tr>
            <th scope="col">Request</th>
            <th scope="col">Time</th>
            <th scope="col">What broke the cache</th>
            <th scope="col">First changed section</th>
            <th scope="col" class="right">
              Kept
            </th>
            <th scope="col" class="right">
              Billed again
            </th>
            <th scope="col" />
          </tr>
        </thead>
        <tbody>
          {breaks.map(({ request, timeMs, miss, cost }) => (
            <tr key={String(request)}>
              <th scope="row">{String(request)}</th>
              <td>{secondTime(timeMs)}</td>
              <td>{miss.text}</td>
              <td>
                {miss.label !== undefined && <span class="kind-badge">{escapeUntrusted(miss.label)}</span>}{" "}
                <code>{miss.path ?? ""}</code>
              </td>
              <td class="right">{formatNumber(Number(cost?.cacheRead ?? 0n))}</td>
              <td class="right">{formatNumber(Number((cost?.input ?? 0n) + (cost?.cacheWritten ?? 0n)))}</td>
              <td class="right">
                <a
                  href={router.href({ view: "request", request })}
                  onClick={(event) => {
                    event.preventDefault();
                    router.go({ view: "request", request });
                  }}
                >
                  Show<span class="visually-hidden"> request {String(request)}</span>
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The chart in numbers. */
function BarTable({ bars, unit }: { bars: readonly Bar[]; unit: Unit }) {
  return (
    <details class="bar-table">
      <summary>Numbers per {unit}</summary>
      <div class="table-scroller" tabIndex={0} role="group" aria-label={`Numbers per ${unit}`}>
        <table class="cost-table numeric">
          <thead>
            <tr>
              <th scope="col">{unit}</th>
              {CLASSES.map((name) => (
                <th scope="col" class="right" key={name}>
                  {CLASS_NAMES[name]}
                </th>
              ))}
              <th scope="col" class="right">
                Cache
              </th>
              <th scope="col" class="right">
                Price
              </th>
            </tr>
          </thead>
          <tbody>
            {bars.map((bar) => (
              <tr key={bar.key}>
                <th scope="row">{escapeUntrusted(bar.name)}</th>
                {CLASSES.map((name) => (
                  <td class="right" key={name}>
                    {formatNumber(bar[name])}
                  </td>
                ))}
                <td class="right">{percent(bar.cacheShare)}</td>
                <td class="right">{bar.nanoDollars === null ? "unknown" : formatDollars(bar.nanoDollars)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
