import { useEffect, useState } from "preact/hooks";

import { ListDirectoryResponse_Entry_Kind } from "@sayso/client/proto/workspace_service";

import { useApp } from "../context.js";
import { type Completion, splitPath } from "./completion.js";
import { COMMANDS, type CommandName } from "./slash.js";

const MAX_CHOICES = 8;

interface Choice {
  text: string;
  detail: string;
}

export interface Completions {
  choices: Choice[];
  selected: number;
  /** Handles a key of the field. Returns `true` if the list took it. */
  onKey: (event: KeyboardEvent, choose: (text: string) => void) => boolean;
}

/** Choices for the word under the cursor. */
export function useCompletions(completion: Completion | null, _session: string): Completions {
  const { api } = useApp();
  const [choices, setChoices] = useState<Choice[]>([]);
  const [selected, setSelected] = useState(0);
  const sign = completion?.sign;
  const word = completion?.word ?? "";
  useEffect(() => {
    setSelected(0);
    if (sign === undefined) {
      setChoices([]);
      return;
    }
    if (sign === "/") {
      const names = Object.keys(COMMANDS) as CommandName[];
      const found = names.filter((name) => name.startsWith(word));
      setChoices(found.map((name) => ({ text: name, detail: COMMANDS[name].description })));
      return;
    }
    const { directory, start } = splitPath(word);
    let isPresent = true;
    api.workspace.listDirectory({ path: directory, limit: 1_000 }).then(
      ({ entries }) => {
        if (!isPresent) return;
        const prefix = directory === "" ? "" : `${directory}/`;
        const found = entries.filter(({ name }) => name.toLowerCase().startsWith(start.toLowerCase()));
        setChoices(
          found.slice(0, MAX_CHOICES).map(({ name, kind }) => ({
            text: prefix + name + (kind === ListDirectoryResponse_Entry_Kind.DIRECTORY ? "/" : ""),
            detail: "",
          })),
        );
      },
      () => setChoices([]),
    );
    return () => {
      isPresent = false;
    };
  }, [api, sign, word]);
  const onKey = (event: KeyboardEvent, choose: (text: string) => void): boolean => {
    // After an insertion, the choices stay until the next effect. A quick Enter is no choice then.
    if (sign === undefined || choices.length === 0) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setSelected((selected + step + choices.length) % choices.length);
      return true;
    }
    if (event.key === "Tab" || event.key === "Enter") {
      const choice = choices[selected];
      if (!choice) return false;
      event.preventDefault();
      choose(choice.text);
      return true;
    }
    if (event.key === "Escape") {
      event.preventDefault();
      setChoices([]);
      return true;
    }
    return false;
  };
  return { choices: sign === undefined ? [] : choices, selected, onKey };
}

export function CompletionList({ list, onChoose }: { list: Completions; onChoose: (text: string) => void }) {
  if (list.choices.length === 0) return null;
  return (
    <ul class="completions" role="listbox" aria-label="Completions">
      {list.choices.map((choice, index) => (
        <li
          key={choice.text}
          role="option"
          aria-selected={index === list.selected}
          onMouseDown={(event) => {
            event.preventDefault();
            onChoose(choice.text);
          }}
        >
          <code>{choice.text}</code> <span class="secondary">{choice.detail}</span>
        </li>
      ))}
    </ul>
  );
}
