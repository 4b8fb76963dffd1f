import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { count } from "../diff/words.js";
import { Icon } from "../icon.js";
import { keyName, PANEL_KEYS, shortcutOf, type Command } from "./keys.js";
import { RuleView } from "./rule.js";
import { approveLabel, isEmpty } from "./selection.js";
import { canDecide, countsOf, pauseReason, type Input, type PanelState } from "./state.js";

export interface BarProps {
  state: PanelState;
  dispatch: (input: Input) => void;
  barRef: RefObject<HTMLDivElement>;
}

/** Decision bar. It stays visible; the lines of a decision open above its buttons. */
export function DecisionBar({ state, dispatch, barRef }: BarProps) {
  // A line or a field that is open takes the next step; its text would be lost.
  const isBusy = state.dialog !== undefined && state.dialog.kind !== "help" && state.dialog.kind !== "search";
  const live = canDecide(state) && !isBusy;
  return (
    <div class="decision-bar" ref={barRef}>
      <Opened state={state} dispatch={dispatch} />
      {state.problem !== undefined && (
        <p class="bar-problem" role="alert">
          {state.problem}
        </p>
      )}
      <div class="bar-buttons" role="toolbar" aria-label="decision">
        <Buttons state={state} dispatch={dispatch} live={live} />
        <span class="grow" />
        <Summary state={state} />
        <button
          type="button"
          class="button quiet help-button"
          aria-keyshortcuts="?"
          aria-expanded={state.dialog?.kind === "help"}
          onClick={() => press(dispatch, "help")}
        >
          <kbd aria-hidden="true">?</kbd>
          <span class="touch-word">More</span>
          <span class="visually-hidden"> keys that work here</span>
        </button>
      </div>
    </div>
  );
}

function press(dispatch: (input: Input) => void, command: Command): void {
  dispatch({ kind: "command", command, time: performance.now() });
}

interface ButtonProps {
  command: Command;
  dispatch: (input: Input) => void;
  disabled?: boolean;
  class?: string;
  children: ComponentChildren;
}

function KeyButton({ command, dispatch, disabled = false, class: extra = "", children }: ButtonProps) {
  const entry = PANEL_KEYS.find((candidate) => candidate.command === command);
  return (
    <button
      type="button"
      class={`button ${extra}`}
      data-command={command}
      aria-keyshortcuts={shortcutOf(command)}
      disabled={disabled}
      onClick={() => {
        if (command !== "help") dispatch({ kind: "cancel" });
        press(dispatch, command);
      }}
    >
      {children}
      {entry && <kbd aria-hidden="true">{keyName(entry.key)}</kbd>}
    </button>
  );
}

/** Approve, Deny…, Edit, Comment, View full diff: the order never changes. */
function Buttons({ state, dispatch, live }: Omit<BarProps, "barRef"> & { live: boolean }) {
  const { subject, files } = state.review;
  const isFiles = files.length > 0;
  const counts = countsOf(state);
  const label = isFiles ? approveLabel(counts) : state.editedAction === undefined ? "Approve" : "Approve as edited";
  const comma = label.search(/, \d/);
  const main = comma < 0 ? label : label.slice(0, comma);
  const unseen = comma < 0 ? undefined : label.slice(comma + 2);
  return (
    <>
      <KeyButton command="approve" dispatch={dispatch} disabled={!live || (isFiles && isEmpty(counts))} class="ask">
        <span class="approve-label">
          <span>{main}</span>
          {unseen !== undefined && (
            <>
              <span class="approve-comma">, </span>
              <small>{unseen}</small>
            </>
          )}
        </span>
      </KeyButton>
      <KeyButton command="deny" dispatch={dispatch} disabled={!live} class="deny">
        Deny…
      </KeyButton>
      {canDecide(state) && (
        <KeyButton command="edit" dispatch={dispatch} disabled={!live} class="less">
          <Icon name="edit" small class="touch-icon" />
          Edit
        </KeyButton>
      )}
      {canDecide(state) && isFiles && (
        <KeyButton command="comment" dispatch={dispatch} disabled={!live} class="less">
          <Icon name="chat" small class="touch-icon" />
          Comment
        </KeyButton>
      )}
      {subject.kind === "command" && subject.command.dryRun.length > 0 && (
        <KeyButton command="dryRun" dispatch={dispatch} disabled={!live} class="less">
          Dry run
        </KeyButton>
      )}
      {isFiles && (
        <KeyButton command="fullDiff" dispatch={dispatch} class="quiet less">
          <Icon name="diff" small class="touch-icon" />
          <span>
            View <span class="wide-word">full </span>diff
          </span>
        </KeyButton>
      )}
    </>
  );
}

function Summary({ state }: { state: PanelState }) {
  const reason = pauseReason(state, Number.POSITIVE_INFINITY);
  if (reason !== undefined) return <span class="bar-summary">{reason}</span>;
  const counts = countsOf(state);
  if (state.review.files.length === 0) return null;
  const comments = state.comments.length;
  return (
    <span class="bar-summary numeric">
      <span>
        {counts.selected} of {count(counts.total, counts.noun)} selected
      </span>
      {counts.left.length > 0 && counts.left.length < 3 && (
        <span class="bar-left-out">
          <span class="dot">·</span>
          {counts.left.join(", ")} {counts.left.length === 1 ? "stays" : "stay"} out
        </span>
      )}
      {comments > 0 && (
        <span>
          <span class="dot">·</span>
          {count(comments, "comment")}
        </span>
      )}
    </span>
  );
}

function Opened({ state, dispatch }: Omit<BarProps, "barRef">) {
  const { dialog } = state;
  switch (dialog?.kind) {
    case "deny":
      return (
        <TextLine
          label="Reason for the agent"
          placeholder="Reason for the agent. Enter denies, also without one."
          text={dialog.text}
          confirm="Deny"
          dispatch={dispatch}
        />
      );
    case "message":
      return (
        <TextLine
          label="Message for the agent"
          placeholder="Yes, and… The agent reads it with the approval."
          text={dialog.text}
          confirm="Approve with message"
          dispatch={dispatch}
        />
      );
    case "search":
      return (
        <TextLine
          label="Search the diff"
          placeholder="Search the diff"
          text={dialog.text}
          confirm="Find"
          dispatch={dispatch}
        />
      );
    case "rule":
      return <RuleView dialog={dialog} dispatch={dispatch} />;
    case "edited":
      return (
        <div class="bar-line">
          <span class="grow">
            This is the result of your edit. It counts once you keep it; approving is a separate step.
          </span>
          <button type="button" class="button small" onClick={() => dispatch({ kind: "cancel" })}>
            Discard <kbd>Esc</kbd>
          </button>
          <button
            type="button"
            class="button small"
            onClick={() => dispatch({ kind: "confirm", time: performance.now() })}
          >
            Keep the edit <kbd>y</kbd>
          </button>
        </div>
      );
    case "help":
      return <KeyList dispatch={dispatch} />;
    default:
      return null;
  }
}

interface LineProps {
  label: string;
  placeholder: string;
  text: string;
  confirm: string;
  dispatch: (input: Input) => void;
}

/** Line of text. Enter confirms it, Esc goes back. */
function TextLine({ label, placeholder, text, confirm, dispatch }: LineProps) {
  const input = useRef<HTMLInputElement>(null);
  // Before the next key arrives, so that it is not lost.
  useLayoutEffect(() => input.current?.focus(), []);
  return (
    <form
      class="bar-line"
      onSubmit={(event) => {
        event.preventDefault();
        dispatch({ kind: "confirm", time: performance.now() });
      }}
    >
      <input
        ref={input}
        type="text"
        aria-label={label}
        placeholder={placeholder}
        autocomplete="off"
        value={text}
        onInput={(event) => dispatch({ kind: "text", text: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter" && event.isComposing) event.preventDefault();
          if (event.key !== "Escape") return;
          event.stopPropagation();
          dispatch({ kind: "cancel" });
        }}
      />
      <button type="button" class="button small quiet" onClick={() => dispatch({ kind: "cancel" })}>
        Back <kbd>Esc</kbd>
      </button>
      <button type="submit" class="button small">
        {confirm} <kbd>↵</kbd>
      </button>
    </form>
  );
}

/** Keys with their commands, which the pointer can run as well. */
function KeyList({ dispatch }: { dispatch: (input: Input) => void }) {
  return (
    <ul class="key-list" aria-label="Keys that work here">
      {PANEL_KEYS.map(({ key, command, text }) => (
        <li key={key}>
          <button
            type="button"
            aria-keyshortcuts={shortcutOf(command)}
            onClick={() => {
              dispatch({ kind: "cancel" });
              press(dispatch, command);
            }}
          >
            <kbd>{keyName(key)}</kbd>
            <span>{text}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
