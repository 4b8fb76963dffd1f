import { useRef, useState } from "preact/hooks";

import { count } from "../diff/words.js";
import { Icon } from "../icon.js";
import { reorderPin, useEditor } from "./editor-context.js";
import { dropIndex, movePin, shiftPin } from "./order.js";
import { SectionCard } from "./section-card.js";
import { Share } from "./share.js";
import type { SectionNode } from "./tree.js";

/** Pinned sections with their summed share. The pointer drags, the arrow keys on a grip move. */
export function PinnedGroup({ nodes }: { nodes: SectionNode[] }) {
  const editor = useEditor();
  const { show, canEdit } = editor;
  const list = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ id: string; to: number } | null>(null);
  const order = nodes.map(({ section }) => section.id);
  const total = Number(show.tokens?.count ?? 0n);
  const share = total === 0 ? 0 : Number(show.pinnedTokens?.count ?? 0n) / total;
  const place = (id: string, y: number): number => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>("[data-section]") ?? [])];
    const others = rows.filter((row) => row.dataset.section !== id);
    return dropIndex(
      others.map((row) => {
        const box = row.getBoundingClientRect();
        return box.top + box.height / 2;
      }),
      y,
    );
  };
  const drop = () => {
    const move = drag && movePin(order, drag.id, drag.to);
    if (drag && move) void reorderPin(editor, drag.id, move);
    setDrag(null);
  };
  const shown = drag ? (movePin(order, drag.id, drag.to)?.order ?? order) : order;
  const byId = new Map(nodes.map((node) => [node.section.id, node]));
  return (
    <section class="pinned-group" aria-label="Pinned sections">
      <div class="group-heading">
        <Icon name="pinned" small />
        <h3>Pinned</h3>
        <span>{count(nodes.length, "section")}</span>
        <span class="grow" />
        <Share tokens={show.pinnedTokens} share={share} />
      </div>
      <div ref={list}>
        {shown.map((id) => {
          const node = byId.get(id);
          if (!node) return null;
          const title = node.section.label;
          const grip = canEdit ? (
            <button
              type="button"
              class="grip"
              aria-label={`Move ${title}`}
              title="Drag, or move with the arrow keys"
              onPointerDown={(event) => {
                if (event.button !== 0) return;
                event.currentTarget.setPointerCapture(event.pointerId);
                setDrag({ id, to: order.indexOf(id) });
              }}
              onPointerMove={(event) => {
                if (drag?.id === id) setDrag({ id, to: place(id, event.clientY) });
              }}
              onPointerUp={drop}
              onPointerCancel={() => setDrag(null)}
              onKeyDown={(event) => {
                if (event.key === "Escape" && drag) setDrag(null);
                else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
                  const move = shiftPin(order, id, event.key === "ArrowUp" ? -1 : 1);
                  if (move) void reorderPin(editor, id, move);
                } else return;
                event.preventDefault();
                event.stopPropagation();
              }}
            >
              <Icon name="grip" small />
            </button>
          ) : undefined;
          return (
            <div key={id} class={drag?.id === id ? "dragged" : undefined}>
              <SectionCard node={node} {...(grip && { grip })} />
            </div>
          );
        })}
      </div>
    </section>
  );
}
