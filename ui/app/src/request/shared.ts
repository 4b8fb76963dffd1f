import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Api, Store } from "@sayso/client";

import { useApp } from "../context.js";
import { ModesModel } from "./modes-model.js";
import { RequestList } from "./request-list.js";

const models = new WeakMap<Store, { modes: ModesModel; list: RequestList }>();

/** Modes and the list of requests, the same for all views of a page. */
export function modelsOf(api: Api, store: Store): { modes: ModesModel; list: RequestList } {
  const known = models.get(store);
  if (known) return known;
  const created = { modes: new ModesModel(api), list: new RequestList(api, store) };
  models.set(store, created);
  return created;
}

const REFRESH_DELAY = 150;

/** Models that follow the engine's events while a view shows them. */
export function useModels(): { modes: ModesModel; list: RequestList } {
  const { api, store } = useApp();
  const shared = modelsOf(api, store);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer = undefined;
      void shared.list.refresh();
      void shared.modes.refresh();
    };
    refresh();
    const stop = effect(() => {
      // A new event or connection makes the lists old.
      const { state } = store.connection.value;
      if (state !== "live" || store.lastEvent.value < 0n) return;
      timer ??= setTimeout(refresh, REFRESH_DELAY);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [shared, store]);
  return shared;
}
