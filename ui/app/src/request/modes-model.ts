import { signal, type ReadonlySignal } from "@preact/signals";

import { describeFailure, isDecisionForbidden, isUnimplemented, type Api } from "@sayso/client";
import type { ModeState, OverrideScope, RequestMode } from "@sayso/client/proto/request";
import type { GetModesResponse, HeldRequests, SetModeResponse } from "@sayso/client/proto/request_service";

/** Modes of all sessions, and the default mode. */
export class ModesModel {
  readonly #api: Api;
  readonly #modes = signal<GetModesResponse | null>(null);
  readonly #problem = signal<string | null>(null);
  readonly #isDisabled = signal(false);

  constructor(api: Api) {
    this.#api = api;
  }

  get modes(): ReadonlySignal<GetModesResponse | null> {
    return this.#modes;
  }
  get problem(): ReadonlySignal<string | null> {
    return this.#problem;
  }
  /** The engine has no request editor. */
  get isDisabled(): ReadonlySignal<boolean> {
    return this.#isDisabled;
  }

  /** State of a session, or the default state. */
  stateOf(session: string | undefined): ModeState | undefined {
    const modes = this.#modes.value;
    return modes?.sessions.find((item) => item.session === session)?.state ?? modes?.defaultState;
  }

  async refresh(): Promise<void> {
    await this.#run(async () => {
      this.#modes.value = await this.#api.requests.getModes({});
    });
  }

  async setMode(
    session: string | undefined,
    mode: RequestMode,
    heldRequests: HeldRequests,
  ): Promise<SetModeResponse | null> {
    return this.#act(() => this.#api.requests.setMode({ ...sessionField(session), mode, heldRequests }));
  }

  async pauseNext(session: string | undefined): Promise<boolean> {
    return (await this.#act(() => this.#api.requests.pauseNext(sessionField(session)))) !== null;
  }

  async captureNext(session: string | undefined): Promise<boolean> {
    return (await this.#act(() => this.#api.requests.captureNext(sessionField(session)))) !== null;
  }

  async removeOverrides(scope: OverrideScope, session: string | undefined): Promise<bigint | null> {
    const answer = await this.#act(() => this.#api.requests.removeOverrides({ scope, ...sessionField(session) }));
    return answer?.removed ?? null;
  }

  async #act<Answer>(call: () => Promise<Answer>): Promise<Answer | null> {
    const answer = await this.#run(call);
    await this.refresh();
    return answer;
  }

  async #run<Answer>(call: () => Promise<Answer>): Promise<Answer | null> {
    try {
      const answer = await call();
      this.#problem.value = null;
      return answer;
    } catch (error) {
      if (isUnimplemented(error)) this.#isDisabled.value = true;
      else if (!isDecisionForbidden(error)) this.#problem.value = describeFailure(error).message;
      return null;
    }
  }
}

const sessionField = (session: string | undefined): { session?: string } => (session === undefined ? {} : { session });
