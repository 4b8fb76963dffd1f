import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

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
  const callbacksRef = useRef({ onText, onConfirm, onCancel });
  useLayoutEffect(() => {
    callbacksRef.current = { onText, onConfirm, onCancel };
  });
  useEffect(() => {
    let handle: EditorHandle | undefined;
    let isClosed = false;
    import("./codeMirror.js").then(
      ({ createEditor }) => {
        if (isClosed || host.current === null) return;
        handle = createEditor(host.current, text, label, {
          onText: (changed) => callbacksRef.current.onText(changed),
          onConfirm: () => callbacksRef.current.onConfirm(),
          onCancel: () => callbacksRef.current.onCancel(),
        });
      },
      () => setPlain(!isClosed),
    );
    return () => {
      isClosed = true;
      handle?.destroy();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the editor holds the text from now on
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
