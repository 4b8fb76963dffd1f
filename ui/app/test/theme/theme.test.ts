import { afterEach, describe, expect, it } from "vitest";

import { isHosted, Theme } from "../../src/theme/theme.js";

const root = document.documentElement;

afterEach(() => {
  root.removeAttribute("data-theme");
  document.body.className = "";
  localStorage.clear();
});

describe("theme", () => {
  it("choice_sets_attribute_and_persists", () => {
    const theme = new Theme(root, localStorage);
    const stop = theme.start();
    expect(root.hasAttribute("data-theme")).toBe(false);
    theme.choose("dark");
    expect(root.getAttribute("data-theme")).toBe("dark");
    expect(new Theme(root, localStorage).choice.value).toBe("dark");
    theme.choose("system");
    expect(root.hasAttribute("data-theme")).toBe(false);
    stop();
  });

  it("next_choice_cycles", () => {
    const theme = new Theme(root, undefined);
    const seen = [1, 2, 3].map(() => {
      theme.choose(theme.next());
      return theme.choice.value;
    });
    expect(seen).toEqual(["light", "dark", "system"]);
  });

  it("webview_theme_wins", () => {
    document.body.className = "vscode-dark";
    expect(isHosted(document)).toBe(true);
    const theme = new Theme(root, undefined);
    const stop = theme.start();
    theme.choose("light");
    expect(root.hasAttribute("data-theme")).toBe(false);
    stop();
  });

  it("unusable_storage_keeps_the_choice", () => {
    const broken = {
      getItem: () => {
        throw new Error("denied");
      },
      setItem: () => {
        throw new Error("denied");
      },
    };
    const theme = new Theme(root, broken);
    theme.choose("dark");
    expect(theme.choice.value).toBe("dark");
  });

  it("unknown_stored_value_is_system", () => {
    localStorage.setItem("sayso.theme", "purple");
    expect(new Theme(root, localStorage).choice.value).toBe("system");
  });
});
