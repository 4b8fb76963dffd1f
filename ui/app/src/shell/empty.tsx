import { useState } from "preact/hooks";

import { announce } from "../announce.js";
import { Icon } from "../icon.js";

const COMMANDS: readonly (readonly [command: string, effect: string])[] = [
  ["sayso run -- claude", "An agent in this terminal, with its writes and requests held here"],
  ["sayso", "The built-in agent, in the terminal or in this window"],
  ['sayso -p "fix the failing test"', "One task without a terminal view; what needs you waits here"],
];

/** The first page of a workspace without sessions. */
export function EmptyWorkspace() {
  return (
    <div class="empty">
      <h2>Nothing has asked for anything yet</h2>
      <p class="secondary">
        Start an agent behind the gate. What it reads, writes, runs and sends appears here, and what needs you is marked
        in amber.
      </p>
      <div class="card-box">
        {COMMANDS.map(([command, effect]) => (
          <div class="empty-command" key={command}>
            <code>{command}</code>
            <CopyButton text={command} />
            <small>{effect}</small>
          </div>
        ))}
      </div>
      <p class="secondary small-text">
        <kbd>?</kbd> shows the keys that work here. <kbd>5</kbd> goes to the sessions.
      </p>
    </div>
  );
}

export function CopyButton({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => {
        setCopied(true);
        announce("Copied");
      },
      () => announce("The browser does not allow copying here"),
    );
  };
  return (
    <button type="button" class="button quiet small" aria-label={`Copy ${text}`} onClick={copy}>
      <Icon name={isCopied ? "applied" : "copy"} small />
      {isCopied ? "Copied" : "Copy"}
    </button>
  );
}
