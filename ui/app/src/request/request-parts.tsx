import { useApp } from "../context.js";
import type { RequestsPart } from "../router.js";
import "./request-parts.css";

const PARTS: readonly (readonly [RequestsPart, string])[] = [
  ["editor", "Editor"],
  ["log", "Log"],
  ["cost", "Cost"],
  ["subagents", "Subagents"],
];

/** Switches between the editor, the log, the cost and the monitor of subagents. */
export function RequestParts({ class: extra }: { class?: string }) {
  const { router } = useApp();
  const { route } = router.location.value;
  if (route.view !== "requests" && route.view !== "request") return null;
  const present = route.view === "request" ? "editor" : (route.part ?? "editor");
  return (
    <nav class={`segments request-parts ${extra ?? ""}`} aria-label="Parts of Requests">
      {PARTS.map(([part, name]) => {
        const target = part === "editor" ? ({ view: "requests" } as const) : ({ view: "requests", part } as const);
        return (
          <a
            key={part}
            href={router.href(target)}
            aria-current={present === part ? "page" : undefined}
            onClick={(event) => {
              event.preventDefault();
              if (present !== part) router.go(target);
            }}
          >
            {name}
          </a>
        );
      })}
    </nav>
  );
}
