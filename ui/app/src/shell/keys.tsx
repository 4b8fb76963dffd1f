import { useEffect } from "preact/hooks";

import { useApp } from "../context.js";
import { preferences } from "../preferences.js";
import { dialogs } from "./dialogs.js";
import { tabRoute } from "./top-bar.js";

/** Keys of the shell. Views handle theirs first and prevent the default. */
export function useShortcuts(): void {
  const app = useApp();
  useEffect(() => {
    let escapedAt = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      if (event.key === "Escape") {
        // Twice within a second interrupts the turn.
        if (event.timeStamp - escapedAt < 1_000) interrupt(app);
        escapedAt = event.timeStamp;
        return;
      }
      if (handleKey(event.key, app)) event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [app]);
}

/** `true` if the key is text for a field, or belongs to a control. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function interrupt({ api, router, store }: ReturnType<typeof useApp>): void {
  const { route } = router.location.peek();
  if (route.view !== "session" || !store.builtIn.peek().has(route.session)) return;
  api.agent.interrupt({ session: route.session }).catch(() => undefined);
}

function handleKey(key: string, app: ReturnType<typeof useApp>): boolean {
  const { router } = app;
  const tab = tabRoute(key, app);
  if (tab) {
    router.go(tab);
    return true;
  }
  const stream = document.querySelector<HTMLElement>(".view .stream, .view > *");
  switch (key) {
    case "?":
      dialogs.keys.value = true;
      return true;
    case "/":
      return focus("[data-search]");
    case "q":
      if (!router.location.peek().drawer) return false;
      router.show(null);
      return true;
    case "t":
      preferences.showThinking.value = !preferences.showThinking.peek();
      return true;
    case "i":
      return focus(".composer textarea");
    case "p":
      return click("[data-pause-next]");
    case "j":
      return moveArticle(1);
    case "k":
      return moveArticle(-1);
    case "g":
      stream?.scrollTo({ top: 0 });
      return true;
    case "G":
      stream?.scrollTo({ top: stream.scrollHeight });
      return true;
    default:
      return false;
  }
}

function focus(selector: string): boolean {
  const element = document.querySelector<HTMLElement>(selector);
  element?.focus();
  return element !== null;
}

function click(selector: string): boolean {
  const element = document.querySelector<HTMLElement>(selector);
  element?.click();
  return element !== null;
}

/** Moves the focus to the next or previous article of the feed. */
function moveArticle(step: 1 | -1): boolean {
  const articles = [...document.querySelectorAll<HTMLElement>(".stream article")];
  if (articles.length === 0) return false;
  const at = articles.findIndex((article) => article.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : articles.length - 1) : at + step;
  const target = articles[Math.min(articles.length - 1, Math.max(0, next))];
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
  return true;
}
