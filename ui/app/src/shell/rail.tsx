import { useApp } from "../context.js";
import { Icon, type IconName } from "../icon.js";
import type { Drawer } from "../router.js";

/** Toolbar that opens the drawer beside the stream. */
export function Rail({ session }: { session: string }) {
  const { store, router } = useApp();
  const { drawer } = router.location.value;
  const entries = store.timeline(session).entries.value;
  const lastChange = entries.findLast((entry) => entry.kind === "change");
  const todos = store.builtIn.value.has(session) ? store.agent(session).todos.value.length : 0;
  const items: { name: string; icon: IconName; drawer: Drawer | null; count?: number }[] = [
    {
      name: "Full diff",
      icon: "diff",
      drawer: lastChange?.kind === "change" ? { kind: "diff", change: lastChange.change } : null,
    },
    { name: "History", icon: "history", drawer: { kind: "history" } },
    { name: "Todos", icon: "todos", drawer: { kind: "todos" }, count: todos },
    { name: "Subagents", icon: "subagents", drawer: { kind: "subagents" } },
  ];
  return (
    <aside class="rail" aria-label="Beside the stream">
      {items.map((item) => {
        const isOpen = drawer !== null && drawer.kind === item.drawer?.kind;
        return (
          <button
            key={item.name}
            type="button"
            aria-label={item.count ? `${item.name}, ${item.count}` : item.name}
            title={item.name}
            aria-pressed={isOpen}
            disabled={item.drawer === null}
            onClick={() => router.show(isOpen ? null : item.drawer)}
          >
            <Icon name={item.icon} />
            {item.count ? <small>{item.count}</small> : null}
          </button>
        );
      })}
    </aside>
  );
}
