import "./inline.css";

export interface InlineLine {
  type: "add" | "remove" | "context";
  text: string;
}

/** First lines of a file's diff. The engine computes them. */
export interface InlineLines {
  lines: InlineLine[];
  truncated: boolean;
  totalLines: number;
}

const PREFIXES: Record<InlineLine["type"], string> = { add: "+ ", remove: "- ", context: "  " };

/** Inline diff of seed `000…`. It never expands. Nothing is drawn without lines. */
export function InlineCard({ diff }: { diff: InlineLines | undefined }) {
  if (diff === undefined || diff.lines.length === 0) return null;
  return (
    <div class="inline-diff">
      {diff.lines.map((line, index) => (
        <div key={index} class={`diff-line diff-${line.type}`}>
          {PREFIXES[line.type] + line.text}
        </div>
      ))}
      {diff.truncated && <div class="diff-truncated">{`... ${diff.totalLines - diff.lines.length} more lines`}</div>}
    </div>
  );
}
