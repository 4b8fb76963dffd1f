import { create } from "@bufbuild/protobuf";
import { useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import { type Todo, Todo_State, TodoSchema } from "@sayso/client/proto/agent_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { escapeUntrusted } from "../diff/words.js";
import { Icon } from "../icon.js";

/** Todos of a session. Edits show at once and go back if the engine rejects them. */
export function TodosPane({ session }: { session: string }) {
  const { store } = useApp();
  if (!store.builtIn.value.has(session)) {
    return <p class="stream-note">Only sessions of the built-in agent have a todo list here.</p>;
  }
  return <Todos session={session} />;
}

function Todos({ session }: { session: string }) {
  const { store } = useApp();
  const live = store.agent(session);
  const todos = live.todos.value;
  const [text, setText] = useState("");
  const write = (next: Todo[], removed: string[] = []) => {
    live.writeTodos(next, removed).catch((error: unknown) => announce(describeFailure(error).message));
  };
  return (
    <div class="todos">
      {todos.length === 0 && <p class="stream-note">No todos.</p>}
      <ul>
        {todos.map((todo) => (
          <li key={todo.id}>
            <label>
              <input
                type="checkbox"
                class="checkbox"
                checked={todo.state === Todo_State.DONE}
                onChange={(event) => {
                  const state = event.currentTarget.checked ? Todo_State.DONE : Todo_State.PENDING;
                  write(todos.map((other) => (other === todo ? { ...todo, state } : other)));
                }}
              />
              <span class={todo.state === Todo_State.DONE ? "done" : ""}>{escapeUntrusted(todo.text)}</span>
            </label>
            {todo.state === Todo_State.IN_PROGRESS && (
              <span class="state running">
                <Icon name="running" small />
                in progress
              </span>
            )}
            <button
              type="button"
              class="button quiet small icon-only"
              aria-label={`Remove ${todo.text}`}
              onClick={() =>
                write(
                  todos.filter((other) => other !== todo),
                  [todo.id],
                )
              }
            >
              <Icon name="close" small />
            </button>
          </li>
        ))}
      </ul>
      <form
        class="todo-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === "") return;
          write([...todos, create(TodoSchema, { text: text.trim(), state: Todo_State.PENDING })]);
          setText("");
        }}
      >
        <input
          value={text}
          aria-label="New todo"
          placeholder="New todo"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="button small" disabled={text.trim() === ""}>
          Add
        </button>
      </form>
    </div>
  );
}
