import { signal } from "@preact/signals";

/** Dialogs that are open. */
export const dialogs = { keys: signal(false), newSession: signal(false) };
