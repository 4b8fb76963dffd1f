import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";

import { Change_Status, type Change } from "../src/generated/sayso/v1/change_pb.js";
import { EventSchema, Outcome_Kind } from "../src/generated/sayso/v1/event_pb.js";
import { FileRecord_AppliedPart } from "../src/generated/sayso/v1/file_pb.js";
import { foldChange } from "../src/store/fold-change.js";
import { applying, decided, ended, type Kind, proposed, undone } from "./support/events.js";

function fold(...kinds: Kind[]): Change | undefined {
  let change: Change | undefined;
  kinds.forEach((kind, index) => {
    change = foldChange(change, create(EventSchema, { number: BigInt(index + 1), timeMs: 5n, kind }));
  });
  return change;
}

test.each([
  ["proposed", [proposed(1n)], Change_Status.PENDING],
  ["applying", [proposed(1n), decided(1n), applying(1n)], Change_Status.INTERRUPTED],
  ["applied", [proposed(1n), decided(1n), applying(1n), ended(1n)], Change_Status.APPLIED],
  ["denied", [proposed(1n), ended(1n, Outcome_Kind.DENIED)], Change_Status.DENIED],
  ["stale", [proposed(1n), applying(1n), ended(1n, Outcome_Kind.STALE)], Change_Status.STALE],
  ["cancelled", [proposed(1n), ended(1n, Outcome_Kind.CANCELLED)], Change_Status.CANCELLED],
  ["failed", [proposed(1n), ended(1n, Outcome_Kind.FAILED)], Change_Status.FAILED],
  ["undone", [proposed(1n), applying(1n), ended(1n), undone(1n, 2n)], Change_Status.UNDONE],
] as const)("change_after_%s_has_status", (_, kinds, status) => {
  expect(fold(...kinds)?.status).toBe(status);
});

test("failed_change_keeps_reason_and_no_record", () => {
  const change = fold(proposed(1n), applying(1n), ended(1n, Outcome_Kind.FAILED));
  expect(change?.failedReason).toBe("disk is full");
  expect(change?.applied).toBeUndefined();
});

test("other_bytes_than_proposed_are_partial", () => {
  const change = fold(proposed(1n), decided(1n), applying(1n, 3n), ended(1n));
  expect(change?.partial).toBe(true);
  expect(change?.files[0]?.appliedPart).toBe(FileRecord_AppliedPart.PARTIAL);
});

test("redo_applies_undone_change_again", () => {
  const redone: Kind = { case: "redone", value: { change: 1n, by: 3n, paths: [] } };
  const change = fold(proposed(1n), applying(1n), ended(1n), undone(1n, 2n), redone);
  expect(change?.status).toBe(Change_Status.APPLIED);
  expect(change?.undoneBy).toBeUndefined();
});

test("event_of_unknown_change_adds_none", () => {
  expect(fold(decided(1n))).toBeUndefined();
});

test("fold_leaves_given_change_untouched", () => {
  const before = fold(proposed(1n));
  if (!before) throw new Error("no change");
  foldChange(before, create(EventSchema, { number: 2n, kind: ended(1n, Outcome_Kind.DENIED) }));
  expect(before.status).toBe(Change_Status.PENDING);
});
