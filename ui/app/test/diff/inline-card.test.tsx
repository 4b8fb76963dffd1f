/** The ten rendering tests of seed `000…`. */

import { cleanup, render } from "@testing-library/preact";
import { afterEach, describe, expect, it } from "vitest";

import { InlineBox } from "../../src/diff/inlineBox.js";
import { InlineCard, type InlineLines } from "../../src/diff/inlineCard.js";

afterEach(cleanup);

const DIFF: InlineLines = {
  lines: [
    { type: "context", text: "unchanged line" },
    { type: "remove", text: "old line" },
    { type: "add", text: "new line" },
    { type: "context", text: "unchanged line" },
  ],
  truncated: false,
  totalLines: 4,
};

const draw = (diff: InlineLines | undefined) => render(<InlineCard diff={diff} />).container;

describe("inline diff card", () => {
  it("card_with_lines_has_seed_structure", () => {
    const diff = { ...DIFF, truncated: true, totalLines: 46 };
    expect(draw(diff).innerHTML).toBe(
      '<div class="inline-diff">' +
        '<div class="diff-line diff-context">  unchanged line</div>' +
        '<div class="diff-line diff-remove">- old line</div>' +
        '<div class="diff-line diff-add">+ new line</div>' +
        '<div class="diff-line diff-context">  unchanged line</div>' +
        '<div class="diff-truncated">... 42 more lines</div>' +
        "</div>",
    );
  });

  it("line_types_have_their_classes", () => {
    const lines = [...draw(DIFF).querySelectorAll(".inline-diff > .diff-line")];
    expect(lines.map((line) => line.className)).toEqual([
      "diff-line diff-context",
      "diff-line diff-remove",
      "diff-line diff-add",
      "diff-line diff-context",
    ]);
  });

  it("added_line_has_plus_prefix", () => {
    expect(draw(DIFF).querySelector(".diff-add")?.textContent).toBe("+ new line");
  });

  it("removed_line_has_minus_prefix", () => {
    expect(draw(DIFF).querySelector(".diff-remove")?.textContent).toBe("- old line");
  });

  it("context_line_has_two_spaces", () => {
    expect(draw(DIFF).querySelector(".diff-context")?.textContent).toBe("  unchanged line");
  });

  it("truncated_card_states_missing_lines", () => {
    const truncated = draw({ ...DIFF, truncated: true, totalLines: 204 }).querySelector(".diff-truncated");
    expect(truncated?.textContent).toBe("... 200 more lines");
  });

  it("whole_card_has_no_truncation_line", () => {
    expect(draw(DIFF).querySelector(".diff-truncated")).toBeNull();
  });

  it("markup_in_a_line_stays_text", () => {
    const text = '<img src=x onerror="alert(1)"> & </div><script>alert(2)</script>';
    const container = draw({ ...DIFF, lines: [{ type: "add", text }] });
    expect(container.querySelector("img, script")).toBeNull();
    expect(container.querySelector(".diff-add")?.textContent).toBe(`+ ${text}`);
    expect(container.innerHTML).toContain("&lt;img");
  });

  it("missing_diff_draws_nothing", () => {
    expect(draw(undefined).innerHTML).toBe("");
    expect(draw({ lines: [], truncated: false, totalLines: 0 }).innerHTML).toBe("");
  });

  it("card_never_expands", () => {
    const { container } = render(
      <InlineBox
        files={[{ path: "a.rs", added: 100, removed: 0, card: { ...DIFF, truncated: true, totalLines: 100 } }]}
        onViewDiff={() => undefined}
        onUndo={() => undefined}
      />,
    );
    expect(container.querySelectorAll(".inline-diff button, .inline-diff details, [aria-expanded]")).toHaveLength(0);
    expect([...container.querySelectorAll("button")].map((button) => button.textContent)).toEqual([
      "View diff v",
      "Undo u",
    ]);
  });
});
