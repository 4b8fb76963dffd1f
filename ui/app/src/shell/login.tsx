import { useApp } from "../context.js";
import { Icon } from "../icon.js";
import { CopyButton } from "./empty.js";

/** The page of a login that the engine does not know: none, or that of an engine that has ended. */
export function LoginExpired() {
  const { store } = useApp();
  return (
    <main class="login-page">
      <div class="empty">
        <p class="brand">
          <Icon name="gate" /> sayso
        </p>
        <h2>This page is not logged in</h2>
        <p class="secondary">
          A login lasts as long as its engine. Only you can make a new one, in a terminal of your own in the workspace:
        </p>
        <div class="card-box">
          <div class="empty-command">
            <code>sayso open</code>
            <CopyButton text="sayso open" />
            <small>Opens this page, logged in. The link works once, within five minutes.</small>
          </div>
        </div>
        <p>
          <button type="button" class="button" onClick={() => store.retryNow()}>
            Try again
          </button>
        </p>
      </div>
    </main>
  );
}
