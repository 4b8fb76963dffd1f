/** Stories of the diff and the review panel. For development only: no page of the app links to it. */

import "../../theme/tokens.css";
import "../../theme/base.css";
import "./stories.css";

import { render, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { FullDiffView } from "../../diff/fullDiffView.js";
import { InlineBox } from "../../diff/inlineBox.js";
import type { Review, Settled } from "../model.js";
import { PanelView } from "../panelView.js";
import type { PanelActions, PanelViewProps } from "../props.js";
import {
  COMMAND_REVIEW,
  CONFLICT_ROWS,
  DELEGATION_REVIEW,
  FILES,
  hugeFile,
  ODD_FILES,
  pageServer,
  REVIEW,
  TOOL_REVIEW,
  WHOLE_CLI,
} from "./fixtures.js";
import type { FileFixture } from "./notation.js";

declare global {
  interface Window {
    /** Calls of the actions, for the tests of the stories. */
    calls: unknown[][];
  }
}

window.calls = [];
const note =
  (name: string) =>
  (...given: unknown[]): void => {
    window.calls.push([name, ...given]);
  };

function actionsFor(files: FileFixture[], review: Review): PanelActions {
  return {
    fetchPage: pageServer(files, review.previewHash),
    decide: (decision) => {
      note("decide")(decision);
      return new Promise(() => undefined);
    },
    markSeen: note("markSeen"),
    suggestRule: (scope) =>
      Promise.resolve({
        toml: `[[rule]]\nwrite = "src/**/*.rs"\nruling = "allow"\n`,
        explanation: "Allows writes to Rust files below src.",
        inspected: 200,
        covered: [
          { change: 40, approved: true, byPerson: true },
          { change: 37, approved: false, byPerson: true },
        ],
        ...(scope === "always" && { file: "~/.config/sayso/config.toml" }),
      }),
    loadText: () => Promise.resolve("pub struct List {\n    json: bool,\n}\n"),
    previewEdit: (path) =>
      pageServer(files, review.previewHash)({ path, fromRow: 0, rows: 500, layout: "unified", wholeFile: false }),
    dryRun: () =>
      Promise.resolve({ output: "src/main.rs\nCargo.toml\n", errors: "", end: "exit code 0", truncated: false }),
    fetchConflict: () => Promise.resolve(CONFLICT_ROWS),
    openFullDiff: note("openFullDiff"),
    openChange: note("openChange"),
    leave: note("leave"),
    announce: note("announce"),
    onOtherHash: note("onOtherHash"),
  };
}

function Frame({ children }: { children: (scroller: HTMLElement | null) => ComponentChildren }) {
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  return (
    <main class="story-frame">
      <div class="stream" ref={setScroller}>
        <div class="column">{children(scroller)}</div>
      </div>
    </main>
  );
}

function panel(review: Review, files: FileFixture[], more: Partial<PanelViewProps> = {}): ComponentChildren {
  const actions = actionsFor(files, review);
  return (
    <Frame>
      {(scroller) => (
        <PanelView
          review={review}
          seen={[]}
          connected
          reviewers={[]}
          scroller={scroller}
          active
          onActivate={() => undefined}
          actions={actions}
          {...more}
        />
      )}
    </Frame>
  );
}

/** Panel whose preview is replaced by a button of the story. */
function Refreshing() {
  const [review, setReview] = useState(REVIEW);
  const [actions] = useState(() => actionsFor(FILES, REVIEW));
  const [first] = REVIEW.files;
  const refresh = (): void =>
    setReview({
      ...REVIEW,
      previewHash: "preview-41b",
      files: REVIEW.files.map((file) =>
        file === first ? { ...file, added: 12, after: { kind: "file", hash: "other" } } : file,
      ),
    });
  return (
    <Frame>
      {(scroller) => (
        <>
          <button type="button" class="button small" id="refresh" onClick={refresh}>
            refresh the preview
          </button>
          <PanelView
            review={review}
            seen={[]}
            connected
            reviewers={[]}
            scroller={scroller}
            active
            onActivate={() => undefined}
            actions={{ ...actions, fetchPage: pageServer(FILES, review.previewHash) }}
          />
        </>
      )}
    </Frame>
  );
}

function full(files: FileFixture[]): ComponentChildren {
  return (
    <main class="story-frame">
      <FullDiffView
        files={files.map(({ file }) => file)}
        fetchPage={pageServer(files, "full")}
        sides={{ before: "on disk", after: "proposed by claude" }}
        onClose={note("close")}
        back={{ label: "Back to the review panel", onClick: note("back") }}
        announce={note("announce")}
      />
    </main>
  );
}

const card = {
  lines: [
    { type: "context", text: "use std::fmt;" },
    { type: "add", text: "use serde::Serialize;" },
    { type: "context", text: "" },
    { type: "remove", text: "#[derive(Debug, Clone)]" },
    { type: "add", text: "#[derive(Debug, Clone, Serialize)]" },
    { type: "add", text: '#[serde(rename_all = "kebab-case")]' },
    { type: "context", text: "pub struct Row {" },
    { type: "remove", text: "    pub id: u64," },
    { type: "add", text: "    pub id: ChangeId," },
    { type: "add", text: '    #[serde(with = "unix_seconds")]' },
  ],
  truncated: true,
  totalLines: 15,
} as const;

const inline = { path: "src/table.rs", added: 8, removed: 3, card: { ...card, lines: [...card.lines] } };

const ended = (settled: Settled): ComponentChildren => panel(REVIEW, FILES, { settled });

const huge = (): FileFixture => hugeFile(20_000);

const stories: Record<string, () => ComponentChildren> = {
  panel: () => panel(REVIEW, FILES),
  seen: () => panel(REVIEW, FILES, { seen: [{ path: "src/cli.rs", hunks: [1, 2] }] }),
  one: () => panel({ ...REVIEW, change: 51, files: REVIEW.files.slice(0, 1) }, FILES),
  disconnected: () => panel(REVIEW, FILES, { connected: false }),
  refreshed: () => <Refreshing />,
  reviewers: () =>
    panel({ ...REVIEW, deadlineMs: Date.now() + 50_000, predecessors: [39] }, FILES, {
      reviewers: [{ kind: "terminal", name: "laptop" }],
    }),
  command: () => panel(COMMAND_REVIEW, []),
  tool: () => panel(TOOL_REVIEW, []),
  delegation: () => panel(DELEGATION_REVIEW, []),
  turn: () => panel({ ...REVIEW, change: 52, placement: "inPlace", turn: { turn: "t-3", changes: [38, 40] } }, FILES),
  odd: () => panel({ ...REVIEW, change: 53, files: ODD_FILES.map(({ file }) => file) }, ODD_FILES),
  huge: () => {
    const fixture = huge();
    return panel({ ...REVIEW, change: 54, files: [fixture.file] }, [fixture]);
  },
  denied: () =>
    ended({ status: "denied", by: "elsewhere", name: "terminal “laptop”", reason: "Use serde for the writer." }),
  applied: () => ended({ status: "appliedInPart", by: "here" }),
  stale: () => ended({ status: "stale", by: "here", mergedChange: 45 }),
  full: () => full([WHOLE_CLI, ...FILES.slice(1)]),
  fullHuge: () => full([huge()]),
  fullOdd: () => full(ODD_FILES),
  inline: () => <Frame>{() => <InlineBox files={[inline]} onViewDiff={note("view")} onUndo={note("undo")} />}</Frame>,
};

const query = new URLSearchParams(location.search);
const theme = query.get("theme");
if (theme !== null) document.documentElement.setAttribute("data-theme", theme);
const story = stories[query.get("story") ?? ""];
const root = document.getElementById("app");
if (root !== null) {
  render(
    story === undefined ? (
      <ul>
        {Object.keys(stories).map((name) => (
          <li key={name}>
            <a href={`?story=${name}&theme=dark`}>{name}</a>
          </li>
        ))}
      </ul>
    ) : (
      story()
    ),
    root,
  );
}
