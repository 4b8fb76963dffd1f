import { useEffect, useRef, useState } from "preact/hooks";

import { describeFailure, isUnimplemented } from "@sayso/client";
import type { Scenario, SettingsChoices_Model } from "@sayso/client/proto/agent_service";

import { useApp } from "../context.js";

import { dialogs } from "./dialogs.js";

interface Choices {
  scenarios: Scenario[];
  models: SettingsChoices_Model[];
  scenario: string;
  model: string;
}

/** Starts a session of the built-in agent, with a scenario and a model. */
export function NewSessionDialog() {
  const { api, router } = useApp();
  const dialog = useRef<HTMLDialogElement>(null);
  const [choices, setChoices] = useState<Choices | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const isOpen = dialogs.newSession.value;
  useEffect(() => {
    if (!isOpen) return;
    dialog.current?.showModal();
    setProblem(null);
    Promise.all([api.agent.listScenarios({}), api.agent.getSettings({})]).then(
      ([{ scenarios }, { settings, choices: known }]) =>
        setChoices({
          scenarios,
          models: known?.models ?? [],
          scenario: settings?.scenario ?? "",
          model: settings?.model ?? "",
        }),
      (error: unknown) => setProblem(failureText(error)),
    );
  }, [api, isOpen]);
  if (!isOpen) return null;
  const start = async () => {
    if (!choices) return;
    try {
      const { session } = await api.agent.startSession({
        settings: { scenario: choices.scenario, model: choices.model },
      });
      dialogs.newSession.value = false;
      if (session) router.go({ view: "session", session: session.session });
    } catch (error) {
      setProblem(failureText(error));
    }
  };
  return (
    <dialog class="dialog" ref={dialog} onClose={() => (dialogs.newSession.value = false)} aria-labelledby="new-title">
      <h2 id="new-title">New session</h2>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {choices && (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void start();
          }}
        >
          <label>
            <span>Scenario</span>
            <select
              value={choices.scenario}
              onChange={(event) => setChoices({ ...choices, scenario: event.currentTarget.value })}
            >
              {choices.scenarios.map((scenario) => (
                <option key={scenario.name} value={scenario.name}>
                  {scenario.name} — {scenario.description}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span>Model</span>
            <select
              value={choices.model}
              onChange={(event) => setChoices({ ...choices, model: event.currentTarget.value })}
            >
              {choices.models.map(({ model }) => (
                <option key={model} value={model}>
                  {model}
                </option>
              ))}
            </select>
          </label>
          <div class="dialog-actions">
            <button type="submit" class="button">
              Start
            </button>
            <button type="button" class="button quiet" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </div>
        </form>
      )}
      {!choices && (
        <div class="dialog-actions">
          <button type="button" class="button quiet" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      )}
    </dialog>
  );
}

function failureText(error: unknown): string {
  if (isUnimplemented(error)) {
    return "This engine has no built-in agent. Run another one with `sayso run -- claude`.";
  }
  const { message, hint } = describeFailure(error);
  return hint === null ? message : `${message} ${hint}`;
}
