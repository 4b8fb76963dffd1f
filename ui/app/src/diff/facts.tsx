import { Icon } from "../icon.js";
import type { DiffFile } from "./rows.js";
import { escapeUntrusted, fileFacts, noDiffSentence } from "./words.js";

/** Facts and notes about a file that its rows do not show. */
export function FileFacts({ file }: { file: DiffFile }) {
  const sentence = noDiffSentence(file);
  const facts = fileFacts(file);
  const notes = file.notes ?? [];
  if (sentence === undefined && facts.length + notes.length === 0 && file.settled !== true) return null;
  return (
    <ul class="file-facts">
      {file.settled === true && <li>Approved earlier. Shown for information.</li>}
      {sentence !== undefined && <li class={file.problem === undefined ? "" : "file-problem"}>{sentence}</li>}
      {notes.map((note) => (
        <li key={note.text} class={note.severity === "info" ? "" : "state unseen"}>
          {note.severity !== "info" && <Icon name="warning" small />}
          <span>{escapeUntrusted(note.text)}</span>
        </li>
      ))}
      {facts.map((fact) => (
        <li key={fact}>{fact}</li>
      ))}
    </ul>
  );
}
