import { useApp } from "../context.js";
import { BuiltInComposer } from "../parts.js";
import "./composer.css";
import { RequestModeBar } from "./request-mode.js";
import { escapeUntrusted } from "../diff/words.js";

/** The bar below the stream. Prompts go to sessions of the built-in agent; other agents have their own terminal. */
export function Composer({ session }: { session: string }) {
  const { store } = useApp();
  if (store.builtIn.value.has(session)) return <BuiltInComposer key={session} session={session} />;
  const agent = store.sessions.all.value.get(session)?.agent ?? "The agent";
  if (session === "") return null;
  return (
    <div class="composer">
      <div class="composer-bar other-agent">
        <RequestModeBar session={session} />
        <span class="grow" />
        <span class="tertiary small-text ellipsis">{escapeUntrusted(agent)} takes prompts in its own terminal</span>
      </div>
    </div>
  );
}
