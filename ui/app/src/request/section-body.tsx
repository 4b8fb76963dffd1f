import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { Section_ContentKind, Section_Kind, Section_NodeType, type Section } from "@sayso/client/proto/request";

import { escapeUntrusted, escapeUntrustedLines, formatSize } from "../diff/words.js";
import { Icon, type IconName } from "../icon.js";
import { JsonText } from "../stream/json-text.js";
import { Markdown } from "../stream/markdown.js";
import { deleteSections, requestDeletion, restoreSection, useEditor } from "./editor-context.js";
import { LeafTree } from "./leaf-tree.js";
import type { SectionNode } from "./tree.js";
import { partTitle, tokenWords } from "./words.js";

/** Content that is drawn at once; more on request. */
const SHOWN = 4_000;

/** Body of a card: markdown and nested boxes, or keys and values in edit mode. */
export function SectionBody({ node }: { node: SectionNode }) {
  const { view } = useEditor();
  const { section } = node;
  if (view.inTree.value.has(section.id)) return <LeafTree node={node} />;
  const parts = node.children.filter((child) => child.section.node !== Section_NodeType.TAG);
  const hasOwnText = section.node !== Section_NodeType.MESSAGE || section.contentKind === Section_ContentKind.TEXT;
  const isListed = parts.some(({ section: part }) => part.node === Section_NodeType.CONTENT_PART);
  return (
    <>
      {section.tool !== undefined && section.node === Section_NodeType.TOOL_CALL && <ToolStrip section={section} />}
      {(hasOwnText || parts.length === 0) && !isListed && section.node !== Section_NodeType.TOOL_CALL && (
        <Content section={section} />
      )}
      <Tags node={node} />
      {parts.map((part) => (
        <Part key={part.section.id} node={part} />
      ))}
    </>
  );
}

/** A content part, tool call or field of a message. */
function Part({ node }: { node: SectionNode }) {
  const { section } = node;
  if (section.contentKind === Section_ContentKind.CACHE_BREAKPOINT) {
    return (
      <p class="cache-mark secondary" title={section.rawPath}>
        <Icon name="flag" small /> Cache breakpoint
      </p>
    );
  }
  const isPlain =
    section.node === Section_NodeType.CONTENT_PART &&
    section.contentKind === Section_ContentKind.TEXT &&
    (section.kind === Section_Kind.USER || section.kind === Section_Kind.ASSISTANT) &&
    !section.deleted;
  if (isPlain) {
    return (
      <div class="part plain" title={section.rawPath}>
        <Content section={section} />
        <Tags node={node} />
        {node.children
          .filter(({ section: child }) => child.node !== Section_NodeType.TAG)
          .map((child) => (
            <Part key={child.section.id} node={child} />
          ))}
      </div>
    );
  }
  return (
    <section class={`part box${section.deleted ? " deleted" : ""}`} aria-label={partName(section)}>
      <PartHeader section={section} />
      {!section.deleted && (
        <div class="part-body">
          {section.node === Section_NodeType.TOOL_CALL ? (
            <JsonText text={section.tool?.arguments ?? section.content} />
          ) : (
            <Content section={section} />
          )}
          <Tags node={node} />
        </div>
      )}
    </section>
  );
}

function partName(section: Section): string {
  return `${partTitle(section)}${section.deleted ? ", deleted" : ""}`;
}

function PartHeader({ section }: { section: Section }) {
  const editor = useEditor();
  const isTool = section.tool !== undefined;
  const name = isTool ? (section.tool?.name ?? section.tool?.id ?? section.label) : partTitle(section);
  return (
    <div class="part-header">
      <Icon name={partIcon(section)} small />
      <b class={section.deleted ? "struck" : undefined}>{escapeUntrusted(name)}</b>
      {isTool && section.tool?.id !== undefined && (
        <code class="ellipsis tertiary" title={section.tool.id}>
          {escapeUntrusted(section.tool.id)}
        </code>
      )}
      {section.deleted && <span class="deleted-word">deleted</span>}
      {section.readOnlyReason !== undefined && (
        <span class="secondary small-text ellipsis" title={section.readOnlyReason}>
          read only: {section.readOnlyReason}
        </span>
      )}
      <span class="grow" />
      {editor.canEdit && section.deleted && (
        <button
          type="button"
          class="button small"
          disabled={editor.isBlocked}
          onClick={() => void restoreSection(editor, section)}
        >
          Restore
        </button>
      )}
      {editor.canEdit && !section.deleted && section.deletable && (
        <button
          type="button"
          class="button quiet small part-delete"
          aria-label={`Delete ${name}`}
          disabled={editor.isBlocked}
          onClick={() => void requestDeletion(editor, section)}
        >
          Delete
        </button>
      )}
      <span class="numeric">{section.deleted ? "not sent" : tokenWords(section.tokens)}</span>
    </div>
  );
}

function partIcon(section: Section): IconName {
  if (section.node === Section_NodeType.TOOL_CALL || section.tool !== undefined) return "tool";
  if (section.contentKind === Section_ContentKind.IMAGE) return "image";
  return section.kind === Section_Kind.CONTEXT ? "file" : "notice";
}

/** Name or id of a tool and its arguments, as the model wrote them. */
function ToolStrip({ section }: { section: Section }) {
  return (
    <section class="part box" aria-label={`Tool ${section.tool?.name ?? ""}`}>
      <PartHeader section={section} />
      <div class="part-body">
        <JsonText text={section.tool?.arguments ?? section.content} />
      </div>
    </section>
  );
}

/** Parts of a text between XML-like tags, each deletable on its own. */
function Tags({ node }: { node: SectionNode }) {
  const editor = useEditor();
  const tags = node.children.filter(({ section }) => section.node === Section_NodeType.TAG);
  if (tags.length === 0) return null;
  return (
    <ul class="tags" aria-label="Parts between tags">
      {tags.map(({ section }) => (
        <li key={section.id} class={`chip${section.deleted ? " deleted" : ""}`}>
          <code class={section.deleted ? "struck" : undefined}>{escapeUntrusted(section.label)}</code>
          <span class="secondary numeric">{tokenWords(section.tokens)}</span>
          {section.deleted && <span class="deleted-word">deleted</span>}
          {editor.canEdit && section.deletable && (
            <button
              type="button"
              class="button link"
              disabled={editor.isBlocked}
              aria-label={`${section.deleted ? "Restore" : "Delete"} ${section.label}`}
              onClick={() =>
                void (section.deleted ? restoreSection(editor, section) : deleteSections(editor, [section]))
              }
            >
              {section.deleted ? "Restore" : "Delete"}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Text of a section. The rest of a long text is read when it is asked for. */
function Content({ section }: { section: Section }) {
  const { model } = useEditor();
  const whole = model.texts.value.get(section.id);
  const isShort = section.contentSize <= BigInt(SHOWN);
  const isCut = whole === undefined && section.contentSize > BigInt(byteLength(section.content));
  useEffect(() => {
    if (isCut && isShort) void model.loadText(section);
  }, [isCut, isShort, model, section]);
  const text = whole ?? section.content;
  if (section.contentKind === Section_ContentKind.IMAGE) {
    return <p class="secondary small-text">Image, {formatSize(Number(section.contentSize))} in the body.</p>;
  }
  let body: ComponentChildren;
  if (section.kind === Section_Kind.TOOL || section.node === Section_NodeType.RAW) {
    body =
      /^\s*[[{]/.test(text) && !isCut ? (
        <JsonText text={text} />
      ) : (
        <pre class="plain-text">{escapeUntrustedLines(text)}</pre>
      );
  } else if (section.node === Section_NodeType.REQUEST_OPTION || section.node === Section_NodeType.METADATA) {
    body = <JsonText text={text} />;
  } else if (section.kind === Section_Kind.CONTEXT) {
    // Tags and line breaks of context matter more than markdown.
    body = <p class="context-text">{escapeUntrustedLines(text)}</p>;
  } else {
    body = <Markdown text={text} />;
  }
  return (
    <>
      {body}
      {isCut && !isShort && (
        <button type="button" class="button link show-all" onClick={() => void model.loadText(section)}>
          … show all of it ({formatSize(Number(section.contentSize))})
        </button>
      )}
    </>
  );
}

const ENCODER = new TextEncoder();
const byteLength = (text: string): number => ENCODER.encode(text).length;
