import type { VirtualItem } from "@tanstack/virtual-core";

import { FileFacts } from "../diff/facts.js";
import { RowGroups } from "../diff/groups.js";
import type { RowPages } from "../diff/rowPages.js";
import type { DiffFile, DiffHunk, DiffRow } from "../diff/rows.js";
import type { RowVirtualizer } from "../diff/virtual.js";
import { differentEndings, escapeUntrusted, fileFacts, fileMarkers, hunkRange } from "../diff/words.js";
import { Icon } from "../icon.js";
import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import { offset, type BodyProps } from "./body.js";
import { CommentRows } from "./comments.js";
import { ExtentBox } from "./files.js";
import type { ListLayout } from "./layout.js";
import { editedText } from "./pageSet.js";
import { fileExtent, hunkExtent, isDecidable, isWhole, selectionOf } from "./selection.js";
import type { Input, PanelState } from "./state.js";

export interface FileBlockProps extends BodyProps {
  layout: ListLayout;
  files: DiffFile[];
  virtualizer: RowVirtualizer;
  file: DiffFile;
  index: number;
  pages: RowPages;
  items: VirtualItem[];
  cursorRow: number | undefined;
  measure: (element: HTMLElement | null) => void;
}

/** One file: its header, which sticks below the panel's header, and its visible rows between two spacers. */
export function FileBlock(props: FileBlockProps) {
  const { state, dispatch, layout, virtualizer, file, index, pages, cursorRow, headerHeight, measure } = props;
  const rows = props.items.filter((item) => item.index > layout.start(index));
  const first = rows[0]?.index ?? layout.start(index + 1);
  const last = rows.at(-1)?.index ?? first - 1;
  const before = offset(virtualizer, first) - offset(virtualizer, layout.start(index) + 1);
  const after = offset(virtualizer, layout.start(index + 1)) - offset(virtualizer, last + 1);
  const hunksBefore = props.files.slice(0, index).reduce((sum, each) => sum + each.hunks, 0);
  const hunksInAll = props.files.reduce((sum, each) => sum + each.hunks, 0);
  const edited = editedText(state, file.path) !== undefined;
  return (
    <div class="file-block" data-file={index} data-path={file.path}>
      <div class="file-head" data-index={layout.start(index)} ref={measure} style={{ top: `${headerHeight - 8}px` }}>
        <FileHead {...props} edited={edited} />
      </div>
      {pages.error.value !== undefined && (
        <p class="load-problem" role="alert">
          {pages.error.value}
          <button type="button" class="button small" onClick={() => void pages.retry(0, 0)}>
            Try again
          </button>
        </p>
      )}
      {before > 0 && <div style={{ height: `${before}px` }} />}
      <RowGroups
        pages={pages}
        layout="unified"
        path={file.path}
        items={rows}
        firstItem={layout.start(index) + 1}
        measure={measure}
        cursorRow={cursorRow}
        showEndings={differentEndings(file)}
        find={state.search.toLowerCase()}
        hunkNumber={(hunk) => ({ number: hunksBefore + hunk, total: hunksInAll })}
        isLeftOut={(row) => isLeftOut(state, file, row)}
        groupClass={(hunk) => (state.cursor.file === index && state.cursor.hunk === hunk ? "current" : "")}
        before={(row, at) => (
          <Heads
            row={row}
            hunk={pages.hunkAt(at)}
            startsPart={row.part !== undefined && pages.row(at - 1)?.part !== row.part}
            number={hunksBefore + (row.hunk ?? 0)}
            total={hunksInAll}
            edited={edited}
            {...props}
          />
        )}
        after={(row) => <CommentRows state={state} dispatch={dispatch} path={file.path} row={row} />}
      />
      {after > 0 && <div style={{ height: `${after}px` }} />}
    </div>
  );
}

function FileHead({ state, dispatch, file, index, edited }: FileBlockProps & { edited: boolean }) {
  const markers = fileMarkers(file);
  const selection = selectionOf(state.selection, file.path);
  const extent = isDecidable(file) ? fileExtent(file, selection) : "none";
  const isCursor = state.cursor.file === index;
  const hasHunks = file.hunks > 0 && !isWhole(file);
  return (
    <>
      <h3 class={isCursor && file.hunks === 0 ? "file-name current" : "file-name"}>
        {!hasHunks && isDecidable(file) && (
          <ExtentBox
            extent={extent}
            label={`select ${file.path}`}
            onToggle={() => dispatch({ kind: "toggleFile", file: index })}
          />
        )}
        {markers ? (
          <span class="file-markers">
            {markers.map((marker) => (
              <code key={marker}>{escapeUntrusted(marker)}</code>
            ))}
          </span>
        ) : (
          <Path path={file.path} />
        )}
        {file.renamedFrom !== undefined && (
          <span class="secondary ellipsis">renamed from {escapeUntrusted(file.renamedFrom)}</span>
        )}
        {file.hunks > 0 && fileFacts(file).length > 0 && (
          <span class="secondary file-fact">{fileFacts(file).join(", ")}</span>
        )}
        <span class="grow" />
        {edited && (
          <>
            <span class="chip">as edited</span>
            <button
              type="button"
              class="button small quiet"
              onClick={() => dispatch({ kind: "discardEdit", path: file.path })}
            >
              Discard edit
            </button>
          </>
        )}
        {hasHunks && isCursor && isDecidable(file) && !edited && (
          <span class="secondary file-hint" aria-hidden="true">
            <kbd>{extent === "none" ? "X" : "x"}</kbd> {extent === "none" ? "select file" : "deselect file"}
          </span>
        )}
      </h3>
      <FileFacts file={file} shown={state.review.notes.map((note) => note.text)} />
    </>
  );
}

interface HeadsProps extends FileBlockProps {
  row: DiffRow;
  hunk: DiffHunk | undefined;
  startsPart: boolean;
  number: number;
  total: number;
  edited: boolean;
}

/** Headers of a hunk and of its parts, as table rows before their first line. */
function Heads({ row, hunk, startsPart, ...props }: HeadsProps) {
  const { state, dispatch, file, index } = props;
  const selection = selectionOf(state.selection, file.path);
  const parts = row.hunk === undefined ? undefined : selection.split[row.hunk];
  const { hunk: inHunk, part } = row;
  return (
    <>
      {hunk !== undefined && <HunkHead {...props} hunk={hunk} row={row} />}
      {startsPart && parts !== undefined && inHunk !== undefined && part !== undefined && (
        <tr class="part-head">
          <th colSpan={4} scope="rowgroup">
            <ExtentBox
              extent={selection.deselected.includes(`${inHunk}.${part}`) ? "none" : "all"}
              label={`select part ${part} of hunk ${props.number}`}
              onToggle={() =>
                dispatch({ kind: "toggleUnit", cursor: { ...state.cursor, file: index, hunk: inHunk, part } })
              }
            />
            part {part} of {parts}
          </th>
        </tr>
      )}
    </>
  );
}

function HunkHead(props: Omit<HeadsProps, "hunk" | "startsPart"> & { hunk: DiffHunk }) {
  const { state, dispatch, file, index, hunk, number, total, edited } = props;
  const selection = selectionOf(state.selection, file.path);
  const extent = isDecidable(file) ? hunkExtent(file, hunk.number, selection) : "none";
  const canSelect = isDecidable(file) && !isWhole(file) && !edited;
  return (
    <tr class="hunk-head">
      <th colSpan={4} scope="rowgroup">
        <div>
          {canSelect && (
            <ExtentBox
              extent={extent}
              label={`select hunk ${number}`}
              keys="Space"
              onToggle={() =>
                dispatch({ kind: "toggleUnit", cursor: { file: index, hunk: hunk.number, row: hunk.firstRow } })
              }
            />
          )}
          <code class="ellipsis">{hunkRange(hunk)}</code>
          <span class="grow" />
          <Counts added={hunk.added} removed={hunk.removed} />
          {hunk.parts > 1 && selection.split[hunk.number] === undefined && canSelect && (
            <span class="hunk-split">
              <kbd>s</kbd> {hunk.parts} parts
            </span>
          )}
          <span class="numeric hunk-number">
            hunk {number} of {total}
          </span>
          <HunkState state={state} path={file.path} hunk={hunk.number} extent={extent} />
        </div>
      </th>
    </tr>
  );
}

function HunkState(props: { state: PanelState; path: string; hunk: number; extent: string }) {
  const { state, path, hunk, extent } = props;
  if (extent === "none") return <span class="hunk-state secondary">not selected</span>;
  const seen = Object.hasOwn(state.seen, path) && (state.seen[path] ?? []).includes(hunk);
  return seen ? (
    <span class="hunk-state state seen">
      <Icon name="applied" small />
      seen
    </span>
  ) : (
    <span class="hunk-state state unseen">
      <Icon name="unseen" small />
      not seen
    </span>
  );
}

function isLeftOut(state: PanelState, file: DiffFile, row: DiffRow): boolean {
  if (row.hunk === undefined || row.kind === "context" || !isDecidable(file)) return false;
  const selection = selectionOf(state.selection, file.path);
  if (selection.edited !== undefined || isWhole(file)) return fileExtent(file, selection) === "none";
  if (selection.split[row.hunk] !== undefined) return selection.deselected.includes(`${row.hunk}.${row.part ?? 0}`);
  return selection.deselected.includes(`${row.hunk}`);
}

export type Dispatch = (input: Input) => void;
