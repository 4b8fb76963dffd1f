import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Api, Store } from "@sayso/client";

import type { Router } from "./router.js";
import type { Theme } from "./theme/theme.js";

/** Objects that every view of the app shares. */
export interface AppContext {
  api: Api;
  store: Store;
  router: Router;
  theme: Theme;
}

const Context = createContext<AppContext | null>(null);

export const AppProvider = Context.Provider;

export function useApp(): AppContext {
  const app = useContext(Context);
  if (app === null) throw new Error("useApp is called outside AppProvider");
  return app;
}
