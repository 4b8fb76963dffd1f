import type { JSX } from "preact";

import { Section_Editable, Section_NodeType, type Section } from "@sayso/client/proto/request";

import { escapeUntrusted, formatNumber } from "../diff/words.js";
import { Icon } from "../icon.js";
import { clockTime, fullTime } from "../times.js";
import {
  deleteSections,
  nameOf,
  pinSection,
  requestDeletion,
  restoreSection,
  useEditor,
  type Editor,
} from "./editor-context.js";
import { SectionBody } from "./section-body.js";
import { Share } from "./share.js";
import { messageNumber, pairedSections, type SectionNode } from "./tree.js";
import { cardTitle, kindClass, kindWord, scopeWord } from "./words.js";

/** A message, tool schema or option, with its toolbar and its share of the request. */
export function SectionCard({ node, grip }: { node: SectionNode; grip?: JSX.Element }) {
  const editor = useEditor();
  const { view } = editor;
  const { section } = node;
  const isOpen = view.open.value.has(section.id) && !section.deleted;
  const selected = view.selected.value;
  const title = cardTitle(
    section,
    node.children.map((child) => child.section),
  );
  const classes = ["section-card", kindClass(section)];
  if (section.deleted) classes.push("deleted");
  if (isOpen) classes.push("is-open");
  return (
    <section class={classes.join(" ")} aria-label={cardName(editor, section, title)} data-section={section.id}>
      <div class="section-header">
        {grip}
        {selected !== null && section.node === Section_NodeType.MESSAGE && (
          <input
            type="checkbox"
            class="checkbox"
            aria-label={`Select ${title}`}
            checked={selected.has(section.id)}
            disabled={section.deleted || !section.deletable}
            onChange={() => view.select(section.id)}
          />
        )}
        <button
          type="button"
          class="section-toggle"
          aria-expanded={isOpen}
          disabled={section.deleted}
          onClick={() => view.toggle(section.id)}
        >
          <Icon name={isOpen ? "down" : "right"} small />
          <span class="kind-badge">{kindWord(section)}</span>
          <span class={`section-title ellipsis${section.deleted ? " struck" : ""}`} title={section.rawPath}>
            {title}
          </span>
        </button>
        {section.pinned && <span class="visually-hidden">Pinned</span>}
        {section.deleted ? (
          <DeletedWords editor={editor} section={section} />
        ) : (
          <EditedChip section={section} node={node} />
        )}
        <span class="grow" />
        {editor.canEdit && <Toolbar editor={editor} section={section} />}
        <Share tokens={section.tokens} share={section.share} isDeleted={section.deleted} />
      </div>
      <PairQuestion node={node} />
      {isOpen && (
        <div class="section-body">
          {section.readOnlyReason !== undefined && (
            <p class="secondary small-text">Read only: {section.readOnlyReason}.</p>
          )}
          <SectionBody node={node} />
        </div>
      )}
    </section>
  );
}

function cardName(editor: Editor, section: Section, title: string): string {
  const number = messageNumber(editor.tree, section.id);
  const facts = [kindWord(section), number === undefined ? "" : `section ${number}`, title.slice(0, 80)];
  if (section.pinned) facts.push("pinned");
  if (section.edited) facts.push("edited");
  if (section.deleted) facts.push("deleted");
  return facts.filter((fact) => fact !== "").join(", ");
}

function Toolbar({ editor, section }: { editor: Editor; section: Section }) {
  const { view, isBlocked } = editor;
  if (section.deleted) {
    return (
      <button
        type="button"
        class="button small"
        disabled={isBlocked}
        onClick={() => void restoreSection(editor, section)}
      >
        Restore
      </button>
    );
  }
  const isEditing = view.inTree.value.has(section.id);
  return (
    <span class={`section-toolbar${isEditing ? " is-shown" : ""}`} role="group" aria-label="Actions of the section">
      {section.editable !== Section_Editable.NO && (
        <button
          type="button"
          aria-pressed={isEditing}
          title="Edit its keys and values"
          onClick={() => (isEditing ? view.leaveTree(section.id) : view.edit(section.id))}
        >
          Edit
        </button>
      )}
      {section.deletable && (
        <button
          type="button"
          disabled={isBlocked}
          title="Leave it out of the request"
          onClick={() => void requestDeletion(editor, section)}
        >
          Delete
        </button>
      )}
      <button
        type="button"
        disabled={isBlocked}
        title={section.pinned ? "Return it to its place" : "Pin it to the top of the list"}
        onClick={() => void pinSection(editor, section)}
      >
        {section.pinned ? "Unstick" : "Stick"}
      </button>
    </span>
  );
}

function DeletedWords({ editor, section }: { editor: Editor; section: Section }) {
  const pair = pairedDeleted(editor, section);
  return <span class="deleted-word">deleted{pair}</span>;
}

/** `, with its call in section 6`, if the pair of a deleted section is deleted as well. */
function pairedDeleted({ tree }: Editor, section: Section): string {
  const node = tree.byId.get(section.id);
  for (const child of node ? [node, ...node.children] : []) {
    const call = child.section.tool?.id;
    if (call === undefined) continue;
    const other = tree.byCall.get(call)?.find((item) => item.id !== child.section.id && item.deleted);
    if (!other) continue;
    const word = other.node === Section_NodeType.TOOL_CALL ? "call" : "result";
    return `, with its ${word} in section ${messageNumber(tree, other.id) ?? "?"}`;
  }
  return "";
}

/** `Edited · Show diff`, with the scope and time of a saved edit. */
function EditedChip({ section, node }: { section: Section; node: SectionNode }) {
  const { view } = useEditor();
  const edited = section.edited || node.children.some((child) => child.section.edited || child.section.deleted);
  const override =
    section.appliedOverride ?? node.children.map((child) => child.section.appliedOverride).find((applied) => applied);
  if (!edited && !override) return null;
  const origin = override ? `${scopeWord(override.scope)}, ${clockTime(override.savedMs)}` : "";
  return (
    <span
      class="edited-chip"
      title={override ? `Saved edit: ${scopeWord(override.scope)}, ${fullTime(override.savedMs)}` : undefined}
    >
      Edited{origin !== "" && ` (${origin})`}
      <span class="dot">·</span>
      <button type="button" class="button link" onClick={() => view.showChip(section.id)}>
        Show diff
      </button>
    </span>
  );
}

/** The tool calls and results that go with a deletion, before it is made. */
function PairQuestion({ node }: { node: SectionNode }) {
  const editor = useEditor();
  const { view, tree } = editor;
  const id = view.deletion.value ?? undefined;
  const isOwn = id !== undefined && (id === node.section.id || node.children.some((child) => child.section.id === id));
  const target = isOwn ? tree.byId.get(id)?.section : undefined;
  if (!target) return null;
  const paired = pairedSections(tree, target.id);
  const tokens = paired.reduce((sum, section) => sum + Number(section.tokens?.count ?? 0n), 0);
  const names = paired.map(
    (section) => `${nameOf(editor, section)} in section ${messageNumber(tree, section.id) ?? "?"}`,
  );
  return (
    <div class="pair-question" role="alertdialog" aria-label="Paired tool call or result">
      <p>
        <Icon name="warning" small /> Its pair goes with it: {escapeUntrusted(names.join("; "))} ({formatNumber(tokens)}{" "}
        tokens). The upstream rejects a request in which a call or its result is alone.
      </p>
      <div class="dialog-actions">
        <button
          type="button"
          class="button small"
          ref={(button) => button?.focus()}
          onClick={() => void deleteSections(editor, [target, ...paired])}
        >
          Delete both
        </button>
        <button type="button" class="button quiet small" onClick={() => void deleteSections(editor, [target])}>
          Only this one
        </button>
        <button type="button" class="button quiet small" onClick={() => view.askDeletion(null)}>
          Keep
        </button>
      </div>
    </div>
  );
}
