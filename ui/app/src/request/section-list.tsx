import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { useApp } from "../context.js";
import { Icon } from "../icon.js";
import { useVirtualList } from "../stream/virtual.js";
import { AppendMessage } from "./append-message.js";
import { redoEdit, undoEdit, useEditor } from "./editor-context.js";
import { PinnedGroup } from "./pinned-group.js";
import { Problems } from "./problems.js";
import { estimateRow, listRows, rowKey, type Row } from "./rows.js";
import { SectionCard } from "./section-card.js";
import { SelectBar } from "./select-bar.js";
import { cacheBreak, SidePane, type SideDialog } from "./side-pane.js";

/** Width from which the side pane stands beside the sections. */
const SIDE_WIDTH = 860;

/** Sections of the request. Only those near the visible part are in the page. */
export function SectionList({ onDialog, onReset }: { onDialog: (dialog: SideDialog) => void; onReset: () => void }) {
  const { router } = useApp();
  const editor = useEditor();
  const { view, show, tree } = editor;
  const root = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const allRef = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = root.current;
    if (!element) return undefined;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const sideBelow = width < SIDE_WIDTH;
  const captured = show.capturedSections === undefined ? undefined : Number(show.capturedSections);
  const broken = cacheBreak(editor);
  const rows = useMemo(
    () => listRows({ tree, pinned: show.pinned, cacheBreak: broken, captured, showOptions: true, sideBelow }),
    [tree, show.pinned, broken, captured, sideBelow],
  );
  const open = view.open.value;
  const list = useVirtualList({
    count: rows.length,
    scroller: () => scroller.current,
    estimate: (index) => {
      const row = rows[index];
      return row ? estimateRow(row, (id) => open.has(id)) : 40;
    },
    keyOf: (index) => {
      const row = rows[index];
      return row ? rowKey(row) : String(index);
    },
  });
  const side = <SidePane onDialog={onDialog} onLog={() => router.go({ view: "requests", part: "log" })} />;
  const [first] = list.items;
  const toSide = () => {
    const start = allRef.current?.offsetTop ?? 0;
    scroller.current?.scrollTo({ top: start + list.startOf(rows.length - 1) });
  };
  return (
    <div class={`request-columns${sideBelow ? " narrow" : ""}`} ref={root}>
      <div class="section-scroller" ref={scroller} tabIndex={-1}>
        {show.parseError !== undefined && (
          <p class="problem" role="alert">
            The body cannot be shown in sections: {show.parseError}. It is shown as it is.
          </p>
        )}
        <Problems problems={show.problems} onReset={onReset} />
        <Tools
          onToggleAll={() =>
            open.size > 0
              ? view.collapseAll()
              : view.openAll(rows.flatMap((row) => (row.kind === "section" ? [row.node.section.id] : [])))
          }
          isAnyOpen={open.size > 0}
          onSide={sideBelow ? toSide : undefined}
        />
        <div class="virtual-all" ref={allRef} style={{ height: `${list.total}px` }}>
          <div style={{ transform: `translateY(${first?.start ?? 0}px)` }}>
            {list.items.map((item) => {
              const row = rows[item.index];
              return (
                row && (
                  <div
                    key={String(item.key)}
                    data-index={item.index}
                    ref={list.measure}
                    class={`virtual-row row-${row.kind}`}
                  >
                    <RowView row={row} side={side} />
                  </div>
                )
              );
            })}
          </div>
        </div>
      </div>
      {!sideBelow && width > 0 && <div class="side-scroller">{side}</div>}
    </div>
  );
}

function RowView({ row, side }: { row: Row; side: JSX.Element }) {
  switch (row.kind) {
    case "pinned":
      return <PinnedGroup nodes={row.nodes} />;
    case "heading":
      return (
        <div class="group-heading">
          <h3>{row.name}</h3>
          <span>{row.note}</span>
          <span class="grow" />
          {row.name === "Messages" && <span>tokens and share of the request</span>}
        </div>
      );
    case "break":
      return (
        <p class="cache-break">
          <span>{row.text}</span>
        </p>
      );
    case "omitted":
      return <p class="secondary small-text omitted">{row.text}</p>;
    case "section":
      return <SectionCard node={row.node} />;
    case "side":
      return side;
  }
}

/** Undo, redo, selection, and all cards at once. */
function Tools(props: { onToggleAll: () => void; isAnyOpen: boolean; onSide: (() => void) | undefined }) {
  const { onToggleAll, isAnyOpen, onSide } = props;
  const editor = useEditor();
  const { show, canEdit, isBlocked } = editor;
  return (
    <div class="list-tools">
      {canEdit && (
        <>
          <button
            type="button"
            class="button quiet small"
            disabled={isBlocked || show.edits.length === 0}
            aria-keyshortcuts="Control+Z"
            onClick={() => void undoEdit(editor)}
          >
            <Icon name="undone" small /> Undo
          </button>
          <button
            type="button"
            class="button quiet small"
            disabled={isBlocked || show.undone.length === 0}
            aria-keyshortcuts="Control+Shift+Z"
            onClick={() => void redoEdit(editor)}
          >
            <Icon name="redone" small /> Redo
          </button>
          <AppendMessage />
        </>
      )}
      <span class="grow" />
      <SelectBar />
      {onSide && (
        <button type="button" class="button quiet small" onClick={onSide}>
          Consequences and metadata
        </button>
      )}
      <button type="button" class="button quiet small" onClick={onToggleAll}>
        {isAnyOpen ? "Collapse all" : "Expand all"}
      </button>
    </div>
  );
}
