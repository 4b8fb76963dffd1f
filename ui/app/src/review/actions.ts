/** Calls of the engine that a panel makes. */

import { describeFailure, type Api, type Store } from "@sayso/client";
import { DiffLayout } from "@sayso/client/proto/diff";
import { PreviewView } from "@sayso/client/proto/file";
import { ProposeRequest_Mode } from "@sayso/client/proto/review_service";
import { Ruling } from "@sayso/client/proto/change";

import { announce } from "../announce.js";
import { conflictRowOf, LAYOUTS, pageOf } from "../diff/fromProtocol.js";
import type { ConflictRow, DiffPage, PageRequest } from "../diff/rows.js";
import { pageOfUnified } from "../diff/unifiedText.js";
import type { Router } from "../router.js";
import { dryRunOf, suggestionOf } from "./fromProtocol.js";
import type { Decision, Review } from "./model.js";
import type { PanelActions } from "./props.js";
import { requestOf, SCOPES } from "./toProtocol.js";

export interface ActionContext {
  api: Api;
  store: Store;
  router: Router;
  change: bigint;
  review: () => Review | undefined;
  /** Reads the preview again. */
  reload: () => void;
  /** A verdict of this panel counts. */
  onDecided: () => void;
}

const CONFLICT_PAGE = 5000;

export function panelActions(context: ActionContext): PanelActions {
  const { api, store, router, change } = context;
  return {
    fetchPage: (request) => worded(() => fetchPage(context, request)),
    decide: (decision) => worded(() => decide(context, decision)),
    markSeen: (path, hunks) => {
      // A lost mark is sent again with the next one that any surface makes; it decides nothing.
      api.review.markSeen({ change, path, hunks: hunks.map(BigInt) }).catch(() => undefined);
    },
    suggestRule: (scope) =>
      worded(async () =>
        suggestionOf(
          await api.review.suggestRule({ change, rememberAs: { scope: SCOPES[scope], ruling: Ruling.ALLOW } }),
        ),
      ),
    loadText: (path) => worded(() => loadText(context, path)),
    previewEdit: (path, text) => worded(() => previewEdit(context, path, text)),
    dryRun: () => worded(async () => dryRunOf(await api.review.dryRun({ change }))),
    fetchConflict: (path) => worded(() => fetchConflict(context, path)),
    openFullDiff: () => router.show({ kind: "diff", change }),
    openChange: (number) => router.go({ view: "change", change: BigInt(number) }),
    leave: () => (document.activeElement as HTMLElement | null)?.blur(),
    announce,
    onOtherHash: () => {
      store.refreshChange(change);
      context.reload();
    },
  };
}

/** Turns an error of a call into words for a person. */
async function worded<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const { message, hint } = describeFailure(error);
    throw new Error(hint === null ? message : `${message}; ${hint}`, { cause: error });
  }
}

async function fetchPage({ api, change }: ActionContext, request: PageRequest): Promise<DiffPage> {
  const response = await api.review.getDiff({
    subject: { subject: { case: "change", value: change } },
    path: request.path,
    fromRow: BigInt(request.fromRow),
    rows: request.rows,
    layout: LAYOUTS[request.layout],
    wholeFile: request.wholeFile,
    ...(request.fromHunk !== undefined && { fromHunk: request.fromHunk }),
  });
  return pageOf(response, request.path);
}

async function decide(context: ActionContext, decision: Decision): Promise<void> {
  const { api, store, change } = context;
  try {
    await api.review.decide(requestOf(decision, store.surface));
    context.onDecided();
  } finally {
    // Another surface may have decided first. The change then says so.
    store.refreshChange(change);
  }
}

async function loadText({ api, change }: ActionContext, path: string): Promise<string> {
  const { details } = await api.review.getChange({ change, view: PreviewView.CONTENT });
  const file = details?.preview?.files.find((each) => each.path === path);
  const state = file?.afterContent?.state;
  if (state?.case !== "file") throw new Error(`${path} has no proposed text.`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(state.value.content);
    // The engine writes the file's own line endings.
    return text.replaceAll("\r\n", "\n");
  } catch {
    throw new Error("Only UTF-8 text can be edited here. Approve or deny the file, or edit it afterwards.");
  }
}

async function previewEdit(context: ActionContext, path: string, text: string): Promise<DiffPage> {
  const { details } = await context.api.review.propose({
    changes: {
      case: "proposal",
      value: { changes: [{ operation: { case: "write", value: { path, newContent: text } } }] },
    },
    mode: ProposeRequest_Mode.PREVIEW,
    view: PreviewView.DIFF,
  });
  const preview = details?.preview?.files[0];
  const file = context.review()?.files.find((each) => each.path === path);
  if (preview === undefined || file === undefined) throw new Error(`The engine returned no preview of ${path}.`);
  if (preview.problem) throw new Error(preview.problem.text);
  return pageOfUnified(preview.unifiedDiff, file, details?.change?.previewHash ?? "");
}

async function fetchConflict({ api, change }: ActionContext, path: string): Promise<ConflictRow[]> {
  const rows: ConflictRow[] = [];
  for (let hasMore = true; hasMore;) {
    const response = await api.review.getDiff({
      subject: { subject: { case: "conflict", value: change } },
      path,
      fromRow: BigInt(rows.length),
      rows: CONFLICT_PAGE,
      layout: DiffLayout.CONFLICT,
    });
    rows.push(...response.conflictRows.map(conflictRowOf));
    hasMore = response.hasMore && response.conflictRows.length > 0;
  }
  return rows;
}
