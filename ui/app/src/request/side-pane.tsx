import { useEffect, useState } from "preact/hooks";

import { Section_NodeType, type EditImpact } from "@sayso/client/proto/request";

import { count, formatNumber, formatSize } from "../diff/words.js";
import { Icon } from "../icon.js";
import { useEditor, type Editor } from "./editor-context.js";
import { parseJson, type Json } from "./leaves.js";
import { Outline, OutlineLine } from "./outline.js";
import { requestPreferences } from "./request-preferences.js";
import { messageNumber, rootOf } from "./tree.js";
import { percent, tokenNumber, tokenWords } from "./words.js";

export type SideDialog = "compare" | "payload" | null;

/** Consequences of the edits, metadata, and other views of the request. */
export function SidePane({ onDialog, onLog }: { onDialog: (dialog: SideDialog) => void; onLog: () => void }) {
  const editor = useEditor();
  const { show } = editor;
  return (
    <aside class="side-pane" aria-label="About the request">
      <Consequences editor={editor} />
      <Metadata editor={editor} />
      <section class="pane" aria-label="Compare">
        <h3>Compare</h3>
        <p class="pane-links">
          <button
            type="button"
            class="button link"
            disabled={show.edits.length === 0 && show.summary?.edited !== true}
            onClick={() => onDialog("compare")}
          >
            Original and edited, side by side
          </button>
          <button type="button" class="button link" onClick={() => onDialog("payload")}>
            Raw payload
          </button>
          <button type="button" class="button link" onClick={onLog}>
            Request log
          </button>
        </p>
      </section>
    </aside>
  );
}

function Consequences({ editor }: { editor: Editor }) {
  const { show, canEdit } = editor;
  const { impact } = show;
  return (
    <section class="pane" aria-label="Consequences" aria-live="polite">
      <h3>Consequences</h3>
      {impact ? (
        <Impact editor={editor} impact={impact} />
      ) : (
        <p class="secondary small-text">
          {canEdit ? "No edits. The request is sent byte for byte as the agent wrote it." : "Sent without edits."}
        </p>
      )}
    </section>
  );
}

function Impact({ editor, impact }: { editor: Editor; impact: EditImpact }) {
  const { tree, show } = editor;
  const after = Number(impact.after?.count ?? 0n);
  const before = Number(impact.before?.count ?? 0n);
  const reread = Math.min(after, Number(impact.reread?.count ?? 0n));
  const kept = after - reread;
  const saved = before - after;
  const broken = breakNumber(editor);
  const sealed = impact.sealedAfter.length;
  const first = tree.groups[0]?.nodes.find(({ section }) => section.id === cacheBreak(editor));
  return (
    <>
      <CacheBar
        kept={kept}
        reread={reread}
        label={broken === null ? "nothing broken" : `broken from section ${broken}`}
      />
      <p class="consequence-line">
        <span class="large-number numeric">
          {saved >= 0 ? "−" : "+"}
          {formatNumber(Math.abs(saved))}
        </span>
        <span class="secondary small-text">tokens compared with no edits</span>
      </p>
      <dl class="facts numeric">
        <dt>Tokens before</dt>
        <dd>{tokenNumber(impact.before)}</dd>
        <dt>Tokens as sent</dt>
        <dd>{tokenNumber(impact.after)}</dd>
        <dt>Tokens billed again</dt>
        <dd>{tokenNumber(impact.reread)}</dd>
        <dt>Cache breakpoints lost</dt>
        <dd>{formatNumber(impact.breakpointsLost.length)}</dd>
      </dl>
      {first && <p class="visually-hidden">The first changed section is {first.section.label}.</p>}
      {sealed > 0 && (
        <p class="consequence-warning">
          <Icon name="warning" small />
          <span>
            {count(sealed, "signed block")} after the first edit no longer {sealed === 1 ? "verifies" : "verify"}. The
            upstream may reject {sealed === 1 ? "it" : "them"}.
          </span>
        </p>
      )}
      {impact.alternative !== undefined && <p class="secondary small-text">With less impact: {impact.alternative}.</p>}
      {show.cacheMiss?.text !== undefined && <p class="secondary small-text">As received: {show.cacheMiss.text}.</p>}
    </>
  );
}

/** Id of the first section at the top that an edit changed. */
export function cacheBreak({ show, tree }: Pick<Editor, "show" | "tree">): string | undefined {
  if (!show.impact || (show.impact.reread?.count ?? 0n) === 0n) return undefined;
  for (const name of ["Tools", "Messages"] as const) {
    for (const node of tree.groups.find((group) => group.name === name)?.nodes ?? []) {
      const isChanged = [node.section, ...node.children.map((child) => child.section)].some(
        (section) => (section.edited || section.deleted) && section.node !== Section_NodeType.REQUEST_OPTION,
      );
      if (isChanged) return node.section.id;
    }
  }
  return undefined;
}

function breakNumber(editor: Editor): number | null {
  const id = cacheBreak(editor);
  const root = id === undefined ? undefined : rootOf(editor.tree, id);
  return root ? (messageNumber(editor.tree, root.section.id) ?? null) : null;
}

function CacheBar({ kept, reread, label }: { kept: number; reread: number; label: string }) {
  const width = 292;
  const total = Math.max(1, kept + reread);
  const split = Math.round((kept / total) * width);
  const name = `Cache: ${formatNumber(kept)} tokens may still match, ${formatNumber(reread)} are sent anew`;
  return (
    <>
      <svg class="cache-bar" viewBox={`0 0 ${width} 16`} role="img" aria-label={name}>
        <rect x="0" y="0" width={split} height="10" rx="2" class="cache-kept" />
        {reread > 0 && (
          <rect x={split + 1.5} y="0.5" width={Math.max(1, width - split - 2)} height="9" rx="2" class="cache-lost" />
        )}
        {reread > 0 && <path d={`M${Math.max(1, split)} 0v16`} class="cache-cut" />}
      </svg>
      <p class="cache-words numeric">
        <span class="secondary">cached {formatNumber(kept)}</span>
        <span class={reread > 0 ? "bad-text" : "secondary"}>{label}</span>
      </p>
    </>
  );
}

const KNOWN_FIELDS = ["sessionId", "requestId", "model", "location", "interception", "dirty", "endpoint", "timestamp"];

function Metadata({ editor }: { editor: Editor }) {
  const { show } = editor;
  const [isConfiguring, setConfiguring] = useState(false);
  const fields = requestPreferences.metadataFields.value;
  const values = new Map(show.metadata.map(({ name, value }) => [name, value]));
  const tokens = Number(show.tokens?.count ?? 0n);
  const window = show.contextWindow;
  return (
    <section class="pane" aria-label="Metadata">
      <h3>
        Metadata
        <span class="grow" />
        <button
          type="button"
          class="button link"
          aria-expanded={isConfiguring}
          onClick={() => setConfiguring(!isConfiguring)}
        >
          Configure
        </button>
      </h3>
      {isConfiguring && <Configure names={[...new Set([...KNOWN_FIELDS, ...values.keys()])]} />}
      <div class="outline">
        {fields
          .filter((field) => values.has(field))
          .map((field) => (
            <OutlineLine key={field} name={field} value={values.get(field) ?? ""} />
          ))}
        <div class="outline-row numeric">
          <Icon name="cost" small />
          <span class="secondary">Token budget</span>
          <span class="outline-value outline-wide">
            {window === undefined
              ? tokens === 0
                ? "awaiting data"
                : tokenWords(show.tokens)
              : `${formatNumber(tokens)} of ${formatNumber(Number(window))} · ${percent(tokens / Number(window))}`}
          </span>
        </div>
        <ExtraSections editor={editor} />
      </div>
    </section>
  );
}

/** Fields of the metadata and extra sections. The choice is kept in this browser. */
function Configure({ names }: { names: string[] }) {
  const { metadataFields, extraSections } = requestPreferences;
  const flip = (list: { value: string[] }, name: string) => {
    list.value = list.value.includes(name) ? list.value.filter((other) => other !== name) : [...list.value, name];
  };
  const box = (list: { value: string[] }, name: string) => (
    <label key={name}>
      <input type="checkbox" class="checkbox" checked={list.value.includes(name)} onChange={() => flip(list, name)} />
      {name}
    </label>
  );
  return (
    <fieldset class="configure">
      <legend class="visually-hidden">Metadata fields and extra sections</legend>
      {names.map((name) => box(metadataFields, name))}
      {["requestOptions", "rawRequest"].map((name) => box(extraSections, name))}
      <p class="secondary">Kept in this browser. Fields appear in the order in which you choose them.</p>
    </fieldset>
  );
}

/** Request options and the raw request as outlines. */
function ExtraSections({ editor }: { editor: Editor }) {
  const { show, model } = editor;
  const extras = requestPreferences.extraSections.value;
  const isRaw = extras.includes("rawRequest");
  useEffect(() => {
    if (isRaw) void model.loadBody();
  }, [isRaw, model]);
  const body = model.body.value;
  const options = optionsOf(editor);
  const size = Number(show.summary?.sent?.size ?? show.summary?.received?.body?.size ?? 0n);
  const keys = Object.keys(options).length;
  return (
    <>
      {extras.includes("requestOptions") && keys > 0 && (
        <Outline name="requestOptions" value={options} summary={count(keys, "key")} isOpen={keys <= 8} />
      )}
      {isRaw && body && <Outline name="rawRequest" value={body.value} summary={formatSize(size)} />}
      {isRaw && !body && <OutlineLine name="rawRequest" value="reading…" isMuted />}
    </>
  );
}

function optionsOf({ show }: Editor): Record<string, Json> {
  const options: Record<string, Json> = {};
  for (const section of show.sections) {
    if (section.node !== Section_NodeType.REQUEST_OPTION || section.parent !== undefined || section.deleted) continue;
    options[section.label] = readOption(section.content);
  }
  return options;
}

function readOption(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
