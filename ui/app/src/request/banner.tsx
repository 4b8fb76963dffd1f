import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { RequestMode, type RequestSummary } from "@sayso/client/proto/request";
import { HeldRequests, type ShowRequestResponse } from "@sayso/client/proto/request_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { count, escapeUntrusted, formatNumber } from "../diff/words.js";
import { Icon } from "../icon.js";
import { fullTime, secondTime, useNow } from "../times.js";
import { bannerWords, editorState, editsOf, idleReminder, MODE_LABELS, type EditorState } from "./banner-state.js";
import type { ConversationChoice } from "./follow.js";
import type { ModesModel } from "./modes-model.js";
import { Meter } from "./share.js";
import { requestPreferences } from "./request-preferences.js";
import { deadlineWords, editCount, pauseWords, percent, shortId, tokenWords } from "./words.js";

/** Buttons of the banner that decide about a request. */
export interface BannerActions {
  onResume: () => void;
  onCancel: () => void;
  onReset: () => void;
  /** The reason why the request cannot be sent as it is. `null` if it can. */
  blockedReason: string | null;
  isBusy: boolean;
}

/** The banner that stays on top: state, decision, conversation, mode, facts and tokens. */
export function RequestBanner(props: {
  show: ShowRequestResponse;
  choices: readonly ConversationChoice[];
  onChoose: (choice: ConversationChoice) => void;
  modes: ModesModel;
  actions: BannerActions;
}) {
  const { show, choices, onChoose, modes, actions } = props;
  const { store } = useApp();
  const request = show.summary;
  const [isFolded, setFolded] = useState(true);
  if (!request) return null;
  const state = editorState(request);
  const words = bannerWords(request);
  const session = request.received?.origin?.session;
  const controls = `banner-line banner-controls${isFolded ? " is-folded" : ""}`;
  return (
    <section class={`request-banner is-${state}`} aria-label={words.title}>
      <div class="banner-line">
        <BannerIcon state={state} />
        <h2>{words.title}</h2>
        <span class="secondary small-text banner-cue">{escapeUntrusted(words.cue)}</span>
        <DirtyBadge edits={editsOf(show)} isShown={state === "paused"} />
        <span class="grow" />
        <Decision state={state} edits={editsOf(show)} actions={actions} canDecide={store.canDecide.value} />
      </div>
      <div class={controls}>
        <ConversationPicker choices={choices} present={session ?? ""} request={request.request} onChoose={onChoose} />
        <AutoFollow />
        <span class="grow" />
        <ModePicker modes={modes} session={session} />
      </div>
      <Facts show={show} request={request} state={state} />
      <button
        type="button"
        class="button quiet small banner-fold"
        aria-expanded={!isFolded}
        onClick={() => setFolded(!isFolded)}
      >
        <Icon name={isFolded ? "right" : "down"} small />
        Conversation and mode
      </button>
    </section>
  );
}

function BannerIcon({ state }: { state: EditorState }) {
  const name =
    state === "paused" ? "paused" : state === "retrying" ? "running" : state === "discarded" ? "notice" : "request";
  return (
    <span class="banner-icon">
      <Icon name={name} />
    </span>
  );
}

/** Number of edits. Screen readers hear each change. */
function DirtyBadge({ edits, isShown }: { edits: number; isShown: boolean }) {
  return (
    <span class={edits > 0 && isShown ? "dirty-badge" : "visually-hidden"} aria-live="polite" data-testid="dirty">
      {isShown ? editCount(edits) : ""}
    </span>
  );
}

function Decision(props: { state: EditorState; edits: number; actions: BannerActions; canDecide: boolean }) {
  const { state, edits, actions, canDecide } = props;
  if (state !== "paused" && state !== "retrying") return null;
  const isOff = actions.isBusy || !canDecide;
  return (
    <span class="banner-decision">
      {state === "paused" && (
        <button
          type="button"
          class="button quiet"
          disabled={isOff || edits === 0}
          title="Undo all edits"
          onClick={actions.onReset}
        >
          Reset
        </button>
      )}
      <button type="button" class="button" disabled={isOff} onClick={actions.onCancel}>
        Cancel
      </button>
      {state === "paused" && (
        <button
          type="button"
          class="button ask"
          aria-keyshortcuts="r"
          aria-disabled={isOff || actions.blockedReason !== null}
          title={actions.blockedReason ?? undefined}
          onClick={() => {
            if (!isOff) actions.onResume();
          }}
        >
          Resume send <kbd>r</kbd>
        </button>
      )}
    </span>
  );
}

/** Conversations with requests, by recency. Never disabled. */
export function ConversationPicker(props: {
  choices: readonly ConversationChoice[];
  present: string;
  request: bigint | null;
  onChoose: (choice: ConversationChoice) => void;
}) {
  const { choices, present, onChoose } = props;
  return (
    <label class="conversation-picker">
      <span class="visually-hidden">Conversation</span>
      <select
        value={present}
        onChange={(event) => {
          const choice = choices.find(({ session }) => session === event.currentTarget.value);
          if (choice) onChoose(choice);
        }}
      >
        {choices.length === 0 && <option value="">No conversation yet</option>}
        {choices.map((choice) => (
          <option key={choice.session} value={choice.session}>
            {escapeUntrusted(choice.label)}
            {choice.held > 0 ? ` · ${choice.held} paused` : ""}
          </option>
        ))}
      </select>
    </label>
  );
}

export function AutoFollow() {
  const isOn = requestPreferences.autoFollow.value;
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-checked={isOn}
      title="Show each newly paused request"
      onClick={() => (requestPreferences.autoFollow.value = !isOn)}
    >
      <span class="switch-track" aria-hidden="true" />
      Auto-follow latest
    </button>
  );
}

/** The modes of a session, and a pause of the next turn. */
export function ModePicker({ modes, session }: { modes: ModesModel; session: string | undefined }) {
  const { store } = useApp();
  const [isAsking, setAsking] = useState(false);
  const state = modes.stateOf(session);
  const held = heldIn(modes, session);
  const canDecide = store.canDecide.value;
  const set = async (mode: RequestMode, fate: HeldRequests) => {
    setAsking(false);
    const answer = await modes.setMode(session, mode, fate);
    if (!answer) return;
    const label = MODE_LABELS.find(([value]) => value === mode)?.[1] ?? "";
    const kept = answer.stillHeld.map(({ request, reason }) => `Request ${request} is still paused: ${reason}`);
    announce([`Mode: ${label}`, ...kept].join(". "));
  };
  const choose = (mode: RequestMode) => {
    if (mode === state?.mode) return;
    if (mode === RequestMode.OFF && held > 0) setAsking(true);
    else void set(mode, HeldRequests.RESUME);
  };
  return (
    <span class="mode-controls">
      <span class="segments" role="group" aria-label="Mode of new requests">
        {MODE_LABELS.map(([mode, label]) => (
          <button
            key={mode}
            type="button"
            aria-pressed={state?.mode === mode}
            data-mode={mode}
            disabled={!canDecide || state === undefined}
            onClick={() => choose(mode)}
          >
            {label}
          </button>
        ))}
      </span>
      {state?.captureNext !== true && (
        <button
          type="button"
          class="button"
          data-pause-next
          aria-keyshortcuts="p"
          aria-pressed={state?.pauseNext === true}
          disabled={!canDecide || state?.pauseNext === true}
          onClick={() => void modes.pauseNext(session).then((done) => done && announce("The next turn is paused"))}
        >
          {state?.pauseNext === true ? "Next turn is paused" : "Pause next turn"} <kbd>p</kbd>
        </button>
      )}
      {isAsking && (
        <HeldQuestion
          held={held}
          onChoose={(fate) => void set(RequestMode.OFF, fate)}
          onBack={() => setAsking(false)}
        />
      )}
    </span>
  );
}

function heldIn(modes: ModesModel, session: string | undefined): number {
  const sessions = modes.modes.value?.sessions ?? [];
  return Number(sessions.find((item) => item.session === session)?.held ?? 0n);
}

/** The fate of paused requests when nothing is paused any more. */
function HeldQuestion(props: { held: number; onChoose: (fate: HeldRequests) => void; onBack: () => void }) {
  const { held, onChoose, onBack } = props;
  return (
    <span class="held-question" role="alertdialog" aria-label="Paused requests">
      <span>{count(held, "request")} paused.</span>
      <button
        type="button"
        class="button small"
        ref={(button) => button?.focus()}
        onClick={() => onChoose(HeldRequests.RESUME)}
      >
        Send with edits
      </button>
      <button type="button" class="button small" onClick={() => onChoose(HeldRequests.CANCEL)}>
        Cancel them
      </button>
      <button type="button" class="button quiet small" onClick={onBack}>
        Back
      </button>
    </span>
  );
}

/** Model, location, request id, sections, time, cause, deadline; tokens and share of the window. */
function Facts({ show, request, state }: { show: ShowRequestResponse; request: RequestSummary; state: EditorState }) {
  const facts: ComponentChildren[] = [];
  const metadata = new Map(show.metadata.map(({ name, value }) => [name, value]));
  if (request.received?.model !== undefined) facts.push(escapeUntrusted(request.received.model));
  const location = metadata.get("location");
  if (location !== undefined && location !== "") facts.push(escapeUntrusted(location));
  const id = metadata.get("requestId") ?? String(request.request);
  facts.push(<span title={id}>request {escapeUntrusted(shortId(id))}</span>);
  facts.push(count(show.sections.filter((section) => section.parent === undefined).length, "section"));
  facts.push(
    <time title={fullTime(request.timeMs)} key="time">
      {secondTime(request.timeMs)}
    </time>,
  );
  if (state === "paused") facts.push(pauseWords(request.pauseReason));
  const window = Number(show.contextWindow ?? 0n);
  const tokens = Number(show.tokens?.count ?? 0n);
  return (
    <p class="banner-line banner-facts numeric">
      <span class="secondary ellipsis">
        {facts.map((fact, index) => (
          <span key={index}>
            {index > 0 && <span class="dot">·</span>}
            {fact}
          </span>
        ))}
        {state === "paused" && <Deadline deadlineMs={request.deadlineMs} />}
      </span>
      <span class="grow" />
      {show.tokens && <b class="banner-tokens">{tokenWords(show.tokens)}</b>}
      {window > 0 ? (
        <>
          <span class="secondary">
            {percent(tokens / window, 1)} of {formatNumber(window)}
          </span>
          <Meter share={tokens / window} width={120} />
        </>
      ) : (
        <span class="secondary">window unknown</span>
      )}
    </p>
  );
}

function Deadline({ deadlineMs }: { deadlineMs: bigint | undefined }) {
  const now = useNow(1_000);
  const words = deadlineWords(deadlineMs, now);
  return words === "" ? null : (
    <span>
      <span class="dot">·</span>
      {words}
    </span>
  );
}

/** The banner while no request is shown: the reminder, the picker and the modes. */
export function IdleBanner(props: {
  modes: ModesModel;
  choices: readonly ConversationChoice[];
  onChoose: (choice: ConversationChoice) => void;
}) {
  const { modes, choices, onChoose } = props;
  const [latest] = choices;
  const state = modes.stateOf(undefined);
  const reminder = idleReminder(state);
  return (
    <section class="request-banner is-idle" aria-label="Request mode">
      <div class="banner-line banner-controls">
        <ConversationPicker choices={choices} present={latest?.session ?? ""} request={null} onChoose={onChoose} />
        <AutoFollow />
        <span class="grow" />
        <ModePicker modes={modes} session={undefined} />
      </div>
      {reminder !== "" && (
        <p class="banner-line small-text idle-reminder">
          <Icon name="paused" small /> {reminder}
        </p>
      )}
    </section>
  );
}

/** Says once that a request is paused. The focus stays where it is. */
export function useAnnouncedState(request: RequestSummary | undefined): void {
  const words = request ? `${bannerWords(request).title}: request ${request.request}` : "";
  useEffect(() => {
    if (words !== "") announce(words);
  }, [words]);
}
