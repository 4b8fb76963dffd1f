import { useEffect, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import type { SessionSettings, SettingsChoices } from "@sayso/client/proto/agent_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";

/** Scenario and model of a session. A choice shows at once, and goes back if the engine rejects it. */
export function SettingsPickers({ session }: { session: string }) {
  const { api, store } = useApp();
  const live = store.agent(session);
  const [choices, setChoices] = useState<SettingsChoices | null>(null);
  const [pending, setPending] = useState<SessionSettings | null>(null);
  const settings = pending ?? live.settings.value;
  useEffect(() => {
    api.agent.getSettings({ session }).then(
      (answer) => setChoices(answer.choices ?? null),
      () => setChoices(null),
    );
  }, [api, session]);
  if (!settings) return null;
  const set = async (patch: { model?: string; scenario?: string }) => {
    setPending({ ...settings, ...patch });
    try {
      await api.agent.setSettings({ session, settings: patch });
    } catch (error) {
      announce(describeFailure(error).message);
      setPending(null);
    }
  };
  const models = [...new Set([settings.model, ...(choices?.models.map(({ model }) => model) ?? [])])];
  const scenarios = [...new Set([settings.scenario, ...(choices?.scenarios ?? [])])];
  return (
    <>
      <Picker
        name="Scenario"
        value={settings.scenario}
        values={scenarios}
        onChange={(scenario) => void set({ scenario })}
      />
      <Picker name="Model" value={settings.model} values={models} onChange={(model) => void set({ model })} />
    </>
  );
}

function Picker(props: { name: string; value: string; values: string[]; onChange: (value: string) => void }) {
  const { store } = useApp();
  return (
    <label class="mode-picker">
      <span class="visually-hidden">{props.name}</span>
      <select
        value={props.value}
        disabled={!store.canDecide.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        {props.values.map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}
