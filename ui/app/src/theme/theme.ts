import { effect, signal, type Signal } from "@preact/signals";

/** Theme that the person chose. `system` follows the preference of the operating system. */
export type ThemeChoice = "system" | "light" | "dark";

const STORAGE_KEY = "sayso.theme";
const CHOICES: readonly ThemeChoice[] = ["system", "light", "dark"];

/** Persists a choice. A webview without storage keeps it until it closes. */
export interface ThemeStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

export class Theme {
  readonly choice: Signal<ThemeChoice>;

  constructor(
    private readonly root: HTMLElement,
    private readonly storage: ThemeStorage | undefined,
  ) {
    this.choice = signal(this.stored());
  }

  /** Sets `data-theme` on the root now and after each choice. VS Code's theme wins in its webview. */
  start(): () => void {
    return effect(() => {
      const choice = this.choice.value;
      if (choice === "system" || isHosted(this.root.ownerDocument)) this.root.removeAttribute("data-theme");
      else this.root.setAttribute("data-theme", choice);
    });
  }

  choose(choice: ThemeChoice): void {
    this.choice.value = choice;
    try {
      this.storage?.setItem(STORAGE_KEY, choice);
    } catch {
      // Storage may be full or forbidden. The choice still holds for this page.
    }
  }

  /** Next choice of a button that cycles. */
  next(): ThemeChoice {
    return CHOICES[(CHOICES.indexOf(this.choice.value) + 1) % CHOICES.length] ?? "system";
  }

  private stored(): ThemeChoice {
    try {
      const value = this.storage?.getItem(STORAGE_KEY);
      return CHOICES.find((choice) => choice === value) ?? "system";
    } catch {
      return "system";
    }
  }
}

/** `true` inside of a VS Code webview. */
export function isHosted(document: Document): boolean {
  return [...document.body.classList].some((name) => name.startsWith("vscode-"));
}
