import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import { InlineCard, type InlineLines } from "./inlineCard.js";

export interface InlineFile {
  path: string;
  added: number;
  removed: number;
  /** Absent without changed lines and for binary files. */
  card?: InlineLines;
  /** Sentence in place of lines. */
  fact?: string;
}

export interface InlineBoxProps {
  files: InlineFile[];
  onViewDiff: () => void;
  onUndo?: (() => void) | undefined;
}

/** Inline diffs of a change with their actions. Several files have their names above. */
export function InlineBox({ files, onViewDiff, onUndo }: InlineBoxProps) {
  return (
    <div class="inline-box">
      {files.map((file) => (
        <div key={file.path} class="inline-file">
          {files.length > 1 && (
            <div class="inline-name">
              <Path path={file.path} />
              <Counts added={file.added} removed={file.removed} />
            </div>
          )}
          <InlineCard diff={file.card} />
          {file.fact !== undefined && <p class="inline-fact">{file.fact}</p>}
        </div>
      ))}
      <div class="inline-actions">
        <button type="button" class="button small quiet" aria-keyshortcuts="v" onClick={onViewDiff}>
          View diff <kbd>v</kbd>
        </button>
        {onUndo && (
          <button type="button" class="button small quiet" aria-keyshortcuts="u" onClick={onUndo}>
            Undo <kbd>u</kbd>
          </button>
        )}
      </div>
    </div>
  );
}
