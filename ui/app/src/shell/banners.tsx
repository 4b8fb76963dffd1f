import { useApp } from "../context.js";
import { Icon } from "../icon.js";
import { secondTime, useNow } from "../times.js";

/** Lines below the top bar about the connection. They stay until their cause is gone. */
export function ConnectionBanners() {
  const { store } = useApp();
  return (
    <>
      <Lost />
      {store.readOnly.value && (
        <p class="banner" role="status">
          <Icon name="notice" small />
          <b>Read only.</b>
          <span class="secondary">
            This page has no login, so it shows everything and decides nothing. Run <code>sayso open</code> in a
            terminal of your own.
          </span>
        </p>
      )}
      {store.engineReplaced.value && (
        <p class="banner" role="status">
          <Icon name="notice" small />
          <span>The engine was restarted{store.engine.value ? `, version ${store.engine.value.version}` : ""}.</span>
          <span class="secondary">Everything shown is current. Reload the page if the version is new.</span>
          <span class="grow" />
          <button type="button" class="button small" onClick={() => window.location.reload()}>
            Reload
          </button>
          <button type="button" class="button quiet small" onClick={() => store.dismissEngineReplaced()}>
            Dismiss
          </button>
        </p>
      )}
      {isPlainBeyondThisMachine(window.location) && (
        <p class="banner warning" role="note">
          <Icon name="warning" small />
          <b>Not encrypted.</b>
          <span class="secondary">
            Everyone on the way to this machine can read what this page shows and use its login. Put TLS before it, or
            use an SSH tunnel.
          </span>
        </p>
      )}
    </>
  );
}

/** The page comes by plain HTTP from another machine. */
export function isPlainBeyondThisMachine(location: { protocol: string; hostname: string }): boolean {
  if (location.protocol !== "http:") return false;
  const host = location.hostname.replace(/^\[|\]$/g, "");
  return !(host === "localhost" || host.endsWith(".localhost") || host === "::1" || /^127(\.\d+){3}$/.test(host));
}

function Lost() {
  const { store } = useApp();
  const connection = store.connection.value;
  const now = useNow(1_000);
  if (connection.state !== "reconnecting" && connection.state !== "offline") return null;
  const name = connection.state === "offline" ? "This device is offline since" : "Connection lost at";
  const wait = connection.state === "reconnecting" ? Math.max(0, Math.ceil((connection.retryAt - now) / 1_000)) : null;
  return (
    <div class="banner lost" role="status">
      <Icon name="disconnected" />
      <b>
        {name} {secondTime(connection.since)}
      </b>
      <span class="secondary">
        What you see is from then. The agent stays held: without an answer nothing is written or sent.
      </span>
      <span class="grow" />
      {connection.state === "reconnecting" && (
        <span class="secondary numeric">
          attempt {connection.attempt}
          {wait !== null && `, next in ${wait} s`}
        </span>
      )}
      <button type="button" class="button small" onClick={() => store.retryNow()}>
        Retry now
      </button>
    </div>
  );
}
