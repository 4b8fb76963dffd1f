import type { LineContent, TokenClass } from "./rows.js";

/** Run of text with one appearance. */
export interface Segment {
  text: string;
  token?: TokenClass;
  /** Differs from the line's counterpart. */
  changed: boolean;
  /** Name of the hidden character that the text stands for. */
  escaped?: string;
}

/** Splits a line at the borders of its spans. Spans of one list do not overlap. */
export function segmentsOf(content: LineContent): Segment[] {
  const { text, words, syntax, escapes } = content;
  if (words.length + syntax.length + escapes.length === 0) {
    return text === "" ? [] : [{ text, changed: false }];
  }
  const borders = new Set([0, text.length]);
  for (const span of [...words, ...syntax, ...escapes]) {
    borders.add(Math.min(span.start, text.length)).add(Math.min(span.end, text.length));
  }
  const sorted = [...borders].sort((a, b) => a - b);
  const at = cursor(words);
  const tokenAt = cursor(syntax);
  const escapeAt = cursor(escapes);
  const segments: Segment[] = [];
  for (let index = 0; index + 1 < sorted.length; index++) {
    const start = sorted[index] as number;
    const segment: Segment = { text: text.slice(start, sorted[index + 1]), changed: at(start) !== undefined };
    const token = tokenAt(start)?.token;
    const escaped = escapeAt(start)?.original;
    if (token) segment.token = token;
    if (escaped) segment.escaped = escaped;
    segments.push(segment);
  }
  return segments;
}

/** Finds the span at ascending offsets in one pass. */
function cursor<S extends { start: number; end: number }>(spans: S[]): (offset: number) => S | undefined {
  let next = 0;
  return (offset) => {
    while (next < spans.length && (spans[next] as S).end <= offset) next++;
    const span = spans[next];
    return span && span.start <= offset ? span : undefined;
  };
}

/** Converts offsets in UTF-8 bytes to offsets in UTF-16 code units. The offsets lie between characters. */
export function utf16Offsets(text: string): (byte: number) => number {
  if (isAscii(text)) return (byte) => Math.min(byte, text.length);
  const starts: number[] = [];
  let unit = 0;
  for (const character of text) {
    const length = utf8Length(character.codePointAt(0) ?? 0);
    for (let byte = 0; byte < length; byte++) starts.push(unit);
    unit += character.length;
  }
  return (byte) => (byte < starts.length ? (starts[byte] as number) : text.length);
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) > 0x7f) return false;
  }
  return true;
}

function utf8Length(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
