import { useLayoutEffect, useRef } from "preact/hooks";

import { Icon } from "../icon.js";

interface SearchProps {
  text: string;
  onText: (text: string) => void;
  onFind: () => void;
  onClose: () => void;
}

/** Line that a search is typed into. */
export function SearchLine({ text, onText, onFind, onClose }: SearchProps) {
  const input = useRef<HTMLInputElement>(null);
  // Before the next key arrives, so that it is not lost.
  useLayoutEffect(() => input.current?.focus(), []);
  return (
    <form
      class="search-line"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onFind();
      }}
    >
      <Icon name="search" small />
      <input
        ref={input}
        type="text"
        aria-label="Search the diff"
        placeholder="Search the diff"
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            onClose();
          }
        }}
      />
      <button type="submit" class="button small quiet">
        Next <kbd>↵</kbd>
      </button>
      <button type="button" class="button small quiet" onClick={onClose}>
        Close <kbd>Esc</kbd>
      </button>
    </form>
  );
}
