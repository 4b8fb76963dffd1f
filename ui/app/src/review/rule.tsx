import { count, escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import type { RuleSuggestion } from "./model.js";
import type { Dialog, Input } from "./state.js";

export interface RuleProps {
  dialog: Dialog & { kind: "rule" };
  dispatch: (input: Input) => void;
}

/** Rule that would be written, where, and the decisions that it would have covered. */
export function RuleView({ dialog, dispatch }: RuleProps) {
  const { scope, suggestion, error } = dialog;
  return (
    <section class="rule-view" aria-label="Approve and add a rule">
      <div class="rule-head">
        <strong>Approve and add a rule</strong>
        <span class="segments" role="group" aria-label="Lifetime of the rule">
          <button
            type="button"
            aria-pressed={scope === "session"}
            onClick={() => dispatch({ kind: "scope", scope: "session" })}
          >
            This session
          </button>
          <button
            type="button"
            aria-pressed={scope === "always"}
            onClick={() => dispatch({ kind: "scope", scope: "always" })}
          >
            Always
          </button>
        </span>
        <span class="grow" />
        <button type="button" class="button small quiet" onClick={() => dispatch({ kind: "cancel" })}>
          Back <kbd>Esc</kbd>
        </button>
        <button
          type="button"
          class="button small"
          disabled={suggestion === undefined}
          onClick={() => dispatch({ kind: "confirm", time: performance.now() })}
        >
          Approve and add rule <kbd>y</kbd>
        </button>
      </div>
      {error !== undefined && (
        <p class="bar-problem" role="alert">
          {error}
        </p>
      )}
      {suggestion === undefined ? (
        error === undefined && <p class="secondary">Reading the rule…</p>
      ) : (
        <Rule {...suggestion} />
      )}
    </section>
  );
}

function Rule({ toml, file, explanation, inspected, covered }: RuleSuggestion) {
  return (
    <>
      <p>{escapeUntrusted(explanation)}</p>
      <pre class="rule-text">{escapeUntrustedLines(toml)}</pre>
      <p class="secondary">
        {file === undefined ? "Kept until the session ends." : `Written to ${escapeUntrusted(file)}.`}
      </p>
      <Covered inspected={inspected} covered={covered} />
    </>
  );
}

function Covered({ inspected, covered }: Pick<RuleSuggestion, "inspected" | "covered">) {
  if (covered.length === 0) {
    return <p class="secondary">It would have covered none of the latest {count(inspected, "decision")}.</p>;
  }
  const denied = covered.filter(({ approved }) => !approved);
  return (
    <>
      <p class="secondary">
        It would have covered {covered.length} of the latest {count(inspected, "decision")}:{" "}
        {covered
          .slice(0, 12)
          .map(
            ({ change, approved, byPerson }) =>
              `${change} ${approved ? "approved" : "denied"}${byPerson ? "" : " by rule"}`,
          )
          .join(", ")}
        {covered.length > 12 && ` and ${covered.length - 12} more`}.
      </p>
      {denied.length > 0 && (
        <p class="panel-warning">
          {count(denied.length, "covered decision")} denied the action. The rule would have approved it.
        </p>
      )}
    </>
  );
}
