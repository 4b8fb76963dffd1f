/** A change under review, and the decision about it, as the panel holds them. */

import type { DiffFile, Note, Severity } from "../diff/rows.js";

export interface CommandView {
  script: string;
  directory: string;
  description?: string;
  effects: { kind: string; severity: Severity; text: string }[];
  /** Reasons why the effects may be incomplete. Offsets are UTF-16 code units of `script`. */
  doubts: { text: string; start?: number; end?: number }[];
  syntax: { result: "valid" | "invalid" | "unchecked"; message: string; line?: number };
  /** Words of a harmless variant. Empty if there is none. */
  dryRun: string[];
}

export interface ToolArgument {
  name: string;
  valueJson: string;
  type?: string;
  description?: string;
  required: boolean;
}

export interface ToolView {
  name: string;
  argumentsJson: string;
  arguments: ToolArgument[];
  /** Violations of the schema. */
  mismatches: string[];
  /** Task for another agent. */
  delegation?: { agent?: string; prompt: string; tools: string[]; description?: string };
  /** Command that the tool passes to a shell. */
  command?: string;
  paths: string[];
  access?: string;
}

export type SubjectView =
  { kind: "files" } | { kind: "command"; command: CommandView } | { kind: "tool"; tool: ToolView };

/** Change that waits for a decision. */
export interface Review {
  change: number;
  /** Hash of the preview that is shown. */
  previewHash: string;
  subject: SubjectView;
  /** `inPlace`: the change is in the tree, and denial reverts it. */
  placement: "proposed" | "inPlace";
  /** Files in review order. */
  files: DiffFile[];
  /** Set for the review of a turn. */
  turn?: { turn: string; changes: number[] };
  /** Set if this change merges a stale one: its number. */
  merges?: number;
  agent?: string;
  /** Last text of the agent before the change. Untrusted. */
  agentReason?: string;
  /** Observations about the change as a whole. */
  notes: Note[];
  sinceMs: number;
  /** Time at which the change is denied. */
  deadlineMs?: number;
  /** Pending changes of the same files. */
  predecessors: number[];
  /** Rule that asked. */
  rule?: { name: string; reason?: string };
}

export interface Seen {
  path: string;
  hunks: number[];
}

/** Another surface that shows the change. */
export interface Reviewer {
  kind: "terminal" | "browser" | "editor" | "command line";
  name: string;
}

export interface LineComment {
  path: string;
  line: number;
  side: "proposed" | "current";
  text: string;
}

export type FileAnswer =
  { kind: "approve" } | { kind: "deny" } | { kind: "hunks"; hunks: string[] } | { kind: "editedText"; text: string };

export type Answer =
  | { kind: "approve" }
  | { kind: "deny"; reason?: string }
  | { kind: "files"; files: Record<string, FileAnswer>; reason?: string }
  | { kind: "command"; command: string }
  | { kind: "arguments"; json: string };

export type RuleScope = "session" | "always";

/** Verdict of a person about the preview with `previewHash`. */
export interface Decision {
  change: number;
  previewHash: string;
  answer: Answer;
  comments: LineComment[];
  /** Message to the agent with an approval. */
  message?: string;
  remember?: { scope: RuleScope };
}

/** Rule that would be written, and the decisions that it would have covered. */
export interface RuleSuggestion {
  toml: string;
  /** File that the rule goes to. Absent for a rule of the session. */
  file?: string;
  explanation: string;
  inspected: number;
  covered: { change: number; approved: boolean; byPerson: boolean }[];
}

export interface DryRunResult {
  output: string;
  errors: string;
  end: string;
  truncated: boolean;
}

export type RefreshReason = "filesChanged" | "predecessorApplied" | "predecessorDropped";

/** New preview of a change that is on screen. */
export interface Refresh {
  reason: RefreshReason;
  predecessor?: number;
  /** Sentences about the difference between the previews. */
  changes: string[];
}

export type SettledStatus = "approved" | "applied" | "appliedInPart" | "denied" | "stale" | "cancelled" | "failed";

/** End of the wait. */
export interface Settled {
  status: SettledStatus;
  by: "here" | "elsewhere" | "policy" | "deadline";
  /** Person's surface or rule. */
  name?: string;
  reason?: string;
  /** Pending change that merges a stale change with later edits. */
  mergedChange?: number;
}
