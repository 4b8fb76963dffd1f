import { useState } from "preact/hooks";

import { announce } from "../announce.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { ExactNumber, groupSummary, type Json } from "./leaves.js";

export async function copyText(text: string, name: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${name} copied`);
  } catch {
    announce(`${name} cannot be copied: the browser denies access to the clipboard`);
  }
}

/** One line of the metadata: name, value, copy. */
export function OutlineLine(props: { name: string; value: string; depth?: number; copy?: string; isMuted?: boolean }) {
  const { name, value, depth = 0, copy = value, isMuted = false } = props;
  return (
    <div class="outline-row" style={{ "--depth": depth }}>
      <span />
      <span class="secondary ellipsis">{escapeUntrusted(name)}</span>
      <span class={`outline-value ellipsis${isMuted ? " tertiary" : ""}`} title={escapeUntrusted(value.slice(0, 400))}>
        {escapeUntrusted(value.slice(0, 400))}
      </span>
      <CopyButton text={copy} name={name} />
    </div>
  );
}

function CopyButton({ text, name }: { text: string; name: string }) {
  return (
    <button
      type="button"
      class="copy-button"
      aria-label={`Copy ${name}`}
      title="Copy"
      onClick={() => void copyText(text, name)}
    >
      <Icon name="copy" small />
    </button>
  );
}

const MAX_ITEMS = 200;

/** A value as an outline: objects by key, arrays by index, each with copy. Groups open on request. */
export function Outline(props: { name: string; value: Json; depth?: number; summary?: string; isOpen?: boolean }) {
  const { name, value, depth = 0, summary, isOpen: initial = false } = props;
  const [isOpen, setOpen] = useState(initial);
  if (value === null || typeof value !== "object" || value instanceof ExactNumber) {
    return <OutlineLine name={name} value={scalar(value)} depth={depth} />;
  }
  const entries: [string, Json][] = Array.isArray(value)
    ? value.slice(0, MAX_ITEMS).map((item, index) => [String(index), item])
    : Object.entries(value).slice(0, MAX_ITEMS);
  return (
    <>
      <div class="outline-row" style={{ "--depth": depth }}>
        <button type="button" class="outline-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? "down" : "right"} small />
          <span class="secondary ellipsis">{escapeUntrusted(name)}</span>
          <span class="outline-value tertiary ellipsis">{summary ?? escapeUntrusted(groupSummary(value))}</span>
        </button>
        <CopyButton text={printJson(value)} name={name} />
      </div>
      {isOpen && entries.map(([key, child]) => <Outline key={key} name={key} value={child} depth={depth + 1} />)}
    </>
  );
}

function scalar(value: null | boolean | number | string | ExactNumber): string {
  if (value instanceof ExactNumber) return value.source;
  return typeof value === "string" ? value : String(value);
}

function printJson(value: Json): string {
  return JSON.stringify(value, (_, child: unknown) => (child instanceof ExactNumber ? Number(child.source) : child), 2);
}
