/** Conversion of a decision to the engine's messages. */

import type { MessageInitShape } from "@bufbuild/protobuf";

import {
  Comment_Side,
  RememberAs_Scope,
  Ruling,
  type Surface_Kind,
  type AnswerSchema,
  type FileAnswerSchema,
} from "@sayso/client/proto/change";
import type { DecideRequestSchema } from "@sayso/client/proto/review_service";

import type { Answer, Decision, FileAnswer, RuleScope } from "./model.js";

export const SCOPES: Record<RuleScope, RememberAs_Scope> = {
  session: RememberAs_Scope.SESSION,
  always: RememberAs_Scope.ALWAYS,
};

export function requestOf(
  decision: Decision,
  surface: { readonly kind: Surface_Kind; readonly name: string },
): MessageInitShape<typeof DecideRequestSchema> {
  return {
    change: BigInt(decision.change),
    verdict: {
      previewHash: decision.previewHash,
      answer: answerOf(decision.answer),
      comments: decision.comments.map(({ path, line, side, text }) => ({
        path,
        line: BigInt(line),
        side: side === "proposed" ? Comment_Side.PROPOSED : Comment_Side.CURRENT,
        text,
      })),
      ...(decision.message !== undefined && { message: decision.message }),
    },
    surface: { kind: surface.kind, name: surface.name },
    ...(decision.remember && { rememberAs: { scope: SCOPES[decision.remember.scope], ruling: Ruling.ALLOW } }),
  };
}

function answerOf(answer: Answer): MessageInitShape<typeof AnswerSchema> {
  switch (answer.kind) {
    case "approve":
      return { answer: { case: "approve", value: {} } };
    case "deny":
      return { answer: { case: "deny", value: answer.reason === undefined ? {} : { reason: answer.reason } } };
    case "command":
      return { answer: { case: "command", value: answer.command } };
    case "arguments":
      return { answer: { case: "argumentsJson", value: answer.json } };
    case "files": {
      const files = Object.fromEntries(Object.entries(answer.files).map(([path, file]) => [path, fileAnswerOf(file)]));
      const reason = answer.reason === undefined ? {} : { reason: answer.reason };
      return { answer: { case: "files", value: { files, ...reason } } };
    }
  }
}

function fileAnswerOf(answer: FileAnswer): MessageInitShape<typeof FileAnswerSchema> {
  switch (answer.kind) {
    case "approve":
      return { answer: { case: "approve", value: {} } };
    case "deny":
      return { answer: { case: "deny", value: {} } };
    case "hunks":
      return { answer: { case: "hunks", value: { hunks: answer.hunks } } };
    case "editedText":
      return { answer: { case: "editedText", value: answer.text } };
  }
}
