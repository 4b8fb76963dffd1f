import { announce } from "../announce.js";
import { count, formatNumber } from "../diff/words.js";
import { deleteSections, useEditor } from "./editor-context.js";
import { planDelete, planKeepFrom, planShrink, type BulkPlan } from "./selection.js";

/** Actions on selected messages, each with its effect before it is taken. */
export function SelectBar() {
  const editor = useEditor();
  const { view, tree, model, canEdit, isBlocked } = editor;
  const selected = view.selected.value;
  if (!canEdit) return null;
  if (selected === null) {
    return (
      <button type="button" class="button quiet small" onClick={() => view.startSelecting()}>
        Select messages
      </button>
    );
  }
  const [only] = selected;
  const deletion = planDelete(tree, selected);
  const shrink = planShrink(tree, selected);
  const keep = selected.size === 1 && only !== undefined ? planKeepFrom(tree, only) : null;
  const finish = () => view.stopSelecting();
  const runShrink = async () => {
    for (const { id } of shrink.targets) {
      const target = { target: { case: "section", value: id } } as const;
      if (!(await model.edit({ edit: { case: "shrink", value: { target } } }))) return;
    }
    announce(`${count(shrink.targets.length, "result")} shortened`);
    finish();
  };
  const runDelete = async (plan: BulkPlan) => {
    await deleteSections(editor, plan.targets);
    finish();
  };
  return (
    <span class="select-bar" role="group" aria-label="Actions on selected messages">
      <span class="secondary" aria-live="polite">
        {selected.size} selected
      </span>
      <button
        type="button"
        class="button small"
        disabled={isBlocked || deletion.targets.length === 0}
        onClick={() => void runDelete(deletion)}
      >
        Delete
        <Saving plan={deletion} />
      </button>
      <button
        type="button"
        class="button small"
        disabled={isBlocked || shrink.targets.length === 0}
        title="Keep the first 2,000 and the last 1,000 bytes of tool results"
        onClick={() => void runShrink()}
      >
        Shrink results
        <Saving plan={shrink} />
      </button>
      <button
        type="button"
        class="button small"
        disabled={isBlocked || keep === null || keep.targets.length === 0}
        title="Delete the messages before the selected one"
        onClick={() => keep && void runDelete(keep)}
      >
        Keep from here{keep && <Saving plan={keep} />}
      </button>
      <button type="button" class="button quiet small" onClick={finish}>
        Done
      </button>
    </span>
  );
}

function Saving({ plan }: { plan: BulkPlan }) {
  if (plan.targets.length === 0) return null;
  const pairs = plan.paired.length === 0 ? "" : `, with ${count(plan.paired.length, "pair")}`;
  return (
    <span class="secondary numeric">
      saves ≈{formatNumber(plan.tokensSaved)}
      {pairs}
    </span>
  );
}
