import { useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { count } from "../diff/words.js";
import { Icon } from "../icon.js";
import { preferences } from "../preferences.js";
import { Counts } from "../theme/counts.js";
import { formatDollars, formatElapsed } from "../times.js";
import type { StreamItem } from "./items.js";

/** End of a turn: its sums, and the changes to review. */
export function TurnEnd({ item, session }: { item: StreamItem & { kind: "turn-end" }; session: string }) {
  const { store, api } = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const sums = turnSums(item, session, store);
  const waiting = store.inbox.value.find(
    ({ subject }) => subject.case === "turn" && subject.value.session === session && subject.value.turn === item.turn,
  );
  const review = async () => {
    try {
      const { details } = await api.review.reviewTurn({ session, turn: item.turn });
      if (details?.change) preferences.scrollToChange.value = details.change.change;
      else announce("Nothing is left to review in this turn");
    } catch (error) {
      setProblem(describeFailure(error).message);
    }
  };
  return (
    <div class="turn-end">
      <span class="numeric">
        Turn ended
        {item.startedMs !== null && <Fact>{formatElapsed(Number(item.timeMs - item.startedMs))}</Fact>}
        {sums.requests > 0 && <Fact>{count(sums.requests, "request")}</Fact>}
        {sums.files > 0 && (
          <Fact>
            {count(sums.files, "file")} <Counts added={sums.added} removed={sums.removed} />
          </Fact>
        )}
        {sums.cost > 0n && <Fact>{formatDollars(sums.cost)}</Fact>}
      </span>
      {waiting && (
        <button type="button" class="button small to-review" onClick={() => void review()}>
          <Icon name="later" small />
          {count(Number(waiting.files), "file")} to review
        </button>
      )}
      {problem !== null && <span role="alert">{problem}</span>}
    </div>
  );
}

function Fact({ children }: { children: preact.ComponentChildren }) {
  return (
    <>
      <span class="dot">·</span>
      {children}
    </>
  );
}

function turnSums(item: StreamItem & { kind: "turn-end" }, session: string, store: ReturnType<typeof useApp>["store"]) {
  const sums = { requests: 0, files: 0, added: 0, removed: 0, cost: 0n };
  const paths = new Set<string>();
  for (const entry of store.timeline(session).entries.value) {
    if (entry.timeMs > item.timeMs) break;
    if (entry.kind === "change") {
      const change = store.change(entry.change).value;
      if (change?.origin?.turn !== item.turn || !change.applied) continue;
      for (const file of change.files) {
        paths.add(file.location);
        sums.added += Number(file.added);
        sums.removed += Number(file.removed);
      }
    }
    if (entry.kind === "request" && item.startedMs !== null && entry.timeMs >= item.startedMs) {
      sums.requests += 1;
      sums.cost += store.request(entry.request).value?.cost?.nanoDollars ?? 0n;
    }
  }
  sums.files = paths.size;
  return sums;
}
