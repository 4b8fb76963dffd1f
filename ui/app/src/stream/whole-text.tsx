import { useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import type { ConversationBlock } from "@sayso/client/proto/conversation_service";

import { useApp } from "../context.js";
import { formatSize } from "../diff/words.js";

/** Button that loads the rest of a shortened block. Absent if the block is whole. */
export function WholeText({ block, session }: { block: ConversationBlock; session: string }) {
  const { store } = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const shown = new TextEncoder().encode(block.text).length;
  if (BigInt(shown) >= block.textSize) return null;
  const load = () => {
    store
      .conversation(session)
      .expand(block.number)
      .catch((error: unknown) => setProblem(describeFailure(error).message));
  };
  return (
    <p class="secondary small-text">
      {formatSize(shown)} of {formatSize(Number(block.textSize))} shown.{" "}
      <button type="button" class="button link" onClick={load}>
        Show all
      </button>
      {problem !== null && <span role="alert"> {problem}</span>}
    </p>
  );
}
