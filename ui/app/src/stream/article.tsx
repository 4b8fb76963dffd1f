import type { ComponentChildren } from "preact";

import { ChangeCard } from "./change-card.js";
import type { StreamItem } from "./items.js";
import { LiveCard } from "./live-card.js";
import { NoticeLine } from "./notice.js";
import { PromptCard } from "./prompt-card.js";
import { RequestLine } from "./request-line.js";
import { ThinkingCard } from "./thinking-card.js";
import { ToolCard } from "./tool-card.js";
import { TurnEnd } from "./turn-end.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { Markdown } from "../parts.js";

const NAMES: Record<StreamItem["kind"], string> = {
  prompt: "Prompt",
  context: "Context",
  thinking: "Thinking",
  text: "Assistant",
  attachment: "Attachment",
  compaction: "Compaction",
  tool: "Tool call",
  change: "Change",
  request: "Request",
  "turn-end": "End of turn",
  notice: "Notice",
  live: "Assistant, in progress",
};

/** One article of the feed. */
export function StreamArticle(props: { item: StreamItem; session: string; position: number; total: number }) {
  const { item, position, total } = props;
  return (
    <article
      class={`article ${item.kind}-article`}
      aria-label={NAMES[item.kind]}
      aria-posinset={position}
      aria-setsize={total}
      tabIndex={-1}
    >
      {content(item, props.session)}
    </article>
  );
}

function content(item: StreamItem, session: string): ComponentChildren {
  switch (item.kind) {
    case "prompt":
      return <PromptCard block={item.block} session={session} />;
    case "context":
    case "thinking":
      return <ThinkingCard block={item.block} session={session} />;
    case "text":
      return (
        <div class="assistant">
          <Markdown text={item.block.text} />
        </div>
      );
    case "attachment":
      return (
        <div class="row">
          <Icon name={/image|\.(png|jpe?g|gif|webp)$/i.test(item.block.text) ? "image" : "file"} />
          <span class="line secondary">{escapeUntrusted(item.block.text)}</span>
        </div>
      );
    case "compaction":
      return <p class="stream-note">The agent replaced the earlier conversation by a summary.</p>;
    case "tool":
      return <ToolCard tool={item.tool} session={session} />;
    case "change":
      return <ChangeCard change={item.change} tool={null} />;
    case "request":
      return <RequestLine request={item.request} />;
    case "turn-end":
      return <TurnEnd item={item} session={session} />;
    case "notice":
      return <NoticeLine notice={item.notice} />;
    case "live":
      return <LiveCard part={item.part} />;
  }
}
