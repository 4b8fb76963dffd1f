import DOMPurify from "dompurify";
import { marked } from "marked";
import { useMemo } from "preact/hooks";

import { escapeUntrustedLines } from "../diff/words.js";

/** Elements that markdown needs. Images are left out: a model could send data to another host by their address. */
const ELEMENTS = [
  ...["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "em", "strong", "del"],
  ...["ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"],
];

/** HTML of a markdown text. HTML in the text itself is shown as text. */
export function renderMarkdown(text: string): string {
  const html = marked.parse(escapeUntrustedLines(text), { async: false, gfm: true, renderer: RENDERER });
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: ELEMENTS,
    ALLOWED_ATTR: ["href", "start", "align"],
    ALLOWED_URI_REGEXP: /^https?:\/\//i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

const RENDERER = new marked.Renderer();
RENDERER.html = ({ text }) => escapeHtml(text);
RENDERER.image = ({ text, href }) => escapeHtml(`![${text}](${href})`);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

// A link opens beside the app and does not learn where it was.
DOMPurify.addHook("afterSanitizeAttributes", (element) => {
  if (element.tagName !== "A") return;
  if (!element.hasAttribute("href")) return;
  element.setAttribute("target", "_blank");
  element.setAttribute("rel", "noopener noreferrer");
});

/** Text of a model as markdown. */
export function Markdown({ text }: { text: string }) {
  const html = useMemo(() => renderMarkdown(text), [text]);
  // The only HTML that the app sets, from the sanitizer above.
  // eslint-disable-next-line no-restricted-syntax
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}
