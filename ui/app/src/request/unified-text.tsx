import { escapeUntrustedLines } from "../diff/words.js";

/** A unified diff as the engine printed it, with signs and colours by line. */
export function UnifiedText({ text }: { text: string }) {
  const lines = text.split("\n").filter((line, index, all) => index < all.length - 1 || line !== "");
  return (
    <pre class="unified-text">
      {lines.map((line, index) => (
        <span key={index} class={lineClass(line)}>
          {escapeUntrustedLines(line)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

function lineClass(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---")) return "line-head";
  if (line.startsWith("@@")) return "line-hunk";
  if (line.startsWith("+")) return "line-added";
  return line.startsWith("-") ? "line-removed" : "";
}
