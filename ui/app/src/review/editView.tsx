import { Path } from "../theme/path.js";
import type { Dialog, Input } from "./state.js";
import { TextEditor } from "./textEditor.js";

export interface EditViewProps {
  dialog: Dialog & { kind: "edit" };
  dispatch: (input: Input) => void;
}

/** Editor of the proposal. Its result is shown before it counts. */
export function EditView({ dialog, dispatch }: EditViewProps) {
  const { subject, text, error } = dialog;
  const label =
    subject.kind === "file"
      ? `Edit ${subject.path}`
      : subject.kind === "command"
        ? "Edit the script"
        : "Edit the arguments";
  const confirm = (): void => dispatch({ kind: "confirm", time: performance.now() });
  return (
    <section class="edit-view" aria-label={label}>
      <div class="edit-head">
        <strong>Edit</strong>
        {subject.kind === "file" ? (
          <Path path={subject.path} />
        ) : (
          <span>{subject.kind === "command" ? "the script" : "the arguments"}</span>
        )}
        <span class="grow" />
        <button type="button" class="button small quiet" onClick={() => dispatch({ kind: "cancel" })}>
          Discard <kbd>Esc</kbd>
        </button>
        <button type="button" class="button small" disabled={text === undefined} onClick={confirm}>
          Show the result <kbd>Ctrl ↵</kbd>
        </button>
      </div>
      {error !== undefined && (
        <p class="bar-problem" role="alert">
          {error}
        </p>
      )}
      {text === undefined ? (
        error === undefined && <p class="edit-wait">Reading the proposed text…</p>
      ) : (
        <TextEditor
          key={label}
          text={text}
          label={label}
          onText={(changed) => dispatch({ kind: "text", text: changed })}
          onConfirm={confirm}
          onCancel={() => dispatch({ kind: "cancel" })}
        />
      )}
    </section>
  );
}
