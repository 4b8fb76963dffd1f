import { useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import { RequestStatus, type RequestSummary } from "@sayso/client/proto/request";
import {
  RequestBody,
  ReplayRequestRequest_Form,
  type ReplayRequestResponse,
} from "@sayso/client/proto/request_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { count, escapeUntrusted, escapeUntrustedLines, formatNumber } from "../diff/words.js";
import { Markdown } from "../stream/markdown.js";
import { formatDollars, formatElapsed } from "../times.js";
import { answerText } from "./answer-text.js";
import { useEditor } from "./editor-context.js";
import { UnifiedText } from "./unified-text.js";
import { CAUSE_WORDS, percent, statusWord } from "./words.js";

/** Response, usage, cost, cache explanation and replay of a recorded request. */
export function Recorded() {
  const { show, model } = useEditor();
  const { api, router } = useApp();
  const request = show.summary;
  const [answer, setAnswer] = useState<string | null>(null);
  const [replay, setReplay] = useState<ReplayRequestResponse | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  if (!request) return null;
  const run = async (form: ReplayRequestRequest_Form) => {
    setRunning(true);
    setProblem(null);
    try {
      const response = await api.requests.replayRequest({ request: model.number, form });
      setReplay(response);
      announce(`Replayed as request ${response.request}`);
    } catch (error) {
      setProblem(describeFailure(error).message);
    } finally {
      setRunning(false);
    }
  };
  const readAnswer = async () => {
    try {
      setAnswer(answerText(await model.readBody(RequestBody.ANSWER, false)));
    } catch (error) {
      setProblem(describeFailure(error).message);
    }
  };
  const wasEdited = request.edited || request.sent !== undefined;
  return (
    <section class="recorded" aria-label="Response">
      <Usage request={request} />
      {show.cacheMiss && (
        <p class="small-text cache-explanation">
          <b>Cache: {CAUSE_WORDS[show.cacheMiss.cause]}.</b> {show.cacheMiss.text}
          {show.cacheMiss.path !== undefined && (
            <>
              , first at <code>{show.cacheMiss.path}</code>
              {show.cacheMiss.old !== undefined && (
                <>
                  : <del>{escapeUntrusted(show.cacheMiss.old)}</del>{" "}
                  <ins>{escapeUntrusted(show.cacheMiss.new ?? "")}</ins>
                </>
              )}
            </>
          )}
          , compared with request{" "}
          <a
            href={router.href({ view: "request", request: show.cacheMiss.previousRequest })}
            onClick={(event) => {
              event.preventDefault();
              if (show.cacheMiss) router.go({ view: "request", request: show.cacheMiss.previousRequest });
            }}
          >
            {String(show.cacheMiss.previousRequest)}
          </a>
          .
        </p>
      )}
      <div class="recorded-actions">
        {request.status === RequestStatus.ANSWERED && answer === null && (
          <button type="button" class="button small" onClick={() => void readAnswer()}>
            Show response
          </button>
        )}
        <button
          type="button"
          class="button small"
          disabled={isRunning}
          onClick={() => void run(ReplayRequestRequest_Form.AS_SENT)}
        >
          {isRunning ? "Replaying…" : "Replay"}
        </button>
        {wasEdited && (
          <button
            type="button"
            class="button quiet small"
            disabled={isRunning}
            onClick={() => void run(ReplayRequestRequest_Form.AS_RECEIVED)}
          >
            Replay as received
          </button>
        )}
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          {escapeUntrusted(problem)}
        </p>
      )}
      {answer !== null && (
        <section class="answer" aria-label="Response of the model">
          <h3>Response</h3>
          <Markdown text={answer} />
        </section>
      )}
      {replay && <Replay replay={replay} />}
    </section>
  );
}

/** The two answers, side by side, and their difference. */
function Replay({ replay }: { replay: ReplayRequestResponse }) {
  return (
    <section class="replay" aria-label="Replay">
      <div class="answer">
        <h3>Recorded answer</h3>
        <pre class="plain-text">{escapeUntrustedLines(replay.earlierAnswer ?? "No recorded answer.")}</pre>
      </div>
      <div class="answer">
        <h3>
          New answer{" "}
          <span class="secondary">
            request {String(replay.request)} · status {replay.status}
          </span>
        </h3>
        <pre class="plain-text">{escapeUntrustedLines(replay.answer)}</pre>
      </div>
      <details>
        <summary>{replay.diff === "" ? "The answers are equal" : "Difference"}</summary>
        <UnifiedText text={replay.diff} />
      </details>
    </section>
  );
}

function Usage({ request }: { request: RequestSummary }) {
  const { answer, cost } = request;
  const facts: [string, string][] = [["Status", statusWord(request)]];
  if (answer) {
    facts.push(["First byte", formatElapsed(Number(answer.firstByteMs))]);
    facts.push(["Duration", formatElapsed(Number(answer.totalMs))]);
    if (answer.finish !== undefined) facts.push(["Stop reason", answer.finish]);
    if (answer.retries > 0) facts.push(["Retries", count(answer.retries, "attempt")]);
    if (answer.error !== undefined) facts.push(["Error", answer.error]);
  }
  if (cost) {
    facts.push(["Cache read", formatNumber(Number(cost.cacheRead))]);
    facts.push(["Cache write", formatNumber(Number(cost.cacheWritten))]);
    facts.push(["Fresh input", formatNumber(Number(cost.input))]);
    facts.push(["Output", formatNumber(Number(cost.output + cost.reasoning))]);
    facts.push(["Cache share", percent(cost.cacheShare)]);
    facts.push(["Price", cost.nanoDollars === undefined ? "unknown" : formatDollars(cost.nanoDollars)]);
  }
  const { overrides } = request;
  if (overrides && overrides.applied.length > 0) facts.push(["Saved edits applied", String(overrides.applied.length)]);
  if (overrides && overrides.skipped.length > 0) facts.push(["Saved edits skipped", String(overrides.skipped.length)]);
  return (
    <dl class="usage numeric">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{escapeUntrusted(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
