import { useEffect, useRef } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import type { FilePreview } from "@sayso/client/proto/file";
import { IfChanged, type UndoPlan } from "@sayso/client/proto/review_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { count, escapeUntrusted } from "../diff/words.js";
import { Counts } from "../theme/counts.js";
import { Path } from "../theme/path.js";
import "./history.css";
import { planReversal, reversal, updateReversal } from "./reversal.js";

/** The dialog of an undo or redo: what it would do, then the question. */
export function ReversalDialog() {
  const { api, store, router } = useApp();
  const dialog = useRef<HTMLDialogElement>(null);
  const state = reversal.value;
  const isOpen = state !== null;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
  }, [isOpen]);
  if (!state) return null;
  const { direction, plan, problem, change } = state;
  const verb = direction === "undo" ? "Undo" : "Redo";
  const blocked = plan?.preview?.files.some((file) => file.problem) ?? false;
  const run = async () => {
    if (!plan) return;
    updateReversal({ isRunning: true, problem: null });
    const request = {
      target: { target: { case: "change" as const, value: change } },
      ifChanged: state.ifChanged,
      previewHash: plan.previewHash,
    };
    try {
      await (direction === "undo" ? api.review.undo(request) : api.review.redo(request));
      announce(`${verb} of change ${change} is done`);
      reversal.value = null;
    } catch (error) {
      updateReversal({ isRunning: false, problem: describeFailure(error).message });
    }
  };
  return (
    <dialog class="dialog" ref={dialog} onClose={() => (reversal.value = null)} aria-labelledby="reversal-title">
      <h2 id="reversal-title">
        {verb} change {String(change)}?
      </h2>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {!plan && problem === null && <p class="secondary">Computing what it would do…</p>}
      {plan && <PlanFiles plan={plan} verb={verb} />}
      {blocked && (
        <p class="secondary">
          Later edits are in the way.{" "}
          <button
            type="button"
            class="button link"
            onClick={() => planReversal(api, direction, change, IfChanged.MERGE)}
          >
            Keep later edits and revert the rest
          </button>
        </p>
      )}
      <div class="dialog-actions">
        <button
          type="button"
          class="button"
          disabled={!plan || blocked || state.isRunning || !store.canDecide.value}
          onClick={() => void run()}
        >
          {verb}
        </button>
        <button type="button" class="button quiet" onClick={() => (reversal.value = null)}>
          Cancel
        </button>
        <span class="grow" />
        <button
          type="button"
          class="button quiet"
          onClick={() => {
            reversal.value = null;
            router.show({ kind: "diff", change });
          }}
        >
          View diff of the change
        </button>
      </div>
    </dialog>
  );
}

function PlanFiles({ plan, verb }: { plan: UndoPlan; verb: string }) {
  const files = plan.preview?.files ?? [];
  return (
    <>
      <p class="secondary">
        {verb} restores the recorded content of {count(files.length, "file")}. It can itself be undone.
      </p>
      <ul class="plan-files">
        {files.map((file) => (
          <PlanFile key={file.path} file={file} />
        ))}
      </ul>
      {plan.uncaptured.map((item) => (
        <p class="warning-text" key={item.path}>
          {escapeUntrusted(`${item.path} cannot be restored: ${item.reason}`)}
        </p>
      ))}
    </>
  );
}

function PlanFile({ file }: { file: FilePreview }) {
  return (
    <li>
      <div class="plan-file">
        <Path path={file.path} />
        <Counts added={Number(file.added)} removed={Number(file.removed)} />
      </div>
      {file.problem && <p class="problem">{escapeUntrusted(file.problem.text)}</p>}
      {file.unifiedDiff !== "" && (
        <pre class="plan-diff">
          {file.unifiedDiff.split("\n").map((line, index) => (
            <span key={index} class={lineClass(line)}>
              {line}
              {"\n"}
            </span>
          ))}
        </pre>
      )}
    </li>
  );
}

function lineClass(line: string): string {
  if (line.startsWith("+") && !line.startsWith("+++")) return "diff-add";
  if (line.startsWith("-") && !line.startsWith("---")) return "diff-remove";
  return "diff-context";
}
