/** Conversion of the engine's messages to a change under review. */

import {
  Change_Status,
  CommandPreview_Syntax_Result as SyntaxResult,
  Surface_Kind,
  type Change,
  type CommandPreview,
  type Subject,
  type Surface,
  type ToolPreview,
} from "@sayso/client/proto/change";
import { FileRecord_AppliedPart } from "@sayso/client/proto/file";
import type { AttachedSurface, InboxItem, SuggestRuleResponse } from "@sayso/client/proto/inbox";
import {
  DryRunResponse_End as End,
  type DryRunResponse,
  type GetDiffResponse,
} from "@sayso/client/proto/review_service";

import { fileOf, noteOf, severityOf } from "../diff/fromProtocol.js";
import { utf16Offsets } from "../diff/segments.js";
import type { Note } from "../diff/rows.js";
import type {
  CommandView,
  DryRunResult,
  Review,
  Reviewer,
  RuleSuggestion,
  Settled,
  SettledStatus,
  SubjectView,
  ToolView,
} from "./model.js";

/** Joins the change, its list of files and its inbox item. */
export function reviewOf(change: Change, diff: GetDiffResponse | undefined, item: InboxItem | undefined): Review {
  const records = new Map(change.files.map((record) => [record.path, record]));
  const files = (diff?.files ?? []).map((file) => {
    const record = records.get(file.path);
    return {
      ...fileOf(file),
      notes: (record?.notes ?? []).map(noteOf),
      ...(record?.settled === true && { settled: true }),
    };
  });
  const { origin, cause, ruling } = change;
  const kind = cause?.cause;
  return {
    change: Number(change.change),
    previewHash: diff?.previewHash ?? change.previewHash,
    subject: subjectOf(change.subject),
    placement: kind?.case === "review" ? "inPlace" : "proposed",
    files,
    notes: commonNotes(item, files),
    sinceMs: Number(item?.sinceMs ?? change.timeMs),
    predecessors: change.predecessors.map(Number),
    ...(kind?.case === "review" && { turn: { turn: kind.value.turn, changes: kind.value.changes.map(Number) } }),
    ...(kind?.case === "rebase" && { merges: Number(kind.value.change) }),
    ...(origin?.agent !== undefined && { agent: origin.agent }),
    ...(item?.agentReason !== undefined && { agentReason: item.agentReason }),
    ...(change.deadlineMs !== undefined && { deadlineMs: Number(change.deadlineMs) }),
    ...(ruling && { rule: { name: ruling.rule, ...(ruling.reason !== undefined && { reason: ruling.reason }) } }),
  };
}

/** Notes for the header: all of severity warning or higher, and those that no file shows. */
function commonNotes(item: InboxItem | undefined, files: { notes?: Note[] }[]): Note[] {
  const ofFiles = files.flatMap((file) => file.notes ?? []).filter((note) => note.severity !== "info");
  const all = [...(item?.notes ?? []).map(noteOf), ...ofFiles];
  const texts = new Set<string>();
  return all.filter((note) => !texts.has(note.text) && texts.add(note.text));
}

function subjectOf(subject: Subject | undefined): SubjectView {
  const kind = subject?.subject;
  switch (kind?.case) {
    case "command":
      return { kind: "command", command: commandOf(kind.value.preview, kind.value) };
    case "tool":
      return { kind: "tool", tool: toolOf(kind.value.preview, kind.value) };
    default:
      return { kind: "files" };
  }
}

interface CommandSubject {
  command: string;
  directory: string;
  description?: string | undefined;
}

function commandOf(preview: CommandPreview | undefined, subject: CommandSubject): CommandView {
  const script = preview?.script ?? subject.command;
  const at = utf16Offsets(script);
  const description = preview?.description ?? subject.description;
  const line = preview?.syntax?.line;
  const results: Record<SyntaxResult, CommandView["syntax"]["result"]> = {
    [SyntaxResult.UNSPECIFIED]: "unchecked",
    [SyntaxResult.VALID]: "valid",
    [SyntaxResult.INVALID]: "invalid",
    [SyntaxResult.UNCHECKED]: "unchecked",
  };
  return {
    script,
    directory: preview?.directory ?? subject.directory,
    effects: (preview?.effects ?? []).map(({ kind, severity, text }) => ({
      kind,
      severity: severityOf(severity),
      text,
    })),
    doubts: (preview?.uncertainties ?? []).map(({ text, start, end }) => ({
      text,
      ...(start !== undefined && end !== undefined && { start: at(start), end: at(end) }),
    })),
    syntax: {
      result: results[preview?.syntax?.result ?? SyntaxResult.UNSPECIFIED],
      message: preview?.syntax?.message ?? "the engine sent no result",
      ...(line !== undefined && { line }),
    },
    dryRun: preview?.dryRun ?? [],
    ...(description !== undefined && { description }),
  };
}

function toolOf(preview: ToolPreview | undefined, subject: { name: string; argumentsJson: string }): ToolView {
  const { delegation, command, access } = preview ?? {};
  return {
    name: subject.name,
    argumentsJson: subject.argumentsJson,
    arguments: (preview?.arguments ?? []).map(({ name, valueJson, type, description, required }) => ({
      name,
      valueJson,
      required,
      ...(type !== undefined && { type }),
      ...(description !== undefined && { description }),
    })),
    mismatches: (preview?.mismatches ?? []).map(({ text }) => text),
    paths: preview?.paths ?? [],
    ...(delegation && {
      delegation: {
        prompt: delegation.prompt,
        tools: delegation.tools,
        ...(delegation.agent !== undefined && { agent: delegation.agent }),
        ...(delegation.description !== undefined && { description: delegation.description }),
      },
    }),
    ...(command !== undefined && { command }),
    ...(access !== undefined && access !== "" && { access }),
  };
}

const SURFACES: Record<Surface_Kind, Reviewer["kind"]> = {
  [Surface_Kind.UNSPECIFIED]: "terminal",
  [Surface_Kind.TERMINAL]: "terminal",
  [Surface_Kind.BROWSER]: "browser",
  [Surface_Kind.EDITOR]: "editor",
  [Surface_Kind.COMMAND_LINE]: "command line",
};

function surfaceWords(surface: Surface): string {
  const kind = SURFACES[surface.kind];
  return surface.name === "" ? `the ${kind}` : `${kind} “${surface.name}”`;
}

export function reviewerOf({ surface }: AttachedSurface): Reviewer {
  return { kind: SURFACES[surface?.kind ?? Surface_Kind.UNSPECIFIED], name: surface?.name ?? "" };
}

const STATUSES: Partial<Record<Change_Status, SettledStatus>> = {
  [Change_Status.INTERRUPTED]: "approved",
  [Change_Status.PERMITTED]: "approved",
  [Change_Status.APPLIED]: "applied",
  [Change_Status.UNDONE]: "applied",
  [Change_Status.DENIED]: "denied",
  [Change_Status.STALE]: "stale",
  [Change_Status.CANCELLED]: "cancelled",
  [Change_Status.FAILED]: "failed",
};

/** End of the wait. `undefined` while the change is pending. */
export function settledOf(change: Change, isMine: boolean, mergedChange: number | undefined): Settled | undefined {
  const status = STATUSES[change.status];
  if (status === undefined) return undefined;
  const { verdict } = change;
  const by = verdict?.by;
  const answer = verdict?.answer?.answer;
  const reason =
    answer?.case === "deny" || answer?.case === "files" ? answer.value.reason : (change.failedReason ?? undefined);
  const surface = by?.case === "person" ? by.value.surface : undefined;
  const name = by?.case === "policy" ? by.value.rule : surface && surfaceWords(surface);
  const isPart = change.files.some((file) => file.appliedPart === FileRecord_AppliedPart.PARTIAL) || change.partial;
  return {
    status: status === "applied" && isPart ? "appliedInPart" : status,
    by: isMine ? "here" : by?.case === "policy" ? "policy" : "elsewhere",
    ...(name !== undefined && { name }),
    ...(reason !== undefined && { reason }),
    ...(mergedChange !== undefined && { mergedChange }),
  };
}

export function suggestionOf(response: SuggestRuleResponse): RuleSuggestion {
  return {
    toml: response.ruleToml,
    explanation: response.explanation,
    inspected: response.inspected,
    covered: response.covered.map(({ change, approved, byPerson }) => ({ change: Number(change), approved, byPerson })),
    ...(response.file !== undefined && { file: response.file }),
  };
}

export function dryRunOf({ output, errors, end, code, reason, truncated }: DryRunResponse): DryRunResult {
  const words: Record<End, string> = {
    [End.UNSPECIFIED]: "ended",
    [End.EXITED]: `exit code ${code}`,
    [End.SIGNALLED]: `killed by signal ${code}`,
    [End.TIMED_OUT]: "timed out",
    [End.NOT_STARTED]: `not started: ${reason}`,
  };
  return { output, errors, end: words[end], truncated };
}
