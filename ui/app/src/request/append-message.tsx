import { useState } from "preact/hooks";

import { announce } from "../announce.js";
import { useEditor } from "./editor-context.js";

/** Adds a user message at the end: the edit that keeps the cache and signed blocks. */
export function AppendMessage() {
  const { model, isBlocked } = useEditor();
  const [text, setText] = useState<string | null>(null);
  if (text === null) {
    return (
      <button type="button" class="button quiet small" disabled={isBlocked} onClick={() => setText("")}>
        Append message
      </button>
    );
  }
  const save = async () => {
    const answer = await model.edit({ edit: { case: "append", value: text } });
    if (!answer) return;
    setText(null);
    announce("A user message is appended");
  };
  return (
    <form
      class="append-message"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <textarea
        rows={2}
        value={text}
        placeholder="Text of the user message"
        aria-label="Text of the user message"
        ref={(area) => area?.focus()}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setText(null);
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <button type="submit" class="button small" disabled={isBlocked || text.trim() === ""}>
        Append
      </button>
      <button type="button" class="button quiet small" onClick={() => setText(null)}>
        Discard
      </button>
    </form>
  );
}
