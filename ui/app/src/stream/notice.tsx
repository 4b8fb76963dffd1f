import type { Notice } from "@sayso/client";

import { useApp } from "../context.js";
import { count, escapeUntrusted } from "../diff/words.js";
import { planReversal } from "../history/reversal.js";
import { Icon } from "../icon.js";
import { parseArguments } from "./tool-words.js";

/** A notice of the engine within the stream. */
export function NoticeLine({ notice }: { notice: Notice }) {
  const { api } = useApp();
  const isWarning = notice.about === "differs" || (notice.about === "recovered" && notice.skipped.length > 0);
  return (
    <div class={`row notice${isWarning ? " warning" : ""}`}>
      <Icon name={isWarning ? "warning" : "notice"} />
      <span class="line">{escapeUntrusted(noticeText(notice))}</span>
      {notice.about === "differs" && (
        <span class="end">
          <button type="button" class="button small" onClick={() => planReversal(api, "undo", notice.change)}>
            Undo
          </button>
        </span>
      )}
    </div>
  );
}

export function noticeText(notice: Notice): string {
  switch (notice.about) {
    case "rule-added": {
      const name = parseArguments(notice.ruleJson).name;
      return `A rule for the rest of the session was added${typeof name === "string" ? `: ${name}` : ""}.`;
    }
    case "recovered": {
      const result = notice.completed ? "completed" : "rolled back";
      const skipped = notice.skipped.length === 0 ? "" : ` ${count(notice.skipped.length, "file")} left untouched.`;
      return `Change ${notice.change} was interrupted by a crash and ${result} at the next start.${skipped}`;
    }
    case "differs":
      return `The agent wrote something else than was approved in change ${notice.change}: ${notice.files.join(", ")}`;
    case "message":
      return `Message for the agent: ${notice.text}`;
    case "session-resumed":
      return "The session was resumed.";
    case "session-ended":
      return "The session ended.";
  }
}
