import type { LivePart } from "@sayso/client";

import { escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";
import { CommandOutput } from "./change-card.js";
import { Markdown } from "../parts.js";
import { toolWords } from "./tool-words.js";
import { ToolTitle } from "./tool-card.js";
import { formatElapsed } from "../times.js";

/** A part of the response while the agent writes it. */
export function LiveCard({ part }: { part: LivePart }) {
  switch (part.kind) {
    case "text":
      return (
        <div class="assistant">
          <Markdown text={part.text} />
        </div>
      );
    case "thinking":
      return (
        <div class="thinking-text live-thinking">
          <p class="preserved">{escapeUntrustedLines(part.text.slice(-2_000))}</p>
        </div>
      );
    case "tool": {
      const words = toolWords(part.tool, part.argumentsJson);
      return (
        <div class="tool-card">
          <div class="row">
            <Icon name={words.icon} />
            {part.summary === "" ? (
              <ToolTitle words={words} />
            ) : (
              <span class="line">{escapeUntrusted(part.summary)}</span>
            )}
            <span class="end">
              {part.result === null ? (
                <span class="state running">
                  <Icon name="running" small />
                  running
                </span>
              ) : (
                <span class={`state ${part.result.isError ? "failed" : "applied"}`}>
                  <Icon name={part.result.isError ? "failed" : "applied"} small />
                  {part.result.isError ? "failed" : "done"}
                </span>
              )}
              {part.result && <span class="numeric">{formatElapsed(Number(part.result.durationMs))}</span>}
            </span>
          </div>
          {part.output !== "" && (
            <div class="card-body">
              <CommandOutput text={part.output} />
            </div>
          )}
        </div>
      );
    }
  }
}
