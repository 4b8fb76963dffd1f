/** Properties of the panel's view. `panel.tsx` fills them from the engine; the stories fill them with examples. */

import type { ConflictRow, DiffPage, PageRequest } from "../diff/rows.js";
import type {
  Decision,
  DryRunResult,
  RefreshReason,
  Review,
  Reviewer,
  RuleScope,
  RuleSuggestion,
  Seen,
  Settled,
} from "./model.js";

export interface PanelActions {
  fetchPage: (request: PageRequest) => Promise<DiffPage>;
  /** Rejects with an error for a person if the engine did not accept the verdict. */
  decide: (decision: Decision) => Promise<void>;
  markSeen: (path: string, hunks: number[]) => void;
  suggestRule: (scope: RuleScope) => Promise<RuleSuggestion>;
  /** Proposed text of a file. */
  loadText: (path: string) => Promise<string>;
  /** Diff of the present file and an edited text. */
  previewEdit: (path: string, text: string) => Promise<DiffPage>;
  dryRun: () => Promise<DryRunResult>;
  fetchConflict: (path: string) => Promise<ConflictRow[]>;
  openFullDiff: (path: string) => void;
  openChange: (change: number) => void;
  leave: () => void;
  announce: (text: string) => void;
  /** A page has another hash than the preview on screen. */
  onOtherHash: () => void;
}

export interface PanelViewProps {
  review: Review;
  /** Reason for the present preview, if it replaced an earlier one. */
  refresh?: { reason: RefreshReason; predecessor?: number } | undefined;
  seen: Seen[];
  connected: boolean;
  settled?: Settled | undefined;
  /** Other surfaces that show the change. */
  reviewers: Reviewer[];
  /** Element that scrolls the stream. */
  scroller: HTMLElement | null;
  /** `true` if keys outside of text fields go to this panel. */
  active: boolean;
  onActivate: () => void;
  actions: PanelActions;
}
