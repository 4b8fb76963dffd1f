import { useEffect, useRef } from "preact/hooks";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { preferences } from "../preferences.js";
import { openInboxItem } from "../session/open-item.js";

const ICON = "/favicon.svg";
const WAITING_ICON = "/favicon-waiting.svg";

/** Shows the number of waiting items in the title and the icon of the page, says it, and notifies if asked for. */
export function useWaitingMarks(): void {
  const app = useApp();
  const { store } = app;
  const inbox = store.inbox.value;
  const engine = store.engine.value;
  const workspace = engine?.workspace.split("/").at(-1) ?? "";
  const known = useRef<Set<string> | null>(null);
  const isLoaded = store.loaded.value;

  useEffect(() => {
    const count = inbox.length;
    document.title = `${count > 0 ? `(${count}) ` : ""}${workspace === "" ? "" : `${workspace} · `}sayso`;
    const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (link) link.href = count > 0 ? WAITING_ICON : ICON;
  }, [inbox, workspace]);

  useEffect(() => {
    if (!isLoaded) return;
    const before = known.current;
    const keys = new Set(inbox.map((item) => item.key));
    known.current = keys;
    if (before && keys.size !== before.size) {
      announce(keys.size === 0 ? "Nothing waits" : `${keys.size} waiting`);
    }
    if (!before || !preferences.notify.peek() || !document.hidden) return;
    for (const item of inbox) {
      if (!before.has(item.key)) notify(item.summary, () => void openInboxItem(app, item));
    }
  }, [app, inbox, isLoaded]);
}

function notify(text: string, onClick: () => void): void {
  if (typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const notification = new Notification("sayso: waiting for you", { body: text, icon: WAITING_ICON, tag: text });
  notification.onclick = () => {
    window.focus();
    onClick();
    notification.close();
  };
}

/** Turns notifications on or off. The browser asks the person the first time. */
export async function toggleNotifications(): Promise<void> {
  if (preferences.notify.peek()) {
    preferences.notify.value = false;
    return;
  }
  if (typeof Notification === "undefined") {
    announce("This browser has no notifications");
    return;
  }
  const permission = await Notification.requestPermission();
  preferences.notify.value = permission === "granted";
  announce(permission === "granted" ? "Notifications are on" : "The browser does not allow notifications");
}
