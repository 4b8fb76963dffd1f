import { useEffect, useState } from "preact/hooks";

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const clockTime = (timeMs: bigint | number): string => CLOCK.format(Number(timeMs));
export const secondTime = (timeMs: bigint | number): string => SECONDS.format(Number(timeMs));
export const fullTime = (timeMs: bigint | number): string => FULL.format(Number(timeMs));

const startOfDay = (time: number): number => new Date(time).setHours(0, 0, 0, 0);

/** `Today`, `Yesterday`, or a date. */
export function dayName(timeMs: bigint, now: number): string {
  const days = Math.round((startOfDay(now) - startOfDay(Number(timeMs))) / 86_400_000);
  if (days <= 0) return "Today";
  return days === 1 ? "Yesterday" : DAY.format(Number(timeMs));
}

/** Milliseconds of a step: `31 ms`, `6 s`, `2 min`. */
export function formatElapsed(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds < 60_000) return `${Math.round(milliseconds / 1000)} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function formatDollars(nanoDollars: bigint): string {
  const dollars = Number(nanoDollars) / 1e9;
  return dollars >= 0.1 ? `$${dollars.toFixed(2)}` : `$${dollars.toFixed(3)}`;
}

/** The present time, renewed at an interval in milliseconds. */
export function useNow(interval: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return now;
}
