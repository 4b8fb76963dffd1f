import type { ConversationBlock } from "@sayso/client/proto/conversation_service";

import { escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";
import { clockTime, fullTime } from "../times.js";
import { WholeText } from "./whole-text.js";

/** A prompt of the user, as text. */
export function PromptCard({ block, session }: { block: ConversationBlock; session: string }) {
  return (
    <div class="prompt">
      <Icon name="person" />
      <div>
        <p class="preserved">{escapeUntrustedLines(block.text)}</p>
        <WholeText block={block} session={session} />
      </div>
      <time title={fullTime(block.timeMs)}>{clockTime(block.timeMs)}</time>
    </div>
  );
}
