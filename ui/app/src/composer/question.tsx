import { useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";

import { useApp } from "../context.js";
import { escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";

/** A question of the agent, with its suggested answers. */
export function QuestionBox({ session }: { session: string }) {
  const { api, store } = useApp();
  const live = store.agent(session);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const question = live.question.value;
  if (!question) return null;
  const answer = async (value: string) => {
    const { requestId } = question;
    const event = { event: { case: "questionResponse" as const, value: { requestId, answer: value } } };
    try {
      await api.agent.submitClientEvent({ session, event });
      live.answered();
      setText("");
    } catch (error) {
      setProblem(describeFailure(error).message);
    }
  };
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        void answer(text);
      }}
    >
      <p>
        <Icon name="waiting" /> {escapeUntrustedLines(question.question)}
      </p>
      <div class="question-options">
        {question.options.map((option) => (
          <button key={option} type="button" class="button small" onClick={() => void answer(option)}>
            {escapeUntrusted(option)}
          </button>
        ))}
        <input
          value={text}
          aria-label="Another answer"
          placeholder="Another answer"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="button small" disabled={text.trim() === ""}>
          Answer
        </button>
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}
