import {
  ModeState_AutoApply,
  RequestEnd_Kind,
  RequestMode,
  RequestStatus,
  type ModeState,
  type RequestSummary,
} from "@sayso/client/proto/request";
import type { ShowRequestResponse } from "@sayso/client/proto/request_service";

/** State of the editor for a request. */
export type EditorState =
  /** Held: editable, and can be resumed. */
  | "paused"
  /** On its way, sayso retries: can be cancelled. */
  | "retrying"
  /** Discarded, because its context changed. */
  | "discarded"
  /** Recorded: read only. */
  | "recorded";

export function editorState(request: RequestSummary): EditorState {
  if (request.held) return "paused";
  if (request.status === RequestStatus.SENT && request.upstreamRetry !== undefined) return "retrying";
  const kind = request.ended?.kind;
  if (kind === RequestEnd_Kind.SESSION_DISPOSED || kind === RequestEnd_Kind.SUPERSEDED) return "discarded";
  return "recorded";
}

export const MODE_LABELS: readonly (readonly [RequestMode, string])[] = [
  [RequestMode.OFF, "Send normally"],
  [RequestMode.INTERCEPT_ALWAYS, "Pause & review every turn"],
  [RequestMode.AUTO_OVERRIDE, "Auto-apply saved edits"],
];

export interface BannerWords {
  title: string;
  cue: string;
}

/** Title and first sentence of the banner. */
export function bannerWords(request: RequestSummary): BannerWords {
  switch (editorState(request)) {
    case "paused":
      return { title: "Request paused", cue: "This is the request itself, not the visible message." };
    case "retrying":
      return { title: "Request is retried", cue: request.upstreamRetry?.message ?? "The upstream rejected it." };
    case "discarded":
      return { title: "Request discarded", cue: request.ended?.message ?? "Context changed – request discarded" };
    case "recorded":
      if (request.ended) return { title: "Request not sent", cue: request.ended.message };
      return request.status === RequestStatus.SENT
        ? {
            title: "Request in flight",
            cue: "It was sent and cannot be edited. Edits apply to the next paused request.",
          }
        : { title: "Recorded request", cue: "It was sent and cannot be edited. Read only." };
  }
}

/** `true` if a mode pauses the next turn. */
export function willPause(mode: ModeState | undefined): boolean {
  if (!mode) return false;
  return (
    mode.pauseNext ||
    mode.captureNext ||
    mode.mode === RequestMode.INTERCEPT_ALWAYS ||
    mode.autoApply === ModeState_AutoApply.CAPTURING
  );
}

/** Reminder while no request is paused. Empty if no mode pauses. */
export function idleReminder(mode: ModeState | undefined): string {
  if (!willPause(mode) || !mode) return "";
  if (mode.captureNext || mode.autoApply === ModeState_AutoApply.CAPTURING) {
    return "The next turn is paused so that you can edit it. Its edits are saved.";
  }
  if (mode.mode === RequestMode.INTERCEPT_ALWAYS) return "Each turn is paused before it is sent.";
  return "The next turn is paused before it is sent.";
}

export interface AutoApplyState {
  isCapturing: boolean;
  /** `Applying (saved TIME)` or `Capturing next turn · showing first N sections`. */
  subtitle: string;
  canCapture: boolean;
  canPauseNext: boolean;
  canRemove: boolean;
}

/** State of the auto-apply banner; `null` in other modes. */
export function autoApplyState(
  mode: ModeState | undefined,
  previewLimit: bigint | undefined,
  formatTime: (timeMs: bigint) => string,
): AutoApplyState | null {
  if (mode?.mode !== RequestMode.AUTO_OVERRIDE && mode?.captureNext !== true) return null;
  const isCapturing = mode.captureNext || mode.autoApply === ModeState_AutoApply.CAPTURING;
  const sections = previewLimit === undefined ? "showing all sections" : `showing first ${previewLimit} sections`;
  const saved = mode.savedMs === undefined ? "" : ` (saved ${formatTime(mode.savedMs)})`;
  return {
    isCapturing,
    subtitle: isCapturing ? `Capturing next turn · ${sections}` : `Applying${saved}`,
    // Actions without an effect while a capture is armed are hidden.
    canCapture: !isCapturing,
    canPauseNext: !isCapturing && !mode.pauseNext,
    canRemove: mode.saved > 0n,
  };
}

/** `true` if the sections of a request can be edited. */
export function isEditable(show: ShowRequestResponse): boolean {
  return show.summary?.held === true && show.readOnlyReason === undefined;
}

/** The reason why the sections are preview only; `null` if they are editable. */
export function previewReason(show: ShowRequestResponse): string | null {
  if (show.summary?.held === true) return show.readOnlyReason ?? null;
  if (show.exemptReason !== undefined) return show.exemptReason;
  if (show.mode?.mode === RequestMode.OFF && !willPause(show.mode))
    return "In “Send normally”, requests are preview only.";
  return null;
}

/** Number of edits that count; pins change the display only. */
export function editsOf(show: ShowRequestResponse): number {
  return show.edits.filter((edit) => edit.targetKind !== "pins").length;
}
