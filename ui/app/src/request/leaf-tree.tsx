import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import { Section_Editable } from "@sayso/client/proto/request";

import { announce } from "../announce.js";
import { escapeUntrustedLines, formatNumber } from "../diff/words.js";
import { Icon } from "../icon.js";
import { useEditor, type Editor } from "./editor-context.js";
import { leafRows, parsePath, readLeaf, valueAt, type LeafRow } from "./leaves.js";
import { flatten, type SectionNode } from "./tree.js";

const MAX_ROWS = 400;
const MAX_SHOWN = 600;

/** Keys and values of a section. Leaves are edited in place, each with one edit. */
export function LeafTree({ node }: { node: SectionNode }) {
  const editor = useEditor();
  const { model, view } = editor;
  const body = model.body.value;
  const { rawPath } = node.section;
  useEffect(() => void model.loadBody(), [model]);
  const toggled = view.toggled.value;
  const rows = useMemo(() => {
    const value = body ? valueAt(body.value, parsePath(rawPath) ?? []) : undefined;
    return value === undefined ? null : leafRows(value, rawPath, toggled);
  }, [body, rawPath, toggled]);
  const root = useRef<HTMLDivElement>(null);
  const locked = useMemo(() => lockedPaths(node), [node]);
  if (!rows) {
    return (
      <p class="secondary small-text" role="status">
        {body ? "This section has no value of its own in the body." : "Reading the body…"}
      </p>
    );
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLTextAreaElement) return;
    const items = [...(root.current?.querySelectorAll<HTMLElement>("[data-leaf]") ?? [])];
    const at = items.findIndex((item) => item === document.activeElement);
    const target =
      event.key === "ArrowDown"
        ? items[at + 1]
        : event.key === "ArrowUp"
          ? items[at - 1]
          : event.key === "Home"
            ? items[0]
            : event.key === "End"
              ? items.at(-1)
              : undefined;
    const row = rows.find(({ path }) => path === items[at]?.dataset.leaf);
    if (target) target.focus();
    else if (row?.kind === "group" && event.key === (row.isOpen ? "ArrowLeft" : "ArrowRight"))
      view.toggleGroup(row.path);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <div class="leaf-tree" ref={root} role="group" aria-label={`Keys and values of ${rawPath}`} onKeyDown={onKeyDown}>
        {rows
          .slice(0, MAX_ROWS)
          .map((row) =>
            row.kind === "group" ? (
              <GroupRow key={row.path} row={row} onToggle={() => view.toggleGroup(row.path)} />
            ) : (
              <LeafLine key={row.path} row={row} editor={editor} locked={lockOf(locked, row.path)} />
            ),
          )}
        {rows.length > MAX_ROWS && (
          <p class="secondary leaf-more">{formatNumber(rows.length - MAX_ROWS)} more rows. Close groups to see them.</p>
        )}
      </div>
      <p class="leaf-help secondary">
        <span>
          One leaf, one edit. <kbd>Ctrl Z</kbd> undo, <kbd>Ctrl Shift Z</kbd> redo.
        </span>
        <span class="grow" />
        <button type="button" class="button small" onClick={() => view.leaveTree(node.section.id)}>
          Done
        </button>
      </p>
    </>
  );
}

/** Paths of sections that must stay unchanged, with the reasons. */
function lockedPaths(node: SectionNode): { path: string; reason: string }[] {
  return flatten(node)
    .filter((section) => section.editable === Section_Editable.NO)
    .map((section) => ({ path: section.rawPath, reason: section.readOnlyReason ?? "it cannot be edited" }));
}

function lockOf(locked: readonly { path: string; reason: string }[], path: string): string | null {
  return (
    locked.find(
      (lock) => path === lock.path || (/^[.[]/.test(path.slice(lock.path.length)) && path.startsWith(lock.path)),
    )?.reason ?? null
  );
}

function GroupRow({ row, onToggle }: { row: LeafRow; onToggle: () => void }) {
  return (
    <div class="leaf-row" style={{ "--depth": row.depth }}>
      <button type="button" class="leaf-group" data-leaf={row.path} aria-expanded={row.isOpen} onClick={onToggle}>
        <Icon name={row.isOpen ? "down" : "right"} small />
        <span class="leaf-key">{escapeUntrustedLines(row.label)}</span>
        <span class="tertiary leaf-summary ellipsis">{escapeUntrustedLines(row.text)}</span>
      </button>
    </div>
  );
}

function LeafLine({ row, editor, locked }: { row: LeafRow; editor: Editor; locked: string | null }) {
  const { view, canEdit } = editor;
  const draft = view.draft.value;
  if (draft?.path === row.path) return <LeafEditor row={row} editor={editor} />;
  const shown = row.text.length > MAX_SHOWN ? `${row.text.slice(0, MAX_SHOWN)}…` : row.text;
  const text = escapeUntrustedLines(row.type === "string" ? JSON.stringify(shown).replace(/\\n/g, "\n") : shown);
  const last = editor.model.lastEdit.value;
  const saved = last?.path === row.path && last.tokensSavedHere !== 0n ? Number(last.tokensSavedHere) : 0;
  const note = locked ?? (row.text.length > MAX_SHOWN ? `${formatNumber(row.text.length)} characters` : "");
  const delta = saved === 0 ? "" : `${formatNumber(Math.abs(saved))} tokens ${saved > 0 ? "fewer" : "more"}`;
  const startEditing = () => view.writeDraft({ path: row.path, text: row.text, problem: null });
  return (
    <div class="leaf-row" style={{ "--depth": row.depth }}>
      <span class="leaf-key leaf-indent">{escapeUntrustedLines(row.label)}</span>
      {canEdit && locked === null ? (
        <button
          type="button"
          class={`leaf-value type-${row.type}`}
          data-leaf={row.path}
          aria-label={`Edit ${row.path}: ${shown.slice(0, 80)}`}
          onClick={startEditing}
        >
          {text}
        </button>
      ) : (
        <span class={`leaf-value type-${row.type}`}>{text}</span>
      )}
      <span class="leaf-note secondary">{[delta, note].filter(Boolean).join(" · ")}</span>
    </div>
  );
}

function LeafEditor({ row, editor }: { row: LeafRow; editor: Editor }) {
  const { view, model } = editor;
  const draft = view.draft.value;
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current;
    area?.focus();
    area?.setSelectionRange(area.value.length, area.value.length);
  }, []);
  const text = draft?.text ?? row.text;
  const problem = draft?.problem ?? null;
  const finish = () => focusLeaf(row.path);
  const discard = () => {
    view.writeDraft(null);
    finish();
  };
  const save = async () => {
    const edit = readLeaf(row, text);
    if (edit.kind === "invalid") {
      view.writeDraft({ path: row.path, text, problem: edit.message });
      return;
    }
    if (edit.kind === "unchanged") {
      discard();
      return;
    }
    const target = { target: { case: "path", value: row.path } } as const;
    const answer = await model.edit({ edit: { case: edit.kind, value: { target, value: edit.value } } });
    if (!answer) {
      const failure = model.failure.peek()?.message ?? "The edit failed.";
      view.writeDraft({ path: row.path, text, problem: failure });
      return;
    }
    view.writeDraft(null);
    announce(savedWords(row.path, Number(answer.tokensSavedHere)));
    finish();
  };
  return (
    <div class="leaf-row editing" style={{ "--depth": row.depth }}>
      <span class="leaf-key leaf-indent">{escapeUntrustedLines(row.label)}</span>
      <div class="leaf-field">
        <textarea
          ref={field}
          value={text}
          rows={Math.min(24, Math.max(1, text.split("\n").length))}
          spellcheck={row.type === "string"}
          aria-label={`Value of ${row.path}`}
          aria-invalid={problem !== null}
          onInput={(event) => view.writeDraft({ path: row.path, text: event.currentTarget.value, problem: null })}
          onKeyDown={(event) => {
            if (event.key === "Escape") discard();
            else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
            else return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <span class="leaf-actions">
          <button type="button" class="button quiet small" onClick={discard}>
            Discard <kbd>Esc</kbd>
          </button>
          <button type="button" class="button small" onClick={() => void save()}>
            Save <kbd>Ctrl ↵</kbd>
          </button>
        </span>
      </div>
    </div>
  );
}

/** Puts the focus on a leaf once it is drawn again. */
function focusLeaf(path: string): void {
  requestAnimationFrame(() => {
    for (const element of document.querySelectorAll<HTMLElement>("[data-leaf]")) {
      if (element.dataset.leaf === path) element.focus({ preventScroll: true });
    }
  });
}

function savedWords(path: string, saved: number): string {
  if (saved === 0) return `${path}: saved`;
  return `${path}: saved, ${formatNumber(Math.abs(saved))} tokens ${saved > 0 ? "fewer" : "more"}`;
}
