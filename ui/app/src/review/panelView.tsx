import "./panel.css";
import "./bar.css";
import "./action.css";
import "./narrow.css";

import type { RefObject } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { isTextField } from "../diff/elements.js";
import { Icon } from "../icon.js";
import { DecisionBar } from "./bar.js";
import { PanelBody } from "./body.js";
import { CommandSubject } from "./command.js";
import { EditView } from "./editView.js";
import { EndedPanel } from "./ended.js";
import { FileList } from "./files.js";
import { PanelHeader } from "./header.js";
import { readKey } from "./keys.js";
import type { PanelViewProps } from "./props.js";
import type { Input, PanelState } from "./state.js";
import { ToolSubject } from "./tool.js";
import { usePanel, type Panel } from "./usePanel.js";

/** Review panel: the only place that decides. */
export function PanelView(props: PanelViewProps) {
  const panel = usePanel(props);
  const { dispatch } = panel;
  const state = panel.state.value;
  const root = useRef<HTMLElement>(null);
  const headerRef = useRef<HTMLElement>(null);
  const barRef = useRef<HTMLDivElement>(null);
  const titleId = useId();
  const headerHeight = useHeight(headerRef);
  const barHeight = useHeight(barRef);
  usePanelKeys(props, state, dispatch, root);

  if (state.phase.kind === "settled") {
    const { settled } = state.phase;
    return <EndedPanel review={state.review} settled={settled} comments={state.comments} actions={props.actions} />;
  }
  const { dialog } = state;
  const classes = ["panel", state.phase.kind, !state.connected && "cold"].filter(Boolean).join(" ");
  return (
    <section
      ref={root}
      class={classes}
      aria-labelledby={titleId}
      data-change={state.review.change}
      onFocusCapture={props.onActivate}
      onPointerDown={props.onActivate}
    >
      <PanelHeader state={state} reviewers={props.reviewers} headerRef={headerRef} titleId={titleId} />
      <Refreshed state={state} dispatch={dispatch} />
      <FileList state={state} dispatch={dispatch} />
      <Subject panel={panel} />
      {dialog?.kind === "edit" ? (
        <EditView dialog={dialog} dispatch={dispatch} />
      ) : (
        state.review.files.length > 0 && (
          <PanelBody
            state={state}
            dispatch={dispatch}
            panel={panel}
            scroller={props.scroller}
            actions={props.actions}
            headerHeight={headerHeight}
            barHeight={barHeight}
          />
        )
      )}
      <DecisionBar state={state} dispatch={dispatch} barRef={barRef} />
    </section>
  );
}

function Subject({ panel }: { panel: Panel }) {
  const state = panel.state.value;
  const { subject } = state.review;
  const edited =
    state.dialog?.kind === "edited" && state.dialog.subject.kind !== "file" ? state.dialog.text : state.editedAction;
  switch (subject.kind) {
    case "files":
      return null;
    case "command":
      return <CommandSubject command={subject.command} edited={edited} dryRun={panel.dryRun.value} />;
    case "tool":
      return <ToolSubject tool={subject.tool} edited={edited} />;
  }
}

/** What changed between two previews. Decision keys pause until the person goes on. */
function Refreshed({ state, dispatch }: { state: PanelState; dispatch: (input: Input) => void }) {
  if (state.phase.kind !== "refreshed") return null;
  return (
    <div class="refreshed-note" role="alert">
      <div>
        <span class="state stale">
          <Icon name="stale" small />
          The preview changed. Decisions pause until you go on.
        </span>
        <ul>
          {state.phase.refresh.changes.map((change) => (
            <li key={change}>{change}</li>
          ))}
        </ul>
      </div>
      <button
        type="button"
        class="button"
        aria-keyshortcuts="Enter"
        onClick={() => dispatch({ kind: "command", command: "acknowledge", time: performance.now() })}
      >
        Go on with the new preview <kbd>↵</kbd>
      </button>
    </div>
  );
}

/** Keys of the active panel. Text fields, buttons and other views keep theirs. */
function usePanelKeys(
  props: PanelViewProps,
  state: PanelState,
  dispatch: (input: Input) => void,
  root: RefObject<HTMLElement>,
): void {
  const { active: isActive, scroller: streamScroller } = props;
  const currentRef = useRef({ active: isActive, scroller: streamScroller, state });
  useLayoutEffect(() => {
    currentRef.current = { active: isActive, scroller: streamScroller, state };
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const { active, scroller, state: shown } = currentRef.current;
      if (!active || event.defaultPrevented || shown.phase.kind === "settled") return;
      if (!isForPanel(event, root.current, scroller)) return;
      const command = readKey(event);
      if (command === undefined || isIdle(command, shown)) return;
      event.preventDefault();
      event.stopPropagation();
      dispatch({ kind: "command", command, time: performance.now() });
    };
    const onPaste = (): void => {
      if (currentRef.current.active) dispatch({ kind: "paste", time: performance.now() });
    };
    document.addEventListener("keydown", onKeyDown, { capture: true });
    document.addEventListener("paste", onPaste, { capture: true });
    return () => {
      document.removeEventListener("keydown", onKeyDown, { capture: true });
      document.removeEventListener("paste", onPaste, { capture: true });
    };
  }, [dispatch, root]);
}

/** Keys without a use in the present state stay with the shell. */
function isIdle(command: string, state: PanelState): boolean {
  if (command === "acknowledge") return state.phase.kind !== "refreshed";
  if (command === "cancel") return state.dialog === undefined && state.problem === undefined;
  if (command === "dryRun") return state.review.subject.kind !== "command";
  return false;
}

function isForPanel(event: KeyboardEvent, root: HTMLElement | null, scroller: HTMLElement | null): boolean {
  const { target } = event;
  if (isTextField(target) || !(target instanceof Element)) return false;
  if (target.closest(".full-diff, [role=dialog], [role=menu], .code-editor") !== null) return false;
  // A button, a checkbox or a link answers to Space and Enter itself.
  const isControl = target.closest("button, a, input, summary, [role=button]") !== null;
  if (isControl && (event.key === " " || event.key === "Enter")) return false;
  // Arrows and letters of another widget are not for the panel.
  return root?.contains(target) === true || target === document.body || target === scroller;
}

function useHeight(element: RefObject<HTMLElement>): number {
  const [height, setHeight] = useState(0);
  useLayoutEffect(() => {
    const observed = element.current;
    if (observed === null) return undefined;
    const measure = (): void => setHeight(observed.offsetHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(observed);
    return () => observer.disconnect();
  }, [element]);
  return height;
}
