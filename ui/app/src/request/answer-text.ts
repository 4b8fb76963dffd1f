/** Text of a response for display: of JSON or of a stream of events, in the formats of the known APIs. Other text is kept. */
export function answerText(body: string): string {
  if (/^\s*(?:event|data|id|retry)?:/m.test(body.slice(0, 200))) {
    const parts: string[] = [];
    for (const line of body.split("\n")) {
      if (!line.startsWith("data:")) continue;
      const event = parse(line.slice(5));
      if (event !== undefined) parts.push(deltaText(event));
    }
    const text = parts.join("");
    if (text !== "") return text;
  }
  const value = parse(body);
  if (value === undefined) return body;
  const text = wholeText(value);
  return text === "" ? `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`` : text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const field = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Text that an event of a stream adds. */
function deltaText(event: unknown): string {
  const delta = field(event, "delta");
  if (typeof delta === "string") return field(event, "type") === "response.output_text.delta" ? delta : "";
  const anthropic = text(field(delta, "text"));
  if (anthropic !== "") return anthropic;
  const chat = list(field(event, "choices")).map((choice) => text(field(field(choice, "delta"), "content")));
  const gemini = list(field(event, "candidates")).flatMap((candidate) =>
    list(field(field(candidate, "content"), "parts")).map((part) => text(field(part, "text"))),
  );
  return [...chat, ...gemini].join("");
}

/** Text and tool calls of a complete response. */
function wholeText(value: unknown): string {
  const parts: string[] = [];
  for (const part of list(field(value, "content"))) parts.push(partText(part));
  for (const choice of list(field(value, "choices"))) parts.push(text(field(field(choice, "message"), "content")));
  for (const item of list(field(value, "output"))) parts.push(...list(field(item, "content")).map(partText));
  for (const candidate of list(field(value, "candidates"))) {
    parts.push(...list(field(field(candidate, "content"), "parts")).map(partText));
  }
  const error = field(value, "error");
  if (error !== undefined) parts.push(text(field(error, "message")));
  return parts.filter((part) => part !== "").join("\n\n");
}

function partText(part: unknown): string {
  const name = text(field(part, "name"));
  if (name !== "") return `\`${name}\` ${JSON.stringify(field(part, "input") ?? field(part, "args") ?? {})}`;
  return text(field(part, "text")) || text(field(part, "thinking"));
}
