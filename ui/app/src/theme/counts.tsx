import { formatNumber } from "../diff/words.js";

/** Numbers of added and removed lines, with words for screen readers. Zeros are left out. */
export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span class="numeric counts">
      {added > 0 && (
        <span class="added">
          +{formatNumber(added)}
          <span class="visually-hidden"> added</span>
        </span>
      )}
      {added > 0 && removed > 0 && " "}
      {removed > 0 && (
        <span class="removed">
          {"\u2212"}
          {formatNumber(removed)}
          <span class="visually-hidden"> removed</span>
        </span>
      )}
    </span>
  );
}
