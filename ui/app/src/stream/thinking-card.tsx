import { useState } from "preact/hooks";

import { ConversationBlock_Kind, type ConversationBlock } from "@sayso/client/proto/conversation_service";

import { escapeUntrustedLines, formatSize } from "../diff/words.js";
import { Icon } from "../icon.js";
import { WholeText } from "./whole-text.js";

/** Thinking of the model, or text that the agent added to a prompt. Collapsed at first. */
export function ThinkingCard({ block, session }: { block: ConversationBlock; session: string }) {
  const [isOpen, setOpen] = useState(false);
  const name = block.kind === ConversationBlock_Kind.THINKING ? "Thinking" : "Added by the agent";
  return (
    <div class="thinking-card">
      <button type="button" class="row quiet-row" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} />
        <span class="line secondary">{name}</span>
        <span class="end">
          <span class="numeric">{formatSize(Number(block.textSize))}</span>
        </span>
      </button>
      {isOpen && (
        <div class="thinking-text">
          <p class="preserved">{escapeUntrustedLines(block.text)}</p>
          <WholeText block={block} session={session} />
        </div>
      )}
    </div>
  );
}
