import {
  InlineCard_Line_Type as LineType,
  type FileRecord,
  type InlineCard as ProtoCard,
} from "@sayso/client/proto/file";

import { useApp } from "../context.js";
import { sideOf } from "./fromProtocol.js";
import { InlineBox, type InlineFile } from "./inlineBox.js";
import type { InlineLine, InlineLines } from "./inlineCard.js";

export interface InlineDiffProps {
  change: bigint;
  onViewDiff: () => void;
  onUndo?: () => void;
}

/** Inline diffs of all files of a change, with their actions. */
export function InlineDiff({ change: number, onViewDiff, onUndo }: InlineDiffProps) {
  const change = useApp().store.change(number).value;
  if (change === undefined || change.files.length === 0) return null;
  return <InlineBox files={change.files.map(fileOf)} onViewDiff={onViewDiff} onUndo={onUndo} />;
}

function fileOf(record: FileRecord): InlineFile {
  const { path, card } = record;
  const fact = card === undefined ? factOf(record) : undefined;
  return {
    path,
    added: Number(record.added),
    removed: Number(record.removed),
    ...(card && { card: linesOf(card) }),
    ...(fact !== undefined && { fact }),
  };
}

const TYPES: Record<LineType, InlineLine["type"]> = {
  [LineType.UNSPECIFIED]: "context",
  [LineType.ADD]: "add",
  [LineType.REMOVE]: "remove",
  [LineType.CONTEXT]: "context",
};

function linesOf(card: ProtoCard): InlineLines {
  return {
    lines: card.lines.map(({ type, text }) => ({ type: TYPES[type], text })),
    truncated: card.truncated,
    totalLines: Number(card.totalLines),
  };
}

/** Sentence for a file without lines. */
function factOf(record: FileRecord): string {
  const before = sideOf(record.before);
  const after = sideOf(record.after);
  if (record.problem) return record.problem.text;
  if (before.kind === "file" && after.kind === "file" && before.hash === after.hash) {
    return before.mode === after.mode ? "(no changes)" : "Only the mode changes.";
  }
  if (record.added + record.removed > 0n) return "View diff shows the lines.";
  return "No lines to show: binary or empty content.";
}
