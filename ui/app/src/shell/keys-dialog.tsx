import { useEffect, useRef } from "preact/hooks";

import { dialogs } from "./dialogs.js";

const KEYS: readonly (readonly [group: string, keys: readonly (readonly [key: string, action: string])[]])[] = [
  [
    "Everywhere",
    [
      ["1 … 5", "Stream, Review, Requests, History, Sessions"],
      ["j k", "next, previous article"],
      ["g G", "start, end"],
      ["/", "search"],
      ["q", "close the drawer"],
      ["?", "these keys"],
    ],
  ],
  [
    "Review panel",
    [
      ["y", "approve what is selected"],
      ["n", "deny, with a reason"],
      ["space", "select or deselect the hunk"],
      ["s", "split the hunk"],
      ["x X", "deselect, select every hunk of the file"],
      ["e", "edit the proposal"],
      ["c", "comment on the line"],
      ["m", "approve with a message"],
      ["A", "approve and add a rule"],
      ["] [  } {", "next, previous hunk, file"],
      ["v", "full diff; in it, unified or side by side"],
    ],
  ],
  [
    "Session",
    [
      ["i", "write a message"],
      ["t", "show or hide thinking"],
      ["p", "pause the next request"],
      ["Esc Esc", "interrupt the turn"],
    ],
  ],
];

/** The keys that work, in a dialog. */
export function KeysDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = dialogs.keys.value;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
  }, [isOpen]);
  if (!isOpen) return null;
  return (
    <dialog class="dialog" ref={dialog} onClose={() => (dialogs.keys.value = false)} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <div class="key-groups">
        {KEYS.map(([group, keys]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl class="keys">
              {keys.map(([key, action]) => (
                <div key={key}>
                  <dt>{key.split(" ").map((cap, index) => (cap === "…" ? " … " : <kbd key={index}>{cap}</kbd>))}</dt>
                  <dd>{action}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
