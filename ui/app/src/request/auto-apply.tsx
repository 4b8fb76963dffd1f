import { OverrideScope } from "@sayso/client/proto/request";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { count } from "../diff/words.js";
import { clockTime } from "../times.js";
import { autoApplyState } from "./banner-state.js";
import { Menu } from "./menu.js";
import type { ModesModel } from "./modes-model.js";
import { scopeWord } from "./words.js";

/** State and actions of auto-apply, below the banner. */
export function AutoApplyBanner(props: {
  modes: ModesModel;
  session: string | undefined;
  /** Saves the edits of the paused request. Absent without edits. */
  onSave?: (scope: OverrideScope) => void;
}) {
  const { modes, session, onSave } = props;
  const { store } = useApp();
  const all = modes.modes.value;
  const state = autoApplyState(modes.stateOf(session), all?.previewLimit, clockTime);
  if (!state || !all) return null;
  const scope = all.captureScope;
  const isOff = !store.canDecide.value;
  const remove = async () => {
    const removed = await modes.removeOverrides(scope, scope === OverrideScope.SESSION ? session : undefined);
    if (removed !== null) announce(`${count(Number(removed), "saved edit")} removed`);
  };
  return (
    <section class="auto-apply" aria-label="Auto-apply edits">
      <b>
        Auto-apply edits<span class="dot">·</span>
        {scopeWord(scope)}
      </b>
      <span class="secondary" aria-live="polite">
        {state.subtitle}
      </span>
      <span class="grow" />
      {state.canCapture && (
        <button
          type="button"
          class="button small"
          disabled={isOff}
          onClick={() => void modes.captureNext(session).then((done) => done && announce("Capturing the next turn"))}
        >
          Capture new edits
        </button>
      )}
      {state.canRemove && (
        <button type="button" class="button quiet small" disabled={isOff} onClick={() => void remove()}>
          Remove saved edits
        </button>
      )}
      {onSave && (
        <Menu
          label="Where to save edits"
          class="quiet small"
          disabled={isOff}
          items={[OverrideScope.SESSION, OverrideScope.WORKSPACE, OverrideScope.GLOBAL].map((choice) => ({
            label: scopeWord(choice),
            note: SCOPE_NOTES[choice] ?? "",
            onSelect: () => onSave(choice),
          }))}
        />
      )}
      <span class="secondary sections-to-capture" title="Set by preview_limit under [request] in sayso.toml">
        Sections to capture <b class="numeric">{all.previewLimit === undefined ? "all" : String(all.previewLimit)}</b>
      </span>
    </section>
  );
}

const SCOPE_NOTES: Partial<Record<OverrideScope, string>> = {
  [OverrideScope.SESSION]: "this conversation only",
  [OverrideScope.WORKSPACE]: "all conversations here",
  [OverrideScope.GLOBAL]: "all workspaces",
};
