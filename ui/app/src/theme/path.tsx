import { escapeUntrusted } from "../diff/words.js";

/** Path whose folder shrinks and whose file name stays. */
export function Path({ path }: { path: string }) {
  const shown = escapeUntrusted(path);
  const slash = shown.lastIndexOf("/", shown.length - 2) + 1;
  return (
    <span class="path" title={shown}>
      {slash > 0 && <span class="folder">{shown.slice(0, slash)}</span>}
      <span class="name">{shown.slice(slash)}</span>
    </span>
  );
}
