import { count, operationWord } from "../diff/words.js";
import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import { fileExtent, isDecidable, selectionOf, type Extent } from "./selection.js";
import type { Input, PanelState } from "./state.js";

/** Checkbox with the third state of a partial selection. */
export function ExtentBox(props: {
  extent: Extent;
  label: string;
  disabled?: boolean;
  keys?: string;
  onToggle: () => void;
}) {
  const { extent, label, disabled = false, keys, onToggle } = props;
  return (
    <input
      type="checkbox"
      class="checkbox"
      checked={extent === "all"}
      indeterminate={extent === "some"}
      aria-checked={extent === "some" ? "mixed" : extent === "all"}
      aria-label={label}
      aria-keyshortcuts={keys}
      disabled={disabled}
      onChange={onToggle}
    />
  );
}

/** Files of the change with their selection. One file needs no list. */
export function FileList({ state, dispatch }: { state: PanelState; dispatch: (input: Input) => void }) {
  const { review, selection, cursor } = state;
  if (review.files.length < 2) return null;
  return (
    <ul class="panel-files" aria-label="Files">
      {review.files.map((file, index) => (
        <li key={file.path} class={index === cursor.file ? "chip current" : "chip"}>
          <ExtentBox
            extent={isDecidable(file) ? fileExtent(file, selectionOf(selection, file.path)) : "none"}
            label={`select ${file.path}`}
            disabled={!isDecidable(file)}
            onToggle={() => dispatch({ kind: "toggleFile", file: index })}
          />
          <button
            type="button"
            class="file-jump"
            aria-current={index === cursor.file ? "true" : undefined}
            onClick={() => dispatch({ kind: "goToFile", file: index })}
          >
            <Path path={file.path} />
            {operationWord(file) !== "" && <span class="secondary">{operationWord(file)}</span>}
            <Counts added={file.added} removed={file.removed} />
            <span class="secondary file-hunks">
              {file.problem !== undefined
                ? "cannot be applied"
                : file.settled === true
                  ? "approved earlier"
                  : file.hunks > 0 && count(file.hunks, "hunk")}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
