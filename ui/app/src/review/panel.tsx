import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import { Change_Status, type Change } from "@sayso/client/proto/change";
import type { GetDiffResponse } from "@sayso/client/proto/review_service";

import { useApp, type AppContext } from "../context.js";
import { escapeUntrusted } from "../diff/words.js";
import { panelActions } from "./actions.js";
import { useActivePanel } from "./activePanel.js";
import { reviewerOf, reviewOf, settledOf } from "./fromProtocol.js";
import type { Review, Seen } from "./model.js";
import { PanelView } from "./panelView.js";

export interface ReviewPanelProps {
  change: bigint;
  placement: "stream" | "page";
}

interface Loaded {
  diff: GetDiffResponse;
  /** Present change whose hash the diff has. */
  hash: string;
}

/** Review panel of a change, connected to the engine. */
export function ReviewPanel({ change: number }: ReviewPanelProps) {
  const app = useApp();
  const { store } = app;
  const change = store.change(number).value;
  const anchor = useRef<HTMLDivElement>(null);
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  useEffect(() => setScroller(anchor.current?.closest<HTMLElement>(".stream") ?? null), []);
  const { loaded, problem, reload } = useDiff(app, number, change);
  const review = useReview(app, change, loaded);
  return (
    <div ref={anchor} class="panel-anchor">
      {problem !== undefined && (
        <p class="load-problem" role="alert">
          {escapeUntrusted(problem)}
          <button type="button" class="button small" onClick={reload}>
            Try again
          </button>
        </p>
      )}
      {review === undefined || change === undefined ? (
        problem === undefined && <PanelSkeleton number={number} />
      ) : (
        <Connected change={change} review={review} scroller={scroller} reload={reload} />
      )}
    </div>
  );
}

function PanelSkeleton({ number }: { number: bigint }) {
  return (
    <div class="panel loading" role="status">
      <div class="panel-header">
        <p class="secondary">Reading change {String(number)}…</p>
      </div>
    </div>
  );
}

interface ConnectedProps {
  change: Change;
  review: Review;
  scroller: HTMLElement | null;
  reload: () => void;
}

function Connected({ change, review, scroller, reload }: ConnectedProps) {
  const app = useApp();
  const { store } = app;
  const { active, activate } = useActivePanel(review.change);
  const latestRef = useRef(review);
  useLayoutEffect(() => {
    latestRef.current = review;
  });
  const [isMine, setMine] = useState(false);
  const actions = useMemo(
    () =>
      panelActions({
        ...app,
        change: change.change,
        review: () => latestRef.current,
        reload,
        onDecided: () => setMine(true),
      }),
    [app, change.change, reload],
  );
  const item = store.inbox.value.find(({ key }) => key === `change:${change.change}`);
  const seen = useMemo(
    (): Seen[] => (item?.seen ?? []).map(({ path, hunks }) => ({ path, hunks: hunks.map(Number) })),
    [item?.seen],
  );
  const merged = store.inbox.value.find(({ subject }) => {
    const other = subject.case === "change" ? store.change(subject.value.change).value : undefined;
    const cause = other?.cause?.cause;
    return cause?.case === "rebase" && cause.value.change === change.change;
  });
  const mergedChange = merged?.subject.case === "change" ? Number(merged.subject.value.change) : undefined;
  const settled = useMemo(() => settledOf(change, isMine, mergedChange), [change, isMine, mergedChange]);
  const wasDropped = change.droppedPredecessors.length > 0;
  return (
    <PanelView
      review={review}
      refresh={wasDropped ? { reason: "predecessorDropped" } : undefined}
      seen={seen}
      connected={store.canDecide.value}
      settled={settled}
      reviewers={otherSurfaces(app)}
      scroller={scroller}
      active={active && change.status === Change_Status.PENDING}
      onActivate={activate}
      actions={actions}
    />
  );
}

/** Surfaces apart from this one. */
function otherSurfaces({ store }: AppContext): ReturnType<typeof reviewerOf>[] {
  const others = [...store.surfaces.value];
  const own = others.findIndex(
    ({ surface }) => surface?.name === store.surface.name && surface.kind === store.surface.kind,
  );
  if (own >= 0) others.splice(own, 1);
  return others.map(reviewerOf);
}

/** List of files of the preview. It is read again after each new preview. */
function useDiff({ api }: AppContext, number: bigint, change: Change | undefined) {
  const [loaded, setLoaded] = useState<Loaded>();
  const [problem, setProblem] = useState<string>();
  const [attempt, setAttempt] = useState(0);
  const hash = change?.previewHash;
  const isPending = change?.status === Change_Status.PENDING;
  useEffect(() => {
    if (hash === undefined || (!isPending && loaded !== undefined)) return undefined;
    const stop = new AbortController();
    api.review
      .getDiff({ subject: { subject: { case: "change", value: number } }, rows: 1 }, { signal: stop.signal })
      .then((diff) => {
        setLoaded({ diff, hash });
        setProblem(undefined);
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setProblem(describeFailure(error).message);
      });
    return () => stop.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a loaded list does not load it again
  }, [api, number, hash, attempt, isPending]);
  const reload = useMemo(() => () => setAttempt((count) => count + 1), []);
  return { loaded, problem, reload };
}

/** The change, its files and its inbox item as one value that changes only with them. */
function useReview({ store }: AppContext, change: Change | undefined, loaded: Loaded | undefined): Review | undefined {
  const item = store.inbox.value.find(({ key }) => key === `change:${change?.change ?? 0n}`);
  const reason = item?.agentReason;
  return useMemo(
    () => (change === undefined || loaded === undefined ? undefined : reviewOf(change, loaded.diff, item)),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only these parts of the change and the item count
    [change?.change, change?.previewHash, loaded, reason],
  );
}
