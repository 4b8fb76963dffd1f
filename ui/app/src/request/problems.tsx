import type { Repair, RequestProblem } from "@sayso/client/proto/request";

import { announce } from "../announce.js";
import { count, escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";
import { useEditor } from "./editor-context.js";

/** Defects of the body as it would be sent, with the edits that fix them. Defects by edits block the send. */
export function Problems({ problems, onReset }: { problems: readonly RequestProblem[]; onReset: () => void }) {
  const { model, canEdit, isBlocked } = useEditor();
  if (problems.length === 0) return null;
  const blocking = problems.filter((problem) => problem.blocking).length;
  const repair = async (fix: Repair) => {
    const answer = await model.edit({ edit: { case: "repair", value: fix } });
    if (answer) announce(`Repaired: ${fix.name}`);
  };
  return (
    <section class="problems" aria-label="Problems of the request" id="request-problems" tabIndex={-1}>
      <h3>
        <Icon name="warning" small />
        {blocking > 0
          ? `${count(blocking, "problem")} by your edits: the upstream would reject this request`
          : "The agent sent a defect"}
      </h3>
      <ul>
        {problems.map((problem) => (
          <li key={`${problem.kind}:${problem.path}`}>
            <span>
              {escapeUntrusted(problem.message)} <code class="tertiary">{escapeUntrusted(problem.path)}</code>
              {!problem.blocking && <span class="secondary"> (as received; it does not block the send)</span>}
            </span>
            {canEdit &&
              problem.repairs.map((fix) => (
                <button
                  key={fix.name + fix.path}
                  type="button"
                  class="button small"
                  title={fix.path}
                  disabled={isBlocked}
                  onClick={() => void repair(fix)}
                >
                  {sentence(fix.name)}
                </button>
              ))}
          </li>
        ))}
      </ul>
      {blocking > 0 && canEdit && (
        <button type="button" class="button link" disabled={isBlocked} onClick={onReset}>
          Reset to the received request
        </button>
      )}
    </section>
  );
}

const sentence = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
