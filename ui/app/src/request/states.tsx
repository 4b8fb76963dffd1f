import type { Failure } from "@sayso/client";

import { useApp } from "../context.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";

/** Nothing to edit yet, and the ways to get a request. */
export function Waiting({ isPausing }: { isPausing: boolean }) {
  const { store } = useApp();
  return (
    <section class="request-empty" aria-label="Waiting for chat request">
      <h2>Waiting for chat request</h2>
      <p class="secondary">
        {isPausing
          ? "Send a prompt to your agent. The request appears here before it is sent."
          : "Choose Pause next turn or a mode above, then send a prompt to your agent. The request appears here before it is sent."}
      </p>
      <div class="empty-commands">
        <p>
          <code>sayso run -- claude</code>
          <span class="secondary">
            Starts an agent whose requests go through sayso. codex, gemini, copilot and opencode too.
          </span>
        </p>
        <p>
          <code>eval "$(sayso env claude)"</code>
          <span class="secondary">Settings for an agent that you start yourself.</span>
        </p>
      </div>
      {store.engine.value === null && <p class="secondary">The engine is not connected.</p>}
      <p class="tertiary small-text">Live Request Editor idle — send a chat request to populate metadata.</p>
    </section>
  );
}

/** The engine has no request editor. */
export function Disabled() {
  return (
    <section class="request-empty" aria-label="Request editor off">
      <h2>The request editor is off</h2>
      <p class="secondary">
        <Icon name="settings" small /> This engine does not pause requests; bodies pass verbatim. The setting is{" "}
        <code>[request] editor</code> in <code>sayso.toml</code>; <code>sayso config</code> shows where it is set.
      </p>
    </section>
  );
}

/** Loading, or a failed read with a way to try again. */
export function LoadFailure(props: { failure: Failure | null; what: string; onRetry: () => void }) {
  const { failure, what, onRetry } = props;
  if (failure === null) {
    return (
      <p class="stream-note" role="status">
        Reading {what}…
      </p>
    );
  }
  return (
    <section class="request-empty" role="alert">
      <h2>Cannot read {what}</h2>
      <p class="secondary">{escapeUntrusted(failure.message)}</p>
      {failure.hint !== null && <p class="secondary">{escapeUntrusted(failure.hint)}</p>}
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    </section>
  );
}

/** The reason why nothing can be decided now. */
export function ConnectionState() {
  const { store } = useApp();
  const { state } = store.connection.value;
  if (state !== "live" && state !== "connecting") {
    return (
      <p class="read-only-note secondary" role="status">
        Decisions return with the connection. Paused requests stay paused.
      </p>
    );
  }
  return store.readOnly.value ? (
    <p class="read-only-note secondary">
      This page may read only. Open the app with <code>sayso open</code> to decide.
    </p>
  ) : null;
}
