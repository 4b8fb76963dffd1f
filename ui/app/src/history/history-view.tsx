import { useCallback, useEffect, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import { Change_Status, type Change } from "@sayso/client/proto/change";

import { useApp } from "../context.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { changeState } from "../session/status.js";
import { changeWords } from "../stream/change-card.js";
import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import { clockTime, dayName, fullTime, useNow } from "../times.js";
import "./history.css";
import { planReversal } from "./reversal.js";

const PAGE = 100;

/** Filters by state. The names are the words of the states. */
const FILTERS = {
  all: () => true,
  applied: (change: Change) => change.status === Change_Status.APPLIED,
  denied: (change: Change) => change.status === Change_Status.DENIED,
  undone: (change: Change) => change.status === Change_Status.UNDONE,
  "not carried out": (change: Change) =>
    [Change_Status.FAILED, Change_Status.STALE, Change_Status.CANCELLED].includes(change.status),
} as const;

type FilterName = keyof typeof FILTERS;

/** All changes of the workspace, newest first, with undo and redo. */
export function HistoryView({ session }: { session?: string }) {
  const { api, store } = useApp();
  const [numbers, setNumbers] = useState<bigint[]>([]);
  const [isComplete, setComplete] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [filter, setFilter] = useState<FilterName>("all");
  const [search, setSearch] = useState("");
  const load = useCallback(
    async (before: bigint | undefined, known: bigint[]) => {
      try {
        const { changes } = await api.review.listChanges({
          limit: PAGE,
          ...(before !== undefined && { before }),
          ...(session !== undefined && { session }),
        });
        store.learnChanges(changes);
        setNumbers([...known, ...changes.map((change) => change.change)]);
        setComplete(changes.length < PAGE);
        setProblem(null);
      } catch (error) {
        setProblem(describeFailure(error).message);
      }
    },
    [api, store, session],
  );
  const newest = newestChange(store.sessions.all.value.values());
  // A new change starts the list again.
  useEffect(() => void load(undefined, []), [load, newest]);
  const changes = numbers
    .map((number) => store.change(number).value)
    .filter((change): change is Change => change !== undefined)
    .filter((change) => FILTERS[filter](change) && matches(change, search));
  return (
    <section class="history" aria-label="History">
      <div class="history-tools">
        <div class="segments" role="group" aria-label="State">
          {(Object.keys(FILTERS) as FilterName[]).map((name) => (
            <button key={name} type="button" aria-pressed={filter === name} onClick={() => setFilter(name)}>
              {name}
            </button>
          ))}
        </div>
        <label class="search-field">
          <Icon name="search" small />
          <span class="visually-hidden">Filter by path, command or agent</span>
          <input
            type="search"
            placeholder="Path, command or agent"
            value={search}
            data-search
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          The history cannot be read: {problem}
        </p>
      )}
      {changes.length === 0 && problem === null && (
        <p class="stream-note">{numbers.length === 0 ? "No changes yet." : "No change matches the filter."}</p>
      )}
      <HistoryList changes={changes} />
      {!isComplete && numbers.length > 0 && (
        <button type="button" class="button" onClick={() => void load(numbers.at(-1), numbers)}>
          Older changes
        </button>
      )}
    </section>
  );
}

function newestChange(sessions: Iterable<{ lastChange: bigint | undefined }>): bigint {
  let newest = 0n;
  for (const { lastChange } of sessions) if (lastChange !== undefined && lastChange > newest) newest = lastChange;
  return newest;
}

function matches(change: Change, search: string): boolean {
  if (search === "") return true;
  const wanted = search.toLowerCase();
  const subject = change.subject?.subject;
  const texts = [
    ...change.files.map((file) => file.path),
    change.origin?.agent ?? "",
    subject?.case === "command" ? subject.value.command : "",
    subject?.case === "tool" ? subject.value.name : "",
  ];
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

function HistoryList({ changes }: { changes: Change[] }) {
  const now = useNow(60_000);
  const days = new Map<string, Change[]>();
  for (const change of changes) {
    const day = dayName(change.timeMs, now);
    days.set(day, [...(days.get(day) ?? []), change]);
  }
  return (
    <>
      {[...days].map(([day, ofDay]) => (
        <div key={day}>
          <h3 class="history-day">{day}</h3>
          <ul class="history-list">
            {ofDay.map((change) => (
              <HistoryRow key={String(change.change)} change={change} />
            ))}
          </ul>
        </div>
      ))}
    </>
  );
}

function HistoryRow({ change }: { change: Change }) {
  const { api, router } = useApp();
  const words = changeWords(change, null);
  const state = changeState(change);
  const added = change.files.reduce((sum, file) => sum + Number(file.added), 0);
  const removed = change.files.reduce((sum, file) => sum + Number(file.removed), 0);
  const isPending = change.status === Change_Status.PENDING;
  const canUndo = change.status === Change_Status.APPLIED && change.files.length > 0;
  return (
    <li class="history-row">
      <span class="numeric tertiary change-number">{String(change.change)}</span>
      <Icon name={words.icon} />
      <a
        class="line"
        href={router.href({ view: "change", change: change.change })}
        onClick={(event) => {
          event.preventDefault();
          router.go({ view: "change", change: change.change });
        }}
      >
        <span class="verb">{escapeUntrusted(words.verb)}</span>
        {words.path !== null && <Path path={words.path} />}
        {words.target !== null && <code class="ellipsis">{escapeUntrusted(words.target)}</code>}
        {words.path === null && words.detail !== null && <span class="secondary">{escapeUntrusted(words.detail)}</span>}
      </a>
      {(added > 0 || removed > 0) && <Counts added={added} removed={removed} />}
      <span class="secondary small-text agent-name">{escapeUntrusted(change.origin?.agent ?? "")}</span>
      <span class={`state ${state.state}`}>
        <Icon name={state.icon} small />
        {state.text}
      </span>
      <time class="numeric tertiary" title={fullTime(change.timeMs)}>
        {clockTime(change.timeMs)}
      </time>
      <span class="history-actions">
        {change.files.length > 0 && !isPending && (
          <button
            type="button"
            class="button quiet small"
            onClick={() => router.show({ kind: "diff", change: change.change })}
          >
            View diff
          </button>
        )}
        {canUndo && (
          <button type="button" class="button quiet small" onClick={() => planReversal(api, "undo", change.change)}>
            Undo
          </button>
        )}
        {change.status === Change_Status.UNDONE && (
          <button type="button" class="button quiet small" onClick={() => planReversal(api, "redo", change.change)}>
            Redo
          </button>
        )}
      </span>
    </li>
  );
}
