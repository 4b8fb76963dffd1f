import { useLayoutEffect, useRef } from "preact/hooks";

import type { DiffRow } from "../diff/rows.js";
import { escapeUntrustedLines } from "../diff/words.js";
import { commentTarget } from "./rowMoves.js";
import type { CommentTarget, Dialog, Input, PanelState } from "./state.js";

export interface CommentRowsProps {
  state: PanelState;
  dispatch: (input: Input) => void;
  path: string;
  row: DiffRow;
}

/** Comments on a line, below it. */
export function CommentRows({ state, dispatch, path, row }: CommentRowsProps) {
  const target = commentTarget(path, row);
  if (target === undefined) return null;
  const { dialog, comments } = state;
  const isOpen = dialog?.kind === "comment" && isSame(dialog.target, target);
  const at = comments.findIndex((comment) => isSame(comment, target));
  const kept = comments[at];
  if (isOpen) return <CommentField dialog={dialog} state={state} dispatch={dispatch} />;
  if (kept === undefined) return null;
  return (
    <tr class="comment-row">
      <td colSpan={4}>
        <div class="comment">
          <p class="comment-text">{escapeUntrustedLines(kept.text)}</p>
          <div class="comment-foot">
            <span class="grow">Your comment. Sent with your decision.</span>
            <button type="button" class="button small quiet" onClick={() => dispatch({ kind: "commentOn", target })}>
              Edit
            </button>
            <button
              type="button"
              class="button small quiet"
              onClick={() => dispatch({ kind: "removeComment", index: at })}
            >
              Remove
            </button>
          </div>
        </div>
      </td>
    </tr>
  );
}

function isSame(a: CommentTarget, b: CommentTarget): boolean {
  return a.path === b.path && a.line === b.line && a.side === b.side;
}

interface FieldProps {
  dialog: Dialog & { kind: "comment" };
  state: PanelState;
  dispatch: (input: Input) => void;
}

function CommentField({ dialog, state, dispatch }: FieldProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const { line, side } = dialog.target;
  const keep = (): void => dispatch({ kind: "confirm", time: performance.now() });
  return (
    <tr class="comment-row">
      <td colSpan={4}>
        <div class="comment open">
          <textarea
            ref={field}
            aria-label={`Comment on ${side === "proposed" ? "new" : "old"} line ${line}`}
            rows={Math.min(8, dialog.text.split("\n").length)}
            value={dialog.text}
            onInput={(event) => dispatch({ kind: "text", text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Escape") dispatch({ kind: "cancel" });
              else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep();
              else return;
              event.preventDefault();
              event.stopPropagation();
            }}
          />
          <div class="comment-foot">
            <span class="grow">
              {side === "proposed" ? "New" : "Old"} line {line}. Sent to {state.review.agent ?? "the agent"} with your
              decision.
            </span>
            <button type="button" class="button small quiet" onClick={() => dispatch({ kind: "cancel" })}>
              Discard <kbd>Esc</kbd>
            </button>
            <button type="button" class="button small" onClick={keep}>
              Keep comment <kbd>Ctrl ↵</kbd>
            </button>
          </div>
        </div>
      </td>
    </tr>
  );
}
