/** Moves of the cursor by hunk and by file. Moves by line need rows; the component makes them. */

import type { Cursor, PanelState, Step } from "./state.js";

export function moveHunk(state: PanelState, by: 1 | -1): Step {
  const { files } = state.review;
  const { file, hunk } = state.cursor;
  const inside = hunk + by;
  if (inside >= 1 && inside <= (files[file]?.hunks ?? 0)) return reveal(state, { file, hunk: inside });
  const next = file + by;
  const target = files[next];
  if (target === undefined) return { state, effects: [] };
  const first = target.hunks > 0 ? 1 : 0;
  return reveal(state, { file: next, hunk: by === 1 ? first : target.hunks });
}

export function moveFile(state: PanelState, by: number): Step {
  const next = state.cursor.file + by;
  const target = state.review.files[next];
  if (target === undefined) return { state, effects: [] };
  return reveal(state, { file: next, hunk: target.hunks > 0 ? 1 : 0 });
}

function reveal(state: PanelState, cursor: Cursor): Step {
  return { state: { ...state, cursor }, effects: [{ kind: "reveal", cursor }] };
}
