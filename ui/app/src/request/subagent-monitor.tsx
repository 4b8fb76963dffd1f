import { useEffect, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import { Section_ContentKind, Section_Kind, type Section } from "@sayso/client/proto/request";
import type { ListSubagentsResponse, ListSubagentsResponse_Run } from "@sayso/client/proto/request_service";

import { useApp } from "../context.js";
import { count, escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";
import { Markdown } from "../stream/markdown.js";
import { fullTime, secondTime } from "../times.js";
import { copyText } from "./outline.js";
import "./log.css";
import { useModels } from "./shared.js";
import { cardTitle, kindWord, tokenWords } from "./words.js";

/** The last runs of subagents. Read only: copy a section, or open its request in the log. */
export function SubagentMonitor({ session }: { session?: string }) {
  const { api } = useApp();
  const { list } = useModels();
  const [answer, setAnswer] = useState<ListSubagentsResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const newest = list.numbers.value[0];
  useEffect(() => {
    api.requests.listSubagents({ contentLimit: 0, ...(session === undefined ? {} : { session }) }).then(
      (runs) => {
        setAnswer(runs);
        setProblem(null);
      },
      (error: unknown) => setProblem(describeFailure(error).message),
    );
  }, [api, newest, session]);
  if (problem !== null) {
    return (
      <p class="problem" role="alert">
        The runs of subagents cannot be read: {problem}
      </p>
    );
  }
  if (!answer) return <p class="stream-note">Reading the runs of subagents…</p>;
  return (
    <section class="subagent-monitor" aria-label="Subagent prompt monitor">
      <p class="secondary small-text">
        Requests of subagents are never paused. The last {String(answer.maxRuns)} runs are kept (
        <code>[request] monitor</code>).
      </p>
      {answer.runs.length === 0 && <p class="stream-note">No subagent has sent a request yet.</p>}
      <ul class="run-tree" role="tree" aria-label="Runs of subagents" onKeyDown={moveInTree}>
        {answer.runs.map((run, index) => (
          <Run key={`${run.session}/${run.subagent?.id ?? run.request}`} run={run} isFirst={index === 0} />
        ))}
      </ul>
    </section>
  );
}

/** Arrow keys move between the rows of a tree; right and left open and close. */
function moveInTree(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=treeitem] > .run-row")];
  const at = items.findIndex((item) => item === document.activeElement);
  if (at < 0) return;
  const item = items[at];
  const isOpen = item?.parentElement?.getAttribute("aria-expanded");
  if (event.key === "ArrowDown") items[at + 1]?.focus();
  else if (event.key === "ArrowUp") items[at - 1]?.focus();
  else if (event.key === "Home") items[0]?.focus();
  else if (event.key === "End") items.at(-1)?.focus();
  else if ((event.key === "ArrowRight" && isOpen === "false") || (event.key === "ArrowLeft" && isOpen === "true"))
    item?.click();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function Run({ run, isFirst }: { run: ListSubagentsResponse_Run; isFirst: boolean }) {
  const { api, router } = useApp();
  const [sections, setSections] = useState<Section[] | null>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (!isOpen) return;
    api.requests.listSubagents({ request: run.request, contentLimit: 20_000 }).then(
      ({ runs }) => setSections(runs[0]?.sections ?? []),
      () => setSections([]),
    );
  }, [api, isOpen, run.request]);
  const intent = run.subagent?.id ?? run.agent ?? "subagent";
  const label = `${run.conversation} · ${intent} · ${secondTime(run.startedMs)}`;
  return (
    <li role="treeitem" aria-expanded={isOpen} aria-label={label}>
      <button type="button" class="run-row" tabIndex={isFirst ? 0 : -1} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} small />
        <span class="ellipsis" title={fullTime(run.startedMs)}>
          {escapeUntrusted(run.conversation)}
          <span class="dot">·</span>
          {escapeUntrusted(intent)}
          <span class="dot">·</span>
          {secondTime(run.startedMs)}
        </span>
        <span class="grow" />
        <span class="secondary numeric">
          {count(Number(run.requests), "request")}
          <span class="dot">·</span>
          {tokenWords(run.tokens)}
        </span>
      </button>
      {isOpen && (
        <ul role="group">
          <li role="none" class="run-actions">
            <button
              type="button"
              class="button quiet small"
              onClick={() => router.go({ view: "request", request: run.request })}
            >
              Reveal in request log
            </button>
          </li>
          {sections === null && <li class="secondary">Reading…</li>}
          {sections
            ?.filter((section) => section.parent === undefined)
            .map((section) => (
              <RunSection
                key={section.id}
                section={section}
                parts={sections.filter((child) => child.parent === section.id)}
              />
            ))}
        </ul>
      )}
    </li>
  );
}

function RunSection({ section, parts }: { section: Section; parts: Section[] }) {
  const [isOpen, setOpen] = useState(false);
  const shown =
    parts.length === 0 ? [section] : parts.filter((part) => part.contentKind === Section_ContentKind.TEXT || part.tool);
  const text = shown.map((part) => part.tool?.arguments ?? part.content).join("\n\n");
  const title = cardTitle(section, parts);
  return (
    <li role="treeitem" aria-expanded={isOpen} aria-label={`${kindWord(section)}, ${title}`}>
      <button type="button" class="run-row" tabIndex={-1} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} small />
        <span class="kind-badge">{kindWord(section)}</span>
        <span class="ellipsis">{title}</span>
        <span class="grow" />
        <span class="secondary numeric">{tokenWords(section.tokens)}</span>
      </button>
      {isOpen && (
        <div class="run-body">
          <button type="button" class="button quiet small" onClick={() => void copyText(text, "Section")}>
            <Icon name="copy" small /> Copy section
          </button>
          {section.kind === Section_Kind.TOOL ? (
            <pre class="plain-text">{escapeUntrustedLines(text)}</pre>
          ) : (
            <Markdown text={text} />
          )}
        </div>
      )}
    </li>
  );
}
