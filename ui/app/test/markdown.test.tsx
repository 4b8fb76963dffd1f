import { expect, test } from "vitest";

import { renderMarkdown } from "../src/stream/markdown.js";

function parse(text: string): HTMLElement {
  const element = document.createElement("div");
  // eslint-disable-next-line no-restricted-syntax
  element.innerHTML = renderMarkdown(text);
  return element;
}

test.each([
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg onload=alert(1)></svg>",
  "<iframe src=https://example.com></iframe>",
  '<a href="javascript:alert(1)">x</a>',
  "[x](javascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "![x](https://example.com/leak?secret)",
  '<div style="position:fixed">x</div>',
  "<details open ontoggle=alert(1)>",
  "`</code><script>alert(1)</script>`",
  "```html\n</code></pre><img src=x onerror=alert(1)>\n```",
  "[x]: javascript:alert(1)\n\n[x]",
  "<math><mtext><style><img src=x onerror=alert(1)>",
])("hostile_markdown_has_no_active_content: %s", (text) => {
  const element = parse(text);
  expect(
    element.querySelector("script, img, svg, iframe, object, embed, style, form, input, details, math"),
  ).toBeNull();
  for (const node of element.querySelectorAll("*")) {
    for (const { name, value } of node.attributes) {
      expect(name).not.toMatch(/^on|^style$/);
      expect(value).not.toMatch(/^\s*(javascript|data):/i);
    }
  }
});

test("html_of_model_is_shown_as_text", () => {
  expect(parse("Use <b>bold</b> here").textContent).toContain("<b>bold</b>");
});

test("invisible_characters_are_escaped", () => {
  expect(parse("pay\u202Eload\u200B").textContent).toContain("pay\\u{202e}load\\u{200b}");
});

test("lists_code_and_links_are_rendered", () => {
  const element = parse("1. `a`\n2. [b](https://example.com)\n\n```\ncode\n```");
  expect(element.querySelectorAll("li")).toHaveLength(2);
  expect(element.querySelector("pre code")?.textContent).toBe("code\n");
  expect(element.querySelector("a")?.getAttribute("rel")).toBe("noopener noreferrer");
});
