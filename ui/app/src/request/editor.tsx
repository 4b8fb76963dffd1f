import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { RequestMode, type OverrideScope } from "@sayso/client/proto/request";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { count, escapeUntrusted, formatNumber } from "../diff/words.js";
import { isTyping } from "../shell/keys.js";
import { AutoApplyBanner } from "./auto-apply.js";
import { RequestBanner, useAnnouncedState } from "./banner.js";
import { editorState, editsOf, isEditable, previewReason } from "./banner-state.js";
import { ChipDialog, CompareDialog, PayloadDialog } from "./dialogs.js";
import { EditorProvider, redoEdit, undoEdit, type Editor } from "./editor-context.js";
import { useFollowing } from "./following.js";
import { Recorded } from "./recorded.js";
import "./request.css";
import { RequestModel } from "./request-model.js";
import { SectionList } from "./section-list.js";
import { useModels } from "./shared.js";
import type { SideDialog } from "./side-pane.js";
import { ConnectionState, LoadFailure } from "./states.js";
import { buildTree } from "./tree.js";
import { ViewState } from "./view-state.js";
import { scopeWord } from "./words.js";

/** The editor of a paused request, and the reader of a recorded one. */
export function RequestEditor(props: { request: bigint; onOpen: (request: bigint) => void }) {
  const { request: number, onOpen } = props;
  const { api, store } = useApp();
  const models = useModels();
  const model = useMemo(() => new RequestModel(api, number), [api, number]);
  const [view] = useState(() => new ViewState());
  const summary = store.request(number).value;
  const isLive = store.connection.value.state === "live";
  const version = `${summary?.status}/${summary?.revision}/${summary?.held}/${summary?.answer?.status}`;
  useEffect(() => void model.refresh(), [model, version, isLive]);
  const { choices, isFlashing } = useFollowing(models, number, onOpen);
  useAnnouncedState(summary);
  const show = model.show.value;
  const failure = model.failure.value;
  const [dialog, setDialog] = useState<SideDialog>(null);
  const tree = useMemo(() => (show ? buildTree(show.sections) : null), [show]);
  if (tree) view.start(tree);
  const root = useRef<HTMLDivElement>(null);
  const editor: Editor | null =
    show && tree
      ? {
          model,
          view,
          show,
          tree,
          canEdit: isEditable(show) && store.canDecide.value,
          isBlocked: model.isBusy.value || !store.canDecide.value,
        }
      : null;
  useEditorKeys(editor);
  if (!editor || !show)
    return <LoadFailure failure={failure} what={`request ${number}`} onRetry={() => void model.refresh()} />;
  const session = show.summary?.received?.origin?.session;
  const blocking = show.problems.filter((problem) => problem.blocking);
  const chip = view.chip.value === null ? undefined : editor.tree.byId.get(view.chip.value)?.section;
  const reset = () =>
    void model.edit({ edit: { case: "reset", value: {} } }).then((done) => done && announce("All edits are undone"));
  const save = (scope: OverrideScope) => void saveEdits(editor, scope, api);
  const reason = previewReason(show);
  return (
    <EditorProvider value={editor}>
      <div class={`request-editor${isFlashing ? " flash" : ""}`} ref={root} data-request={String(number)}>
        <RequestBanner
          show={show}
          choices={choices}
          modes={models.modes}
          onChoose={(choice) => choice.request !== null && onOpen(choice.request)}
          actions={{
            onResume: () => void resume(editor),
            onCancel: () => void model.cancel().then((done) => done && announce("Request canceled before sending")),
            onReset: reset,
            blockedReason: blocking[0]?.message ?? null,
            isBusy: model.isBusy.value,
          }}
        />
        <AutoApplyBanner
          modes={models.modes}
          session={session}
          {...(editsOf(show) > 0 && editor.canEdit && { onSave: save })}
        />
        <ConnectionState />
        {failure !== null && (
          <p class="request-failure problem" role="alert">
            {escapeUntrusted(failure.message)} {failure.hint !== null && <span class="secondary">{failure.hint}</span>}
            <button type="button" class="button link" onClick={() => model.dismissFailure()}>
              Dismiss
            </button>
          </p>
        )}
        {reason !== null && <p class="read-only-note secondary">Read only: {escapeUntrusted(reason)}</p>}
        {show.summary && editorState(show.summary) === "recorded" && <Recorded />}
        <SectionList onDialog={setDialog} onReset={reset} />
        {dialog === "compare" && <CompareDialog request={number} onClose={() => setDialog(null)} />}
        {dialog === "payload" && <PayloadDialog onClose={() => setDialog(null)} />}
        {chip && <ChipDialog section={chip} onClose={() => view.showChip(null)} />}
      </div>
    </EditorProvider>
  );
}

async function resume(editor: Editor): Promise<void> {
  const { model, view, show } = editor;
  if (view.draft.peek() !== null) {
    announce("A value is still open. Save or discard it first.");
    document.querySelector<HTMLElement>(".leaf-field textarea")?.focus();
    return;
  }
  if (show.problems.some((problem) => problem.blocking)) {
    announce(`Not sent: ${show.problems.find((problem) => problem.blocking)?.message ?? ""}`);
    document.getElementById("request-problems")?.focus();
    return;
  }
  const answer = await model.resume();
  if (!answer) return;
  const facts = ["Sent"];
  if (answer.saved > 0n) facts.push(`${count(Number(answer.saved), "edit")} saved`);
  if (answer.newMode === RequestMode.AUTO_OVERRIDE) facts.push("auto-apply is on");
  if (answer.turnEdits > 0n) facts.push(`${count(Number(answer.turnEdits), "edit")} apply to the rest of the turn`);
  announce(facts.join(", "));
}

async function saveEdits(
  { model }: Editor,
  scope: OverrideScope,
  api: ReturnType<typeof useApp>["api"],
): Promise<void> {
  try {
    const { saved } = await api.requests.saveOverrides({ request: model.number, scope });
    announce(`${formatNumber(Number(saved))} edits saved: ${scopeWord(scope)}`);
  } catch {
    announce("The edits cannot be saved");
  }
  await model.refresh();
}

/** Keys of the editor: resume, undo, redo. */
function useEditorKeys(editor: Editor | null): void {
  const presentRef = useRef(editor);
  useLayoutEffect(() => {
    presentRef.current = editor;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const now = presentRef.current;
      if (!now || event.defaultPrevented || isTyping(event.target) || document.querySelector("dialog[open]")) return;
      const isUndo = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "z";
      if (isUndo && now.canEdit) {
        event.preventDefault();
        void (event.shiftKey ? redoEdit(now) : undoEdit(now));
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "r" && now.show.summary?.held === true && now.canEdit && !now.isBlocked) {
        event.preventDefault();
        void resume(now);
      } else if (event.key === "P") {
        event.preventDefault();
        document.querySelector<HTMLElement>(".mode-controls [aria-pressed=true]")?.focus();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
