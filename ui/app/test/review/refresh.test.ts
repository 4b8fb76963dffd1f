import { describe, expect, it } from "vitest";

import { describeRefresh } from "../../src/review/refresh.js";
import { approveLabel } from "../../src/review/selection.js";
import { countsOf, GUARD_MS } from "../../src/review/state.js";
import { Driver, file, review } from "./states.js";

const BEFORE = review([file("a.txt", 2), file("b.txt", 1)]);
const AFTER = review([file("a.txt", 3, { after: { kind: "file", hash: "other" } }), file("b.txt", 1)], {
  previewHash: "hash-2",
});

function refreshedDriver(): Driver {
  const driver = new Driver(BEFORE);
  driver.send({ kind: "onScreen", path: "a.txt", hunks: [1] }, { kind: "onScreen", path: "b.txt", hunks: [1] });
  driver.press(" ", "}", " ", "n").type("not yet");
  const refresh = describeRefresh(BEFORE, AFTER, "filesChanged", undefined);
  return driver.send({ kind: "refreshed", review: AFTER, refresh, time: 2000 });
}

describe("refreshed preview", () => {
  it("refresh_pauses_decisions_until_acknowledged", () => {
    const driver = refreshedDriver().press("Escape");
    driver.time = 9000;
    expect(driver.press("y").decision).toBeUndefined();
    driver.press("Enter", "y");
    expect(driver.decision).toBeUndefined();
    driver.time = 9000 + GUARD_MS;
    expect(driver.press("y").decision?.previewHash).toBe("hash-2");
  });

  it("typed_reason_is_kept_but_not_sent", () => {
    const driver = refreshedDriver();
    driver.time = 9000;
    expect(driver.confirm().decision).toBeUndefined();
    expect(driver.state.dialog).toEqual({ kind: "deny", text: "not yet" });
  });

  it("selection_and_marks_of_changed_files_are_reset", () => {
    const { state } = refreshedDriver();
    expect(Object.keys(state.selection)).toEqual(["b.txt"]);
    expect(state.seen).toEqual({ "b.txt": [1] });
    expect(approveLabel(countsOf(state))).toBe("Approve 3 of 4 hunks, 3 not seen");
  });

  it("refresh_says_cause_and_difference", () => {
    expect(describeRefresh(BEFORE, AFTER, "filesChanged", undefined).changes).toEqual([
      "Files changed on disk after the preview.",
      "a.txt: +3 −0, before +2 −0.",
    ]);
    const other = review([file("b.txt", 1), file("c.txt", 1)]);
    expect(describeRefresh(BEFORE, other, "predecessorApplied", 6).changes).toEqual([
      "Change 6 was applied.",
      "c.txt is new in this change.",
      "a.txt is no longer part of this change.",
    ]);
    expect(describeRefresh(BEFORE, BEFORE, "predecessorDropped", 6).changes).toEqual([
      "Change 6 was not applied.",
      "The effect on 2 files is the same.",
    ]);
  });

  it("settled_change_stays_settled", () => {
    const driver = new Driver(BEFORE).send({ kind: "settled", settled: { status: "denied", by: "elsewhere" } });
    driver.send({ kind: "refreshed", review: AFTER, refresh: { reason: "filesChanged", changes: [] }, time: 0 });
    expect(driver.state.phase.kind).toBe("settled");
  });
});

describe("seen marks", () => {
  it("new_marks_are_sent_once", () => {
    const driver = new Driver(BEFORE).send(
      { kind: "onScreen", path: "a.txt", hunks: [1, 2] },
      { kind: "onScreen", path: "a.txt", hunks: [1] },
    );
    expect(driver.effects).toEqual([{ kind: "markSeen", path: "a.txt", hunks: [1, 2] }]);
    expect(approveLabel(countsOf(driver.state))).toBe("Approve, 1 hunk not seen");
  });

  it("marks_of_other_surfaces_count", () => {
    const driver = new Driver(BEFORE).send({
      kind: "seenElsewhere",
      seen: [
        { path: "a.txt", hunks: [1, 2] },
        { path: "b.txt", hunks: [1] },
      ],
    });
    expect([driver.effects, approveLabel(countsOf(driver.state))]).toEqual([[], "Approve"]);
  });

  it("left_out_hunks_are_named", () => {
    const driver = new Driver(BEFORE).press("]", " ");
    const counts = countsOf(driver.state);
    expect([approveLabel(counts), counts.left]).toEqual(["Approve 2 of 3 hunks, 2 not seen", ["hunk 2"]]);
  });
});
