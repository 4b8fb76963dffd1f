import { describe, expect, it } from "vitest";

import type { LineContent } from "../../src/diff/rows.js";
import { segmentsOf, utf16Offsets } from "../../src/diff/segments.js";

const content = (text: string, more: Partial<LineContent> = {}): LineContent => ({
  text,
  words: [],
  syntax: [],
  escapes: [],
  terminator: "lf",
  ...more,
});

describe("segments", () => {
  it("text_without_spans_is_one_segment", () => {
    expect(segmentsOf(content("let a;"))).toEqual([{ text: "let a;", changed: false }]);
    expect(segmentsOf(content(""))).toEqual([]);
  });

  it("overlapping_spans_split_at_all_borders", () => {
    const segments = segmentsOf(
      content("let value = 1;", {
        words: [{ start: 4, end: 11 }],
        syntax: [
          { start: 0, end: 3, token: "keyword" },
          { start: 8, end: 13, token: "number" },
        ],
        escapes: [{ start: 12, end: 13, original: "U+200B" }],
      }),
    );
    expect(segments).toEqual([
      { text: "let", changed: false, token: "keyword" },
      { text: " ", changed: false },
      { text: "valu", changed: true },
      { text: "e =", changed: true, token: "number" },
      { text: " ", changed: false, token: "number" },
      { text: "1", changed: false, token: "number", escaped: "U+200B" },
      { text: ";", changed: false },
    ]);
  });

  it("segments_join_to_the_text", () => {
    for (let seed = 0; seed < 200; seed++) {
      const text = "añb😀c\u{202e}d".slice(0, 1 + (seed % 9));
      const start = seed % 5;
      const line = content(text, { words: [{ start, end: start + 3 }] });
      const joined = segmentsOf(line).map((segment) => segment.text);
      expect(joined.join("")).toBe(text);
    }
  });

  it("span_behind_the_text_is_cut", () => {
    expect(segmentsOf(content("ab", { words: [{ start: 1, end: 99 }] }))).toEqual([
      { text: "a", changed: false },
      { text: "b", changed: true },
    ]);
  });

  it("byte_offsets_convert_to_code_units", () => {
    const at = utf16Offsets("aé😀z");
    expect([0, 1, 3, 7, 8, 99].map(at)).toEqual([0, 1, 2, 4, 5, 5]);
    expect([0, 3, 9].map(utf16Offsets("abc"))).toEqual([0, 3, 3]);
  });
});
