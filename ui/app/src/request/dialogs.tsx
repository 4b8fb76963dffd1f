import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

import { describeFailure } from "@sayso/client";
import type { Section } from "@sayso/client/proto/request";
import { RequestBody, type DiffRequestResponse_SectionDiff } from "@sayso/client/proto/request_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { FullDiff } from "../diff/full.js";
import { escapeUntrustedLines, formatSize } from "../diff/words.js";
import { Icon } from "../icon.js";
import { fullTime } from "../times.js";
import { flatten } from "./tree.js";
import { useEditor } from "./editor-context.js";
import { copyText } from "./outline.js";
import { UnifiedText } from "./unified-text.js";
import { scopeWord } from "./words.js";

/** A modal dialog of the editor. Escape and a click beside it close it; the focus goes back. */
export function Modal(props: { title: string; onClose: () => void; isLarge?: boolean; children: ComponentChildren }) {
  const { title, onClose, isLarge = false, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      class={`dialog request-dialog${isLarge ? " large" : ""}`}
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      {children}
    </dialog>
  );
}

/** The original and the edited request, side by side. */
export function CompareDialog({ request, onClose }: { request: bigint; onClose: () => void }) {
  return (
    <Modal title="Original and edited request" onClose={onClose} isLarge>
      <FullDiff
        subject={{ subject: { case: "request", value: request } }}
        title={`Request ${request}`}
        onClose={onClose}
      />
    </Modal>
  );
}

const BODIES: readonly (readonly [RequestBody, string])[] = [
  [RequestBody.AS_SENT, "As sent"],
  [RequestBody.AS_RECEIVED, "As received"],
  [RequestBody.PATCH, "Edits as JSON Patch"],
];
const MAX_SHOWN = 300_000;

/** The raw payload: select, copy, open in a tab. */
export function PayloadDialog({ onClose }: { onClose: () => void }) {
  const { model, show } = useEditor();
  const [body, setBody] = useState(RequestBody.AS_SENT);
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const revision = show.summary?.revision;
  const isHeld = show.summary?.held === true;
  useEffect(() => {
    let isCurrent = true;
    setText(null);
    setProblem(null);
    model.readBody(body, isHeld && body === RequestBody.AS_SENT).then(
      (read) => isCurrent && setText(read),
      (error: unknown) => isCurrent && setProblem(describeFailure(error).message),
    );
    return () => {
      isCurrent = false;
    };
  }, [model, body, revision, isHeld]);
  const shown = text === null ? "" : indent(text);
  const open = () => {
    const url = URL.createObjectURL(new Blob([text ?? ""], { type: "application/json" }));
    window.open(url, "_blank", "noopener");
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    announce("Opened in a tab");
  };
  return (
    <Modal title="Raw payload" onClose={onClose} isLarge>
      <header class="payload-header">
        <h2>Raw payload</h2>
        <span class="segments" role="group" aria-label="Body">
          {BODIES.filter(([value]) => value !== RequestBody.PATCH || isHeld).map(([value, label]) => (
            <button key={value} type="button" aria-pressed={body === value} onClick={() => setBody(value)}>
              {label}
            </button>
          ))}
        </span>
        <span class="grow" />
        {text !== null && <span class="secondary numeric">{formatSize(text.length)}</span>}
        <button
          type="button"
          class="button small"
          disabled={text === null}
          onClick={() => void copyText(text ?? "", "Payload")}
        >
          <Icon name="copy" small /> Copy
        </button>
        <button type="button" class="button small" disabled={text === null} onClick={open}>
          Open
        </button>
        <button type="button" class="button quiet small" onClick={onClose}>
          Close
        </button>
      </header>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <pre class="payload" tabIndex={0} aria-label="Payload">
        {text === null && problem === null ? "Reading…" : escapeUntrustedLines(shown.slice(0, MAX_SHOWN))}
      </pre>
      {shown.length > MAX_SHOWN && (
        <p class="secondary small-text">The first {formatSize(MAX_SHOWN)} are shown. Copy and Open have all of it.</p>
      )}
    </Modal>
  );
}

function indent(text: string): string {
  // A large body is not laid out anew: it is shown as it is sent.
  if (text.length > MAX_SHOWN) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Differences of a section from the received one, with the scope and time of a saved edit. */
export function ChipDialog({ section, onClose }: { section: Section; onClose: () => void }) {
  const { api } = useApp();
  const { model, tree, show } = useEditor();
  const [diffs, setDiffs] = useState<DiffRequestResponse_SectionDiff[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const revision = show.summary?.revision;
  useEffect(() => {
    const node = tree.byId.get(section.id);
    const ids = new Set(node ? flatten(node).map(({ id }) => id) : [section.id]);
    api.requests.diffRequest({ request: model.number, context: 3 }).then(
      ({ sections }) => setDiffs(sections.filter((diff) => ids.has(diff.section))),
      (error: unknown) => setProblem(describeFailure(error).message),
    );
  }, [api, model, tree, section.id, revision]);
  return (
    <Modal title="Difference of the section" onClose={onClose}>
      <header class="payload-header">
        <h2>Edited</h2>
        <span class="grow" />
        <button type="button" class="button quiet small" onClick={onClose}>
          Close
        </button>
      </header>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {diffs === null && problem === null && <p class="secondary">Reading…</p>}
      {diffs?.length === 0 && (
        <p class="secondary">
          The engine keeps the difference by section while the request is paused. The log has the whole one.
        </p>
      )}
      {diffs?.map((diff) => (
        <section key={diff.section + diff.path} class="section-diff" aria-label={diff.path}>
          <h3>
            <code>{diff.path}</code>
            {diff.appliedOverride && (
              <span class="secondary">
                saved edit · {scopeWord(diff.appliedOverride.scope)} · {fullTime(diff.appliedOverride.savedMs)}
              </span>
            )}
          </h3>
          <UnifiedText text={diff.unified} />
        </section>
      ))}
    </Modal>
  );
}
