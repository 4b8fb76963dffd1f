import { useState } from "preact/hooks";

import { formatNumber } from "../diff/words.js";
import { formatDollars } from "../times.js";
import {
  axisLabel,
  axisTicks,
  CLASS_NAMES,
  CLASSES,
  stack,
  total,
  type Bar,
  type CacheBreak,
  type TokenClass,
} from "./cost-model.js";
import { CAUSE_WORDS, percent } from "./words.js";

const LEFT = 48;
const TOP = 44;
const BOTTOM = 26;
const MAX_BAR = 24;
const NARROW = 480;
const MARK_WIDTH = 190;

/** Stacked bars of tokens by class, with marks where the cache broke. */
export function CostChart(props: {
  bars: readonly Bar[];
  breaks: readonly CacheBreak[];
  width: number;
  onOpen: (request: bigint) => void;
}) {
  const { bars, breaks, width, onOpen } = props;
  const [hovered, setHovered] = useState<number | null>(null);
  const height = width < NARROW ? 240 : 400;
  const bottom = height - BOTTOM;
  const max = Math.max(1, ...bars.map(total));
  const scale = (bottom - TOP) / max;
  const step = (width - LEFT) / Math.max(1, bars.length);
  const barWidth = Math.max(1.5, Math.min(MAX_BAR, step * 0.72));
  const x = (index: number) => LEFT + step * index + (step - barWidth) / 2;
  const every = Math.max(1, Math.ceil(bars.length / (width / 120)));
  const broken = new Map(breaks.map((item) => [item.request, item]));
  const marks = bars.flatMap((bar, index) => {
    const item = bar.request === null ? undefined : broken.get(bar.request);
    return item ? [{ item, index }] : [];
  });
  const name = `Tokens by class in ${bars.length} bars.${marks.length > 0 ? ` The cache broke at ${marks.map(({ item }) => item.request).join(", ")}.` : ""} The table below has the numbers.`;
  const placeOf = (order: number) => LEFT + step * (marks[order]?.index ?? Infinity);
  // Words stand in two lines; those that the next mark of the line would cross are left out.
  const hasRoom = (order: number) => placeOf(order + 2) - placeOf(order) > MARK_WIDTH;
  const shown = hovered === null ? undefined : bars[hovered];
  return (
    <div class="chart">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={name}>
        {axisTicks(max).map((value) => (
          <g key={value}>
            <path d={`M${LEFT} ${bottom - value * scale}H${width}`} class="chart-line" />
            <text x={LEFT - 8} y={bottom - value * scale + 4} text-anchor="end">
              {axisLabel(value)}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => (
          <g
            key={bar.key}
            onPointerEnter={() => setHovered(index)}
            onPointerLeave={() => setHovered(null)}
            onClick={() => bar.request !== null && onOpen(bar.request)}
            class={bar.request === null ? undefined : "chart-bar"}
          >
            <rect
              x={LEFT + step * index}
              y={TOP}
              width={step}
              height={bottom - TOP}
              class={hovered === index ? "chart-hover" : "chart-hit"}
            />
            {stack(bar, scale, bottom).map((segment) => (
              <rect
                key={segment.class}
                x={x(index)}
                y={segment.y}
                width={barWidth}
                height={segment.height}
                class={`class-${segment.class}`}
              />
            ))}
            {index % every === 0 && (
              <text x={x(index) + barWidth / 2} y={height - 8} text-anchor="middle">
                {bar.label}
              </text>
            )}
          </g>
        ))}
        {marks.map(({ item, index }, order) => {
          const at = LEFT + step * index;
          const isRight = at < width - 220;
          return (
            <g key={String(item.request)} class="chart-break">
              <path d={`M${at} 12V${bottom}`} />
              <path d={`M${at} 10h8l-2 3 2 3h-8z`} class="chart-flag" />
              {width >= NARROW && hasRoom(order) && (
                <text x={isRight ? at + 12 : at - 4} y={18 + (order % 2) * 14} text-anchor={isRight ? "start" : "end"}>
                  cache broken: {CAUSE_WORDS[item.miss.cause]}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <p class="chart-words secondary small-text numeric" aria-hidden="true">
        {shown ? barWords(shown) : "\u00a0"}
      </p>
    </div>
  );
}

export function barWords(bar: Bar): string {
  const parts = CLASSES.filter((name) => bar[name] > 0).map(
    (name) => `${CLASS_NAMES[name].toLowerCase()} ${formatNumber(bar[name])}`,
  );
  const price = bar.nanoDollars === null ? "price unknown" : formatDollars(bar.nanoDollars);
  return [bar.name, ...parts, `cache ${percent(bar.cacheShare)}`, price].join(" · ");
}

/** One class of tokens over all bars. */
export function ClassChart({
  bars,
  name,
  breaks,
}: {
  bars: readonly Bar[];
  name: TokenClass;
  breaks: readonly CacheBreak[];
}) {
  const max = Math.max(1, ...bars.map((bar) => bar[name]));
  const step = 256 / Math.max(1, bars.length);
  const sum = bars.reduce((all, bar) => all + bar[name], 0);
  const broken = new Set(breaks.map(({ request }) => request));
  return (
    <figure>
      <figcaption>
        <b>{CLASS_NAMES[name]}</b>
        <span class="numeric">{formatNumber(sum)}</span>
      </figcaption>
      <svg viewBox="0 0 256 48" aria-hidden="true" preserveAspectRatio="none">
        {bars.map((bar, index) => {
          const height = (bar[name] / max) * 44;
          return (
            height > 0 && (
              <rect
                key={bar.key}
                x={step * index}
                y={46 - Math.max(1, height)}
                width={Math.max(0.8, step * 0.75)}
                height={Math.max(1, height)}
                class={`class-${name}`}
              />
            )
          );
        })}
        {bars.map(
          (bar, index) =>
            bar.request !== null &&
            broken.has(bar.request) && <path key={bar.key} d={`M${step * index - 1} 0V46`} class="chart-break-line" />,
        )}
        <path d="M0 46.5H256" class="chart-line" />
      </svg>
    </figure>
  );
}
