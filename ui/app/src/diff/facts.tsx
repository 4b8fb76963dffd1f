import { Icon } from "../icon.js";
import type { DiffFile } from "./rows.js";
import { escapeUntrusted, fileFacts, noDiffSentence } from "./words.js";

export interface FileFactsProps {
  file: DiffFile;
  /** Notes that the reader sees already. */
  shown?: readonly string[];
}

/** Reason for missing rows, and notes about a file. */
export function FileFacts({ file, shown = [] }: FileFactsProps) {
  const sentence = noDiffSentence(file);
  const facts = file.hunks === 0 ? fileFacts(file) : [];
  const notes = (file.notes ?? []).filter((note) => !shown.includes(note.text));
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
