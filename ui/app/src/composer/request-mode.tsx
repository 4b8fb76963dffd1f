import { useEffect, useState } from "preact/hooks";

import { describeFailure, isDecisionForbidden } from "@sayso/client";
import { RequestMode, type ModeState } from "@sayso/client/proto/request";
import { HeldRequests } from "@sayso/client/proto/request_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { Icon } from "../icon.js";

const LABELS: readonly (readonly [RequestMode, string])[] = [
  [RequestMode.OFF, "Send normally"],
  [RequestMode.INTERCEPT_ALWAYS, "Pause & review every turn"],
  [RequestMode.AUTO_OVERRIDE, "Auto-apply saved edits"],
];

/** Mode of a session's requests: a choice, and a pause of the next turn. */
export function RequestModeBar({ session }: { session: string }) {
  const { api, store } = useApp();
  const [state, setState] = useState<ModeState | null>(null);
  const lastRequest = store.sessions.all.value.get(session)?.lastRequest;
  const isLive = store.connection.value.state === "live";
  useEffect(() => {
    if (!isLive) return;
    api.requests.getModes({}).then(
      ({ defaultState, sessions }) =>
        setState(sessions.find((item) => item.session === session)?.state ?? defaultState ?? null),
      (error: unknown) => {
        if (!isDecisionForbidden(error)) announce(describeFailure(error).message);
      },
    );
  }, [api, session, isLive, lastRequest]);
  const change = async (next: () => Promise<{ state?: ModeState | undefined }>, optimistic: ModeState | null) => {
    const before = state;
    setState(optimistic);
    try {
      const answer = await next();
      if (answer.state) setState(answer.state);
    } catch (error) {
      setState(before);
      announce(describeFailure(error).message);
    }
  };
  if (!state) return null;
  return (
    <>
      <label class="mode-picker">
        <span class="visually-hidden">Requests of this session</span>
        <select
          value={String(state.mode)}
          disabled={!store.canDecide.value}
          onChange={(event) => {
            const { value } = event.currentTarget;
            const mode = LABELS.find(([known]) => String(known) === value)?.[0] ?? RequestMode.OFF;
            void change(
              async () => {
                await api.requests.setMode({ session, mode, heldRequests: HeldRequests.RESUME });
                return {};
              },
              { ...state, mode },
            );
          }}
        >
          {LABELS.map(([mode, label]) => (
            <option key={mode} value={String(mode)}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        class="button quiet small"
        data-pause-next
        aria-pressed={state.pauseNext}
        aria-keyshortcuts="p"
        disabled={!store.canDecide.value || state.pauseNext}
        onClick={() => void change(() => api.requests.pauseNext({ session }), { ...state, pauseNext: true })}
      >
        <Icon name="paused" small />
        {state.pauseNext ? "Next turn is paused" : "Pause next turn"}
        <kbd aria-hidden="true">p</kbd>
      </button>
    </>
  );
}
