import { useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";

import { useApp } from "../context.js";
import { escapeUntrusted, escapeUntrustedLines, formatSize } from "../diff/words.js";
import { Icon } from "../icon.js";
import { Path } from "../theme/path.js";
import { ChangeCard } from "./change-card.js";
import type { ToolCall } from "./items.js";
import { JsonText } from "./json-text.js";
import { type ToolWords, toolWords } from "./tool-words.js";
import { WholeText } from "./whole-text.js";

/** A tool call. A change of files or a command is shown as a change; every other tool collapses. */
export function ToolCard({ tool, session }: { tool: ToolCall; session: string }) {
  if (tool.change !== null) return <ChangeCard change={tool.change} tool={tool} />;
  return <CollapsedTool tool={tool} session={session} />;
}

/** Verb and target of a call. */
export function ToolTitle({ words }: { words: ToolWords }) {
  return (
    <span class="line">
      <span class="verb">{escapeUntrusted(words.verb)}</span>
      {words.path !== null && <Path path={words.path} />}
      {words.target !== null && <code class="ellipsis target">{escapeUntrusted(words.target)}</code>}
      {words.detail !== null && <span class="secondary small-text numeric">{words.detail}</span>}
    </span>
  );
}

function CollapsedTool({ tool, session }: { tool: ToolCall; session: string }) {
  const { store } = useApp();
  const [isOpen, setOpen] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const { block, result } = tool;
  const words = toolWords(block.tool ?? "", block.text);
  const open = () => {
    setOpen(!isOpen);
    if (isOpen || BigInt(block.text.length) >= block.textSize) return;
    store
      .conversation(session)
      .expand(block.number)
      .catch((error: unknown) => setProblem(describeFailure(error).message));
  };
  return (
    <div class="tool-card">
      <button type="button" class="row quiet-row" aria-expanded={isOpen} onClick={open}>
        <Icon name={words.icon} />
        <ToolTitle words={words} />
        <span class="end">
          {result === null ? (
            <span class="tertiary">no result yet</span>
          ) : (
            <span class="numeric tertiary">{formatSize(Number(result.textSize))}</span>
          )}
          <Icon name={isOpen ? "down" : "right"} small class="fold-mark" />
        </span>
      </button>
      {isOpen && (
        <div class="card-box tool-details">
          {problem !== null && <p role="alert">{problem}</p>}
          <h4>Arguments</h4>
          <JsonText text={block.text} />
          <h4>Result</h4>
          {result === null ? (
            <p class="secondary">None yet.</p>
          ) : (
            <>
              <ToolResult text={result.text} />
              <WholeText block={result} session={session} />
            </>
          )}
        </div>
      )}
    </div>
  );
}

function ToolResult({ text }: { text: string }) {
  const start = text.trimStart()[0];
  if (start === "{" || start === "[") return <JsonText text={text} />;
  return <pre class="output">{escapeUntrustedLines(text)}</pre>;
}
