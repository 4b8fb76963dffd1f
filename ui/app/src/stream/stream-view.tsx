import { useComputed } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Change_Status } from "@sayso/client/proto/change";

import { useApp } from "../context.js";
import { Icon } from "../icon.js";
import { preferences } from "../preferences.js";
import { StreamArticle } from "./article.js";
import { streamItems, type StreamItem } from "./items.js";
import "./stream.css";
import { useVirtualList } from "./virtual.js";

/** Distance from the end in pixels within which the stream follows new articles. */
const FOLLOW_DISTANCE = 60;

const ESTIMATES: Record<StreamItem["kind"], number> = {
  prompt: 48,
  context: 28,
  thinking: 28,
  text: 90,
  attachment: 30,
  compaction: 30,
  tool: 40,
  change: 180,
  request: 28,
  "turn-end": 44,
  notice: 30,
  live: 60,
};

/** The stream of one session: a feed of articles, oldest first. */
export function StreamView({ session }: { session: string }) {
  const { store } = useApp();
  const conversation = store.conversation(session);
  const timeline = store.timeline(session);
  const isBuiltIn = store.builtIn.value.has(session);
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAway, setAway] = useState(false);
  const items = useComputed(() =>
    streamItems({
      blocks: conversation.blocks.value,
      entries: timeline.entries.value,
      live: isBuiltIn ? store.agent(session).parts.value : [],
      callOf: (change) => store.change(change).value?.origin?.call,
      hideThinking: !preferences.showThinking.value,
    }),
  ).value;
  useEffect(() => void store.loadHistory(session), [store, session]);

  const list = useVirtualList({
    count: items.length,
    scroller: () => scroller.current,
    estimate: (index) => ESTIMATES[items[index]?.kind ?? "text"],
    keyOf: (index) => items[index]?.key ?? String(index),
  });

  // The first view of a session shows what waits, or the end. Heights above it change while they are measured, so the target
  // holds until the person scrolls.
  const isOpened = useRef(false);
  const target = useRef<string | null>(null);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || items.length === 0) return;
    if (!isOpened.current && store.loaded.value) {
      const waiting = items.find((item) => pendingChange(item, store));
      target.current = waiting?.key ?? null;
      follows.current = waiting === undefined;
      isOpened.current = conversation.state.value === "loaded";
    }
    const at = target.current === null ? -1 : items.findIndex((item) => item.key === target.current);
    if (at >= 0) element.scrollTop = list.startOf(at);
    else if (follows.current) element.scrollTop = element.scrollHeight;
  });
  const release = () => (target.current = null);
  // Keys that scroll work wherever the focus is.
  useEffect(() => {
    const onKey = () => (target.current = null);
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < FOLLOW_DISTANCE;
    setAway(!follows.current);
  };
  useScrollRequests(items, (key) => {
    follows.current = false;
    isOpened.current = true;
    target.current = key;
    list.update();
  });

  const first = list.items[0]?.start ?? 0;
  const last = list.items.at(-1)?.end ?? 0;
  return (
    <div class="stream-frame">
      {/* Focusable, so that the arrow keys scroll it. */}
      <div
        class="stream"
        ref={scroller}
        onScroll={onScroll}
        onWheel={release}
        onTouchMove={release}
        onPointerDown={release}
        tabIndex={0}
        aria-label="Stream"
        data-testid="stream"
      >
        <div class="column" role="feed" aria-busy={conversation.state.value === "loading"}>
          <StreamState session={session} isEmpty={items.length === 0} />
          <div class="virtual-space" style={{ height: `${first}px` }} />
          {list.items.map((virtual) => {
            const item = items[virtual.index];
            if (!item) return null;
            return (
              <div key={virtual.key} data-index={virtual.index} ref={list.measure} class="stream-item">
                <StreamArticle item={item} session={session} position={virtual.index + 1} total={items.length} />
              </div>
            );
          })}
          <div class="virtual-space" style={{ height: `${Math.max(0, list.total - last)}px` }} />
        </div>
      </div>
      {isAway && (
        <button
          type="button"
          class="button small to-end"
          onClick={() => {
            follows.current = true;
            release();
            const element = scroller.current;
            if (element) element.scrollTop = element.scrollHeight;
          }}
        >
          <Icon name="down" small />
          Latest
        </button>
      )}
    </div>
  );
}

function pendingChange(item: StreamItem, store: ReturnType<typeof useApp>["store"]): boolean {
  const change = item.kind === "change" ? item.change : item.kind === "tool" ? item.tool.change : null;
  return change !== null && store.change(change).peek()?.status === Change_Status.PENDING;
}

/** Scrolls to the change that another view asked for. */
function useScrollRequests(items: StreamItem[], scrollTo: (key: string) => void): void {
  const wanted = preferences.scrollToChange.value;
  useEffect(() => {
    if (wanted === null) return;
    const found = items.find(
      (item) =>
        (item.kind === "change" && item.change === wanted) || (item.kind === "tool" && item.tool.change === wanted),
    );
    if (!found) return;
    preferences.scrollToChange.value = null;
    scrollTo(found.key);
  });
}

function StreamState({ session, isEmpty }: { session: string; isEmpty: boolean }) {
  const { store } = useApp();
  const conversation = store.conversation(session);
  const failure = conversation.failure.value;
  if (failure) {
    return (
      <p class="stream-note" role="status">
        <Icon name="failed" small /> The conversation cannot be read: {failure.message}.{" "}
        <button type="button" class="button link" onClick={() => void conversation.refresh()}>
          Try again
        </button>
      </p>
    );
  }
  if (!isEmpty) return null;
  if (conversation.state.value === "loading" || !store.loaded.value) {
    return <p class="stream-note">Loading the conversation…</p>;
  }
  return <p class="stream-note">Nothing has happened in this session yet.</p>;
}
