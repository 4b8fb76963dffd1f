import { useEffect, useRef, useState } from "preact/hooks";

import type { EditorHandle } from "./codeMirror.js";

export interface TextEditorProps {
  /** Text at the start. Later changes come from the editor. */
  text: string;
  label: string;
  onText: (text: string) => void;
  onConfirm: () => void;
  onCancel: () => void;
}

/** Editor of a text. CodeMirror is loaded at its first use; a plain field replaces it if that fails. */
export function TextEditor({ text, label, onText, onConfirm, onCancel }: TextEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const [isPlain, setPlain] = useState(false);
  const callbacks = useRef({ onText, onConfirm, onCancel });
  callbacks.current = { onText, onConfirm, onCancel };
  useEffect(() => {
    let handle: EditorHandle | undefined;
    let isClosed = false;
    import("./codeMirror.js").then(
      ({ createEditor }) => {
        if (isClosed || host.current === null) return;
        handle = createEditor(host.current, text, label, {
          onText: (changed) => callbacks.current.onText(changed),
          onConfirm: () => callbacks.current.onConfirm(),
          onCancel: () => callbacks.current.onCancel(),
        });
      },
      () => setPlain(!isClosed),
    );
    return () => {
      isClosed = true;
      handle?.destroy();
    };
  }, []);
  if (isPlain) {
    return (
      <textarea
        class="plain-editor"
        aria-label={label}
        spellcheck={false}
        onInput={(event) => onText(event.currentTarget.value)}
      >
        {text}
      </textarea>
    );
  }
  return <div ref={host} class="code-editor" />;
}
