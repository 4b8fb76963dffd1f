import "./diff.css";
import "./full.css";

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { Icon } from "../icon.js";
import { readKey } from "../review/keys.js";
import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import { FileFacts } from "./facts.js";
import { RowGroups } from "./groups.js";
import { RowPages } from "./rowPages.js";
import type { DiffFile, DiffLayout, DiffRow, FetchPage } from "./rows.js";
import { isTextField, rowAt, useFocusedRow, useWidth } from "./elements.js";
import { findRow } from "./search.js";
import { SearchLine } from "./searchLine.js";
import { columnsOf, useVirtualizer, wrappedLines, type RowVirtualizer } from "./virtual.js";
import { differentEndings, sideFacts } from "./words.js";

export interface FullDiffViewProps {
  /** Files in review order. */
  files: DiffFile[];
  fetchPage: FetchPage;
  /** Names of the two sides, such as `on disk` and `proposed by claude`. */
  sides: { before: string; after: string };
  /** File that is shown first. */
  initialFile?: number;
  onClose: () => void;
  back?: { label: string; onClick: () => void } | undefined;
  announce: (text: string) => void;
}

/** Below this width there is one column only. */
const SIDE_BY_SIDE_WIDTH = 720;
const PREFERRED_WIDTH = 900;

/** Full diff of a change: it informs and decides nothing. */
export function FullDiffView(props: FullDiffViewProps) {
  const { files, onClose, announce } = props;
  const root = useRef<HTMLDivElement>(null);
  const [fileIndex, setFileIndex] = useState(props.initialFile ?? 0);
  const [choice, setChoice] = useState<DiffLayout>();
  const [isWhole, setWhole] = useState(false);
  const [find, setFind] = useState<string>();
  const [query, setQuery] = useState("");
  const width = useWidth(root);
  const listed = files[Math.min(fileIndex, files.length - 1)];
  const layout: DiffLayout =
    width < SIDE_BY_SIDE_WIDTH ? "unified" : (choice ?? (width < PREFERRED_WIDTH ? "unified" : "sideBySide"));
  const [link] = useState(() => new BodyLink());

  useEffect(() => root.current?.focus({ preventScroll: true }), []);

  const toFile = (by: 1 | -1): void => {
    const next = fileIndex + by;
    if (next >= 0 && next < files.length) {
      setFileIndex(next);
      announce(`file ${next + 1} of ${files.length}, ${files[next]?.path ?? ""}`);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isTextField(event.target) || event.defaultPrevented) return;
    if (event.key === "y" || event.key === "n") announce("Decide in the review panel: q goes back.");
    const command = readKey(event);
    switch (command) {
      case undefined:
        return;
      case "leave":
      case "cancel":
        onClose();
        break;
      case "fullDiff":
        setChoice(layout === "unified" ? "sideBySide" : "unified");
        break;
      case "search":
        setFind(query);
        break;
      case "nextFile":
      case "previousFile":
        toFile(command === "nextFile" ? 1 : -1);
        break;
      case "nextMatch":
        link.control?.find(query);
        break;
      default:
        if (link.control?.move(command) !== true) return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  if (listed === undefined) {
    return (
      <div class="full-diff" ref={root} tabIndex={-1} onKeyDown={onKeyDown}>
        <p class="full-empty">This change has no files.</p>
      </div>
    );
  }
  return (
    <div class="full-diff" ref={root} tabIndex={-1} onKeyDown={onKeyDown} role="region" aria-label="Full diff">
      <FullHeader
        file={listed}
        at={fileIndex}
        total={files.length}
        layout={layout}
        canPair={width >= SIDE_BY_SIDE_WIDTH}
        isWhole={isWhole}
        onLayout={setChoice}
        onWhole={setWhole}
        onFile={toFile}
        onSearch={() => setFind(query)}
        onClose={onClose}
      />
      {props.back && (
        <div class="full-info">
          <Icon name="later" small />
          <span>This view informs. The change is decided in the stream.</span>
          <span class="grow" />
          <button type="button" class="button link" onClick={props.back.onClick}>
            {props.back.label}
          </button>
        </div>
      )}
      {find !== undefined && (
        <SearchLine
          text={query}
          onText={setQuery}
          onFind={() => link.control?.find(query)}
          onClose={() => {
            setFind(undefined);
            root.current?.focus({ preventScroll: true });
          }}
        />
      )}
      <Body
        key={`${listed.path}\n${layout}\n${isWhole}`}
        {...props}
        file={listed}
        layout={layout}
        isWhole={isWhole}
        find={find === undefined ? "" : query.toLowerCase()}
        link={link}
        onOpenFold={() => setWhole(true)}
      />
    </div>
  );
}

interface HeaderProps {
  file: DiffFile;
  at: number;
  total: number;
  layout: DiffLayout;
  canPair: boolean;
  isWhole: boolean;
  onLayout: (layout: DiffLayout) => void;
  onWhole: (isWhole: boolean) => void;
  onFile: (by: 1 | -1) => void;
  onSearch: () => void;
  onClose: () => void;
}

function FullHeader({ file, at, total, layout, ...props }: HeaderProps) {
  return (
    <header class="full-header">
      <Path path={file.label ?? file.path} />
      <Counts added={file.added} removed={file.removed} />
      {total > 1 && (
        <span class="full-files">
          <button
            type="button"
            class="button quiet small"
            aria-label="previous file"
            aria-keyshortcuts="{"
            disabled={at === 0}
            onClick={() => props.onFile(-1)}
          >
            <Icon name="left" small />
          </button>
          <span class="secondary numeric">
            file {at + 1} of {total}
          </span>
          <button
            type="button"
            class="button quiet small"
            aria-label="next file"
            aria-keyshortcuts="}"
            disabled={at + 1 === total}
            onClick={() => props.onFile(1)}
          >
            <Icon name="right" small />
          </button>
        </span>
      )}
      <span class="grow" />
      <span class="secondary full-hints" aria-hidden="true">
        <kbd>[</kbd> <kbd>]</kbd> hunk
      </span>
      <button
        type="button"
        class="button quiet small"
        aria-pressed={props.isWhole}
        onClick={() => props.onWhole(!props.isWhole)}
      >
        {props.isWhole ? "Fold unchanged" : "Whole file"}
      </button>
      {props.canPair && (
        <span class="segments" role="group" aria-label="Layout">
          <button
            type="button"
            aria-pressed={layout === "unified"}
            aria-keyshortcuts="v"
            onClick={() => props.onLayout("unified")}
          >
            Unified
          </button>
          <button
            type="button"
            aria-pressed={layout === "sideBySide"}
            aria-keyshortcuts="v"
            onClick={() => props.onLayout("sideBySide")}
          >
            Side by side
          </button>
        </span>
      )}
      <button
        type="button"
        class="button quiet small"
        aria-label="Search"
        aria-keyshortcuts="/"
        onClick={props.onSearch}
      >
        <Icon name="search" small />
      </button>
      <button
        type="button"
        class="button quiet small full-close"
        aria-label="Close"
        aria-keyshortcuts="q"
        onClick={props.onClose}
      >
        <Icon name="close" small />
        <kbd>q</kbd>
      </button>
    </header>
  );
}

/** A page that arrives makes better estimates, and thereby a new function. */
function useItemKey(version: number): (index: number) => number {
  // eslint-disable-next-line react-hooks/exhaustive-deps -- a new version makes a new function
  return useMemo(() => (index: number) => index, [version]);
}

interface BodyControl {
  /** `false` if the command is no move. */
  move: (command: string) => boolean;
  find: (text: string) => void;
}

/** Connects the keys of the view with the rows of the present file. */
class BodyLink {
  control: BodyControl | undefined;

  connect(control: BodyControl): void {
    this.control = control;
  }
}

interface BodyProps extends FullDiffViewProps {
  file: DiffFile;
  layout: DiffLayout;
  isWhole: boolean;
  find: string;
  link: BodyLink;
  onOpenFold: (row: DiffRow) => void;
}

function Body({ file: listed, layout, isWhole, find, link, fetchPage, sides, announce, onOpenFold }: BodyProps) {
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  const body = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(0);
  const pages = useMemo(
    () => new RowPages({ path: listed.path, layout, wholeFile: isWhole, fetchPage }),
    [listed.path, layout, isWhole, fetchPage],
  );
  const version = pages.watch();
  const file = pages.file ?? listed;
  const total = pages.totalRows ?? 0;
  const columns = columnsOf(scroller?.clientWidth ?? 800, 120, 12) / (layout === "unified" ? 1 : 2);
  const virtualizer = useVirtualizer({
    count: total,
    scroller,
    body,
    itemKey: useItemKey(version),
    estimate: (index) => 19 * rowLines(pages, layout, index, columns),
  });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    void pages.need(first, last);
  }, [pages, first, last, total]);
  useEffect(() => () => pages.close(), [pages]);
  useFocusedRow(body, cursor);

  const goTo = (row: number): void => {
    setCursor(row);
    virtualizer.scrollToIndex(row, { align: "auto" });
  };
  useLayoutEffect(() => {
    link.connect({
      move: (command) => {
        const target = targetOf(command, cursor, total, pages, virtualizer);
        if (target === undefined) return false;
        goTo(Math.max(0, Math.min(total - 1, target)));
        return true;
      },
      find: (text) => {
        void findRow(pages, layout, text, cursor).then((row) => {
          if (row === undefined) announce(`${text} is not in this file.`);
          else goTo(row);
        });
      },
    });
  });

  return (
    <div class="full-scroller" ref={setScroller}>
      <SideHeads file={file} layout={layout} sides={sides} />
      <FileFacts file={file} />
      {pages.error.value !== undefined && (
        <p class="load-problem" role="alert">
          {pages.error.value}
          <button type="button" class="button small" onClick={() => void pages.retry(first, last)}>
            Try again
          </button>
        </p>
      )}
      <div
        ref={body}
        class="full-rows"
        style={{ paddingTop: `${padding(virtualizer, first)}px`, minHeight: `${virtualizer.getTotalSize()}px` }}
        onClick={(event) => {
          const row = rowAt(event.target);
          if (row !== undefined) setCursor(row);
        }}
      >
        <RowGroups
          pages={pages}
          layout={layout}
          path={file.path}
          items={items}
          firstItem={0}
          measure={virtualizer.measureElement}
          cursorRow={cursor}
          showEndings={differentEndings(file)}
          find={find}
          hunkNumber={(number) => ({ number, total: file.hunks })}
          onOpenFold={onOpenFold}
        />
      </div>
    </div>
  );
}

function SideHeads({ file, layout, sides }: { file: DiffFile; layout: DiffLayout; sides: FullDiffViewProps["sides"] }) {
  const before = sideFacts(file.oldFormat, file.before);
  const after = sideFacts(file.newFormat, file.after);
  return (
    <div class={layout === "unified" ? "side-heads unified" : "side-heads"}>
      <span>
        Before<span class="dot">·</span>
        {sides.before}, {before}
      </span>
      <span>
        After<span class="dot">·</span>
        {sides.after}, {after}
      </span>
    </div>
  );
}

function padding(virtualizer: RowVirtualizer, first: number): number {
  const item = virtualizer.measurementsCache[first];
  return item === undefined ? 0 : item.start - virtualizer.options.scrollMargin;
}

function rowLines(pages: RowPages, layout: DiffLayout, index: number, columns: number): number {
  if (layout === "unified") {
    const row = pages.row(index);
    return row === undefined ? 1 : wrappedLines(row.content.text, columns);
  }
  const pair = pages.pair(index);
  const halves = [pair?.both, pair?.old, pair?.new];
  return Math.max(1, ...halves.map((row) => (row === undefined ? 1 : wrappedLines(row.content.text, columns))));
}

function targetOf(
  command: string,
  cursor: number,
  total: number,
  pages: RowPages,
  virtualizer: RowVirtualizer,
): number | undefined {
  const page = Math.max(1, Math.floor((virtualizer.scrollRect?.height ?? 400) / 19) - 2);
  switch (command) {
    case "lineDown":
      return cursor + 1;
    case "lineUp":
      return cursor - 1;
    case "pageDown":
      return cursor + page;
    case "pageUp":
      return cursor - page;
    case "top":
      return 0;
    case "bottom":
      return total - 1;
    case "nextHunk":
    case "previousHunk": {
      const starts = [...pages.hunks.values()].map((hunk) => hunk.firstRow).sort((a, b) => a - b);
      return command === "nextHunk"
        ? (starts.find((row) => row > cursor) ?? cursor)
        : (starts.reverse().find((row) => row < cursor) ?? cursor);
    }
    default:
      return undefined;
  }
}
