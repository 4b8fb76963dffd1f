import type { Tokens } from "@sayso/client/proto/request";

import { percent, tokenNumber } from "./words.js";

/** Tokens, a bar and the share of the request, in three columns. */
export function Share({
  tokens,
  share,
  isDeleted,
}: {
  tokens: Tokens | undefined;
  share: number;
  isDeleted?: boolean;
}) {
  const number = isDeleted === true && tokens?.count === 0n ? "" : tokenNumber(tokens);
  return (
    <span class="share numeric" role="img" aria-label={shareName(number, share, isDeleted === true)}>
      <span>{isDeleted === true && number !== "" ? `−${number.replace("≈", "")}` : number.replace("≈", "")}</span>
      <Meter share={isDeleted === true ? 0 : share} />
      <span>{isDeleted === true ? "0 %" : percent(share)}</span>
    </span>
  );
}

function shareName(number: string, share: number, isDeleted: boolean): string {
  return isDeleted ? "not sent" : `${number} tokens, ${percent(share)} of the request`;
}

export function Meter({ share, width = 44 }: { share: number; width?: number }) {
  const filled = Math.max(0, Math.min(1, share)) * width;
  return (
    <svg class="meter" width={width} height="6" viewBox={`0 0 ${width} 6`} aria-hidden="true">
      <rect class="meter-all" width={width} height="6" rx="3" />
      {filled > 0 && <rect class="meter-part" width={Math.max(2, filled)} height="6" rx={filled < 6 ? 1.5 : 3} />}
    </svg>
  );
}
