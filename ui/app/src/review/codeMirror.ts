/** CodeMirror with the app's theme. A separate chunk of the bundle. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";

export interface EditorHandle {
  destroy: () => void;
}

export interface EditorCallbacks {
  onText: (text: string) => void;
  onConfirm: () => void;
  onCancel: () => void;
}

const THEME = EditorView.theme({
  "&": { backgroundColor: "var(--bg)", color: "var(--fg)", fontSize: "12px", maxHeight: "60vh" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--fg-3)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--fg)" },
  ".cm-specialChar": { color: "var(--bad)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--bg-active) !important" },
});

export function createEditor(
  parent: HTMLElement,
  text: string,
  label: string,
  callbacks: EditorCallbacks,
): EditorHandle {
  const run = (action: () => void) => (): boolean => {
    action();
    return true;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        EditorView.lineWrapping,
        EditorState.tabSize.of(4),
        EditorState.lineSeparator.of("\n"),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        keymap.of([
          { key: "Mod-Enter", run: run(callbacks.onConfirm) },
          { key: "Escape", run: run(callbacks.onCancel) },
          ...defaultKeymap,
          ...historyKeymap,
          indentWithTab,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) callbacks.onText(update.state.sliceDoc());
        }),
        THEME,
      ],
    }),
  });
  view.focus();
  return { destroy: () => view.destroy() };
}
