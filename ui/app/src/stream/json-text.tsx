import type { ComponentChildren } from "preact";

import { escapeUntrustedLines } from "../diff/words.js";

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Longer texts are shown without colours. */
const MAX_COLOURED = 50_000;

/** JSON with coloured keys and values, indented. Text that is no JSON is shown as it is. */
export function JsonText({ text }: { text: string }) {
  const shown = escapeUntrustedLines(indent(text));
  return <pre class="json">{shown.length > MAX_COLOURED ? shown : colour(shown)}</pre>;
}

function indent(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function colour(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, string, colon] = match;
    parts.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (string === undefined) parts.push(<span class="json-number">{whole}</span>);
    else if (colon === undefined) parts.push(<span class="json-string">{string}</span>);
    else parts.push(<span class="json-key">{string}</span>, colon);
  }
  parts.push(text.slice(end));
  return parts;
}
