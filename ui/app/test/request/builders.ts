import { create, type MessageInitShape } from "@bufbuild/protobuf";

import {
  RequestStatus,
  RequestSummarySchema,
  Section_ContentKind,
  Section_Editable,
  Section_Kind,
  Section_NodeType,
  SectionSchema,
  type RequestSummary,
  type Section,
} from "@sayso/client/proto/request";

type Fields = Exclude<MessageInitShape<typeof SectionSchema>, Section>;

/** A section with the defaults of an editable text. */
export function section(id: string, fields: Fields = {}): Section {
  return create(SectionSchema, {
    id,
    node: Section_NodeType.MESSAGE,
    kind: Section_Kind.USER,
    label: id,
    rawPath: id,
    contentKind: Section_ContentKind.TEXT,
    editable: Section_Editable.YES,
    deletable: true,
    tokens: { count: 10n },
    share: 0.1,
    ...fields,
  });
}

export function part(id: string, parent: string, fields: Fields = {}): Section {
  return section(id, { parent, node: Section_NodeType.CONTENT_PART, ...fields });
}

export function summary(request: bigint, fields: MessageInitShape<typeof RequestSummarySchema> = {}): RequestSummary {
  return create(RequestSummarySchema, {
    request,
    timeMs: 1_795_064_373_540n + request,
    status: RequestStatus.ANSWERED,
    conversation: "claude · sonnet · …4e04",
    ...fields,
  });
}

/** Sections of a conversation: instructions, a question, a tool call, its result, and an answer. */
export function conversation(): Section[] {
  return [
    section("system", { kind: Section_Kind.SYSTEM, content: "You are a coding agent.", rawPath: "system[0]" }),
    section("ask", { rawPath: "messages[0]", contentKind: Section_ContentKind.OTHER, content: "{" }),
    part("ask.0", "ask", {
      kind: Section_Kind.CONTEXT,
      content: "<system-reminder>\nContents of /work/AGENTS.md:\nBe brief.",
      rawPath: "messages[0].content[0]",
    }),
    part("ask.1", "ask", { content: "Add a **flag**.", rawPath: "messages[0].content[1]" }),
    section("call", { kind: Section_Kind.ASSISTANT, rawPath: "messages[1]", contentKind: Section_ContentKind.OTHER }),
    part("call.0", "call", { kind: Section_Kind.ASSISTANT, content: "I search.", rawPath: "messages[1].content[0]" }),
    part("call.1", "call", {
      node: Section_NodeType.TOOL_CALL,
      kind: Section_Kind.TOOL,
      rawPath: "messages[1].content[1]",
      contentKind: Section_ContentKind.OTHER,
      tool: { id: "toolu_1", name: "Grep", arguments: '{"pattern":"println!"}' },
    }),
    section("result", { kind: Section_Kind.TOOL, rawPath: "messages[2]", contentKind: Section_ContentKind.OTHER }),
    part("result.0", "result", {
      kind: Section_Kind.TOOL,
      content: "214 matches",
      contentSize: 9_000n,
      rawPath: "messages[2].content[0]",
      tool: { id: "toolu_1", name: "Grep" },
    }),
    section("more", { rawPath: "messages[3]", contentKind: Section_ContentKind.OTHER }),
    part("more.0", "more", { content: "Keep the order.", rawPath: "messages[3].content[0]" }),
    section("bash", {
      node: Section_NodeType.TOOL_SCHEMA,
      kind: Section_Kind.TOOL,
      rawPath: "tools[0]",
      collapsed: true,
    }),
    section("temperature", {
      node: Section_NodeType.REQUEST_OPTION,
      kind: Section_Kind.OTHER,
      content: "1",
      rawPath: "temperature",
      label: "temperature",
      collapsed: true,
    }),
  ];
}
