import { useRef, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { preferences } from "../preferences.js";
import { completionAt, type Completion } from "./completion.js";
import { CompletionList, useCompletions } from "./completion-list.js";
import { type Attachment, readImages } from "./images.js";
import { mentionedFiles } from "./mentions.js";
import { QuestionBox } from "./question.js";
import { RequestModeBar } from "./request-mode.js";
import { SettingsPickers } from "./settings.js";
import { commandOf, COMMANDS } from "./slash.js";

/** Drafts by session. A draft outlives the view, a lost connection and a review. */
const drafts = new Map<string, string>();

/** The message field of a session of the built-in agent. */
export function BuiltInComposer({ session }: { session: string }) {
  const { api, store, router } = useApp();
  const live = store.agent(session);
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(() => drafts.get(session) ?? "");
  const [images, setImages] = useState<Attachment[]>([]);
  const [completion, setCompletion] = useState<Completion | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const list = useCompletions(completion, session);
  const isLive = store.connection.value.state === "live";
  const isRunning = live.running.value;

  const update = (value: string) => {
    drafts.set(session, value);
    setText(value);
    setCompletion(completionAt(value, field.current?.selectionStart ?? value.length));
  };
  const insert = (choice: string) => {
    if (!completion) return;
    const before = text.slice(0, completion.start);
    update(`${before}${completion.sign}${choice} ${text.slice(completion.end)}`);
    setCompletion(null);
    field.current?.focus();
  };
  const send = async () => {
    const prompt = text.trim();
    if (prompt === "" || !isLive) return;
    const command = commandOf(prompt);
    setProblem(null);
    try {
      if (command) {
        await COMMANDS[command].run({ api, router, session });
      } else {
        await invoke(prompt);
      }
      update("");
      setImages([]);
    } catch (error) {
      setProblem(describeFailure(error).message);
    }
  };
  // The invocation goes on without this stream; the events come by Attach.
  const invoke = async (prompt: string) => {
    const stop = new AbortController();
    const request = { session, prompt, files: mentionedFiles(prompt), images };
    const events = api.agent.invoke(request, { signal: stop.signal });
    await events[Symbol.asyncIterator]().next();
    stop.abort();
    announce(isRunning ? "Queued" : "Sent");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (list.onKey(event, insert)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    }
    if (event.key === "Escape") field.current?.blur();
  };
  const addImages = (files: Iterable<File>) => {
    readImages(files).then(
      (added) => setImages((present) => [...present, ...added]),
      (error: unknown) => setProblem(String(error instanceof Error ? error.message : error)),
    );
  };
  return (
    <div class="composer">
      <InvocationLine session={session} />
      <QuestionBox session={session} />
      <div class="composer-box">
        <CompletionList list={list} onChoose={insert} />
        {images.length > 0 && (
          <ul class="attachments">
            {images.map((image, index) => (
              <li class="chip" key={index}>
                <Icon name="image" small />
                {escapeUntrusted(image.name)}
                <button
                  type="button"
                  class="button quiet small icon-only"
                  aria-label={`Remove ${image.name}`}
                  onClick={() => setImages(images.filter((other) => other !== image))}
                >
                  <Icon name="close" small />
                </button>
              </li>
            ))}
          </ul>
        )}
        <textarea
          ref={field}
          rows={Math.min(10, Math.max(1, text.split("\n").length))}
          value={text}
          aria-label="Message"
          aria-keyshortcuts="i"
          placeholder={placeholder(isLive, isRunning)}
          onInput={(event) => update(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const files = [...(event.clipboardData?.files ?? [])];
            if (files.length > 0) addImages(files);
          }}
        />
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="composer-bar">
          <SettingsPickers session={session} />
          <RequestModeBar session={session} />
          <button
            type="button"
            class="button quiet small"
            aria-pressed={preferences.showThinking.value}
            aria-keyshortcuts="t"
            onClick={() => (preferences.showThinking.value = !preferences.showThinking.value)}
          >
            {preferences.showThinking.value ? "Hide thinking" : "Show thinking"}
          </button>
          <label class="button quiet small">
            <Icon name="image" small />
            Image
            <input
              type="file"
              class="visually-hidden"
              accept="image/png,image/jpeg,image/gif,image/webp"
              multiple
              onChange={(event) => addImages(event.currentTarget.files ?? [])}
            />
          </label>
          <span class="grow" />
          {isRunning && (
            <button
              type="button"
              class="button small"
              aria-keyshortcuts="Escape Escape"
              onClick={() => void api.agent.interrupt({ session }).catch(() => announce("The turn goes on"))}
            >
              <Icon name="stop" small />
              Interrupt <kbd aria-hidden="true">Esc Esc</kbd>
            </button>
          )}
          <button
            type="button"
            class="button small"
            disabled={text.trim() === "" || !isLive || !store.canDecide.value}
            onClick={() => void send()}
          >
            {isRunning ? "Queue" : "Send"} <kbd aria-hidden="true">↵</kbd>
          </button>
        </div>
      </div>
    </div>
  );
}

function placeholder(isLive: boolean, isRunning: boolean): string {
  if (!isLive) return "Your text is kept and can be sent when the connection is back.";
  return isRunning
    ? "Message the agent. It is sent after this turn."
    : "Message the agent. @ adds a file, / is a command.";
}

/** One line about the running invocation: its step, tokens and price. */
function InvocationLine({ session }: { session: string }) {
  const { store } = useApp();
  const live = store.agent(session);
  const status = live.status.value;
  const failed = live.failed.value;
  const usage = live.usage.value;
  const queued = store.builtIn.value.get(session)?.queued ?? 0;
  if (failed) {
    return (
      <p class="invocation problem" role="alert">
        <Icon name="failed" small /> {escapeUntrusted(failed.message)} {escapeUntrusted(failed.hint)}
      </p>
    );
  }
  if (!status && queued === 0) return null;
  const dollars = usage?.costMicroUsd === undefined ? null : `$${(Number(usage.costMicroUsd) / 1e6).toFixed(3)}`;
  return (
    <p class="invocation secondary">
      {status && (
        <span class="state running">
          <Icon name="running" small />
          {escapeUntrusted(status.text === "" ? "running" : status.text)}
        </span>
      )}
      <span class="grow" />
      {queued > 0 && <span>{queued} queued</span>}
      {usage?.contextPercent !== undefined && <span class="numeric">{usage.contextPercent} % of the window</span>}
      {dollars !== null && <span class="numeric">{dollars}</span>}
    </p>
  );
}
