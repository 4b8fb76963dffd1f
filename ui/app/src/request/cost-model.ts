import type { CacheMiss, RequestCost, RequestSummary } from "@sayso/client/proto/request";

/** Tokens of one request, turn or session. */
export interface Bar {
  key: string;
  /** Label on the axis. */
  label: string;
  /** Name for a tooltip and for screen readers. */
  name: string;
  read: number;
  written: number;
  fresh: number;
  output: number;
  nanoDollars: bigint | null;
  cacheShare: number;
  /** Number of the request; `null` for sums. */
  request: bigint | null;
}

export const CLASSES = ["read", "written", "fresh", "output"] as const;
export type TokenClass = (typeof CLASSES)[number];
export const CLASS_NAMES: Record<TokenClass, string> = {
  read: "Cache read",
  written: "Cache write",
  fresh: "Fresh input",
  output: "Output",
};

export function barOf(key: string, label: string, name: string, cost: RequestCost, request: bigint | null): Bar {
  return {
    key,
    label,
    name,
    read: Number(cost.cacheRead),
    written: Number(cost.cacheWritten),
    fresh: Number(cost.input),
    output: Number(cost.output + cost.reasoning),
    nanoDollars: cost.nanoDollars ?? null,
    cacheShare: cost.cacheShare,
    request,
  };
}

export const total = (bar: Bar): number => bar.read + bar.written + bar.fresh + bar.output;

export interface CostSums {
  requests: number;
  nanoDollars: bigint | null;
  cacheShare: number;
  classes: Record<TokenClass, number>;
}

/** Sums of bars. The price is `null` if the price of any request is unknown. */
export function sumBars(bars: readonly Bar[]): CostSums {
  const classes = { read: 0, written: 0, fresh: 0, output: 0 };
  let nanoDollars: bigint | null = 0n;
  for (const bar of bars) {
    for (const name of CLASSES) classes[name] += bar[name];
    nanoDollars = nanoDollars === null || bar.nanoDollars === null ? null : nanoDollars + bar.nanoDollars;
  }
  const input = classes.read + classes.written + classes.fresh;
  return { requests: bars.length, nanoDollars, cacheShare: input === 0 ? 0 : classes.read / input, classes };
}

export interface Segment {
  class: TokenClass;
  y: number;
  height: number;
}

/** Stacked rectangles of a bar with gaps of 1 px. Non-zero classes are at least 0.75 px high. */
export function stack(bar: Bar, scale: number, bottom: number): Segment[] {
  const segments: Segment[] = [];
  let y = bottom;
  for (const name of CLASSES) {
    if (bar[name] === 0) continue;
    const height = Math.max(0.75, bar[name] * scale);
    y -= height;
    segments.push({ class: name, y, height });
    y -= 1;
  }
  return segments;
}

/** About four round steps up to a maximum. */
export function axisTicks(max: number): number[] {
  if (max <= 0) return [0];
  const rough = max / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough;
  const ticks: number[] = [];
  for (let value = 0; value <= max; value += step) ticks.push(value);
  return ticks;
}

export function axisLabel(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`;
  return value >= 1_000 ? `${value / 1_000}k` : String(value);
}

const LARGE_PREFIX = 1_000;

/** Requests whose cache share fell, so that the engine's explanation is worth reading. */
export function suspectedBreaks(requests: readonly RequestSummary[]): bigint[] {
  const previous = new Map<string, RequestCost>();
  const suspects: bigint[] = [];
  for (const { request, received, cost } of requests) {
    if (!cost) continue;
    const thread = `${received?.origin?.session ?? ""}/${received?.subagent?.id ?? ""}`;
    const before = previous.get(thread);
    previous.set(thread, cost);
    if (!before) continue;
    const reusable = Number(before.cacheRead + before.cacheWritten);
    if (reusable > LARGE_PREFIX && Number(cost.cacheRead) < reusable * 0.5) suspects.push(request);
  }
  return suspects;
}

export interface CacheBreak {
  request: bigint;
  timeMs: bigint;
  miss: CacheMiss;
  cost: RequestCost | undefined;
}
