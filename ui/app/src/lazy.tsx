import { signal } from "@preact/signals";
import type { ComponentType } from "preact";

const loads: (() => void)[] = [];

/** A component whose code loads with its first use, or when the browser is idle after the first page. */
export function lazy<Props>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  const loaded = signal<{ component: ComponentType<Props> } | null>(null);
  const failed = signal(false);
  let isLoading = false;
  const start = () => {
    if (isLoading || loaded.peek()) return;
    isLoading = true;
    load().then(
      (component) => (loaded.value = { component }),
      () => {
        isLoading = false;
        failed.value = true;
      },
    );
  };
  loads.push(start);
  return function Lazy(props) {
    const Component = loaded.value?.component;
    if (Component) return <Component {...props} />;
    if (!failed.value) {
      start();
      return null;
    }
    const retry = () => {
      failed.value = false;
      start();
    };
    return (
      <p class="stream-note" role="alert">
        A part of this page did not load.{" "}
        <button type="button" class="button link" onClick={retry}>
          Try again
        </button>
      </p>
    );
  };
}

/** Loads the code of all lazy components, so that they work after the connection is lost. */
export function loadAll(): void {
  for (const start of loads) start();
}
