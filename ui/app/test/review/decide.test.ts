import { describe, expect, it } from "vitest";

import { approveLabel } from "../../src/review/selection.js";
import { countsOf, GUARD_MS } from "../../src/review/state.js";
import { COMMAND, Driver, file, review, TOOL } from "./states.js";

const TWO = () => review([file("a.txt", 2), file("b.txt", 1)]);
const ONE = () => review([file("a.txt", 2)]);

describe("answers follow file_review of crates/present", () => {
  it("all_hunks_selected_approves", () => {
    expect(new Driver(TWO()).press("y").decision).toEqual({
      change: 7,
      previewHash: "hash-1",
      answer: { kind: "approve" },
      comments: [],
    });
  });

  it("deselected_hunk_names_the_others", () => {
    const decision = new Driver(ONE()).press(" ", "y").decision;
    expect(decision?.answer).toEqual({ kind: "files", files: { "a.txt": { kind: "hunks", hunks: ["2"] } } });
  });

  it("split_hunk_is_decided_in_parts", () => {
    const driver = new Driver(ONE()).send({ kind: "hunksLoaded", path: "a.txt", parts: { 1: 2, 2: 1 } });
    driver.press("s").send({ kind: "cursor", cursor: { file: 0, hunk: 1, part: 2, row: 4 } });
    expect(driver.press(" ", "y").decision?.answer).toEqual({
      kind: "files",
      files: { "a.txt": { kind: "hunks", hunks: ["1.1", "2"] } },
    });
  });

  it("split_hunk_with_all_parts_is_whole", () => {
    const driver = new Driver(ONE()).send({ kind: "hunksLoaded", path: "a.txt", parts: { 1: 2, 2: 1 } });
    expect(driver.press("s", "y").decision?.answer).toEqual({ kind: "approve" });
  });

  it("split_of_deselected_hunk_stays_deselected", () => {
    const driver = new Driver(ONE()).send({ kind: "hunksLoaded", path: "a.txt", parts: { 1: 2, 2: 1 } });
    driver.press(" ", "s");
    expect(driver.state.selection["a.txt"]?.deselected).toEqual(["1.1", "1.2"]);
    expect(countsOf(driver.state).selected).toBe(1);
  });

  it("hunk_of_one_part_is_not_split", () => {
    const driver = new Driver(ONE()).send({ kind: "hunksLoaded", path: "a.txt", parts: { 1: 1, 2: 1 } });
    expect(driver.press("s").state.selection).toEqual({});
  });

  it("deselected_file_is_denied", () => {
    expect(new Driver(TWO()).press("x", "y").decision?.answer).toEqual({
      kind: "files",
      files: { "a.txt": { kind: "deny" }, "b.txt": { kind: "approve" } },
    });
    expect(new Driver(TWO()).press("x", "X", "y").decision?.answer).toEqual({ kind: "approve" });
  });

  it("empty_selection_never_decides", () => {
    const driver = new Driver(ONE()).press("x", "y");
    expect(driver.decision).toBeUndefined();
    expect(driver.state.problem).toBe("Nothing is selected. Select a hunk, or deny.");
  });

  it("file_with_problem_gets_no_answer", () => {
    const shown = review([file("a.txt", 1), file("b.txt", 0, { problem: "the text is gone" })]);
    expect(new Driver(shown).press("y").decision?.answer).toEqual({
      kind: "files",
      files: { "a.txt": { kind: "approve" } },
    });
    const only = review([file("b.txt", 0, { problem: "the text is gone" })]);
    expect(new Driver(only).press("y").decision).toBeUndefined();
  });

  it("settled_file_needs_no_answer", () => {
    const shown = review([file("a.txt", 1, { settled: true }), file("b.txt", 1)]);
    const driver = new Driver(shown);
    expect(driver.state.cursor).toEqual({ file: 1, hunk: 1 });
    expect(driver.press("y").decision?.answer).toEqual({ kind: "approve" });
  });

  it("changed_encoding_is_decided_as_a_whole", () => {
    const format = { lineEnding: "LF" as const, byteOrderMark: false, finalNewline: true, lines: 2 };
    const shown = review([
      file("a.txt", 3, {
        oldFormat: { ...format, encoding: "UTF-16 LE" },
        newFormat: { ...format, encoding: "UTF-8" },
      }),
      file("b.txt", 1),
    ]);
    const driver = new Driver(shown).press(" ", "y");
    expect(driver.decision?.answer).toEqual({
      kind: "files",
      files: { "a.txt": { kind: "deny" }, "b.txt": { kind: "approve" } },
    });
  });

  it("file_without_hunks_is_decided_as_a_whole", () => {
    const shown = review([file("logo.png", 0, { noDiff: "binary" }), file("b.txt", 1)]);
    expect(new Driver(shown).press(" ", "y").decision?.answer).toEqual({
      kind: "files",
      files: { "logo.png": { kind: "deny" }, "b.txt": { kind: "approve" } },
    });
  });

  it("path_of_object_prototype_is_a_file", () => {
    const shown = review([file("constructor", 1), file("__proto__x", 1)]);
    const driver = new Driver(shown).press(" ", "y");
    expect(driver.decision?.answer).toMatchObject({ kind: "files", files: { constructor: { kind: "deny" } } });
  });
});

describe("deny, message, rule", () => {
  it("deny_with_reason_quotes_it", () => {
    const decision = new Driver(ONE()).press("n").type("  use serde ").confirm().decision;
    expect(decision?.answer).toEqual({ kind: "deny", reason: "use serde" });
  });

  it("deny_with_empty_line_has_no_reason", () => {
    expect(new Driver(ONE()).press("n").confirm().decision?.answer).toEqual({ kind: "deny" });
  });

  it("deny_line_goes_back_on_escape", () => {
    const driver = new Driver(ONE()).press("n").type("no").press("Escape");
    expect([driver.state.dialog, driver.decision]).toEqual([undefined, undefined]);
  });

  it("message_goes_with_the_approval", () => {
    const decision = new Driver(ONE()).press("m").type("and document it").confirm().decision;
    expect(decision).toMatchObject({ answer: { kind: "approve" }, message: "and document it" });
  });

  it("empty_message_decides_nothing", () => {
    expect(new Driver(ONE()).press("m").type("  ").confirm().decision).toBeUndefined();
  });

  it("rule_is_shown_before_it_counts", () => {
    const suggestion = { toml: "rule", explanation: "", inspected: 3, covered: [] };
    const driver = new Driver(ONE()).press("A", "y");
    expect(driver.decision).toBeUndefined();
    driver.send({ kind: "suggestion", suggestion }).press("y");
    expect(driver.decision).toMatchObject({ answer: { kind: "approve" }, remember: { scope: "session" } });
  });

  it("other_scope_asks_for_another_rule", () => {
    const suggestion = { toml: "rule", explanation: "", inspected: 3, covered: [] };
    const driver = new Driver(ONE()).press("A").send({ kind: "suggestion", suggestion });
    driver.send({ kind: "scope", scope: "always" });
    expect(driver.effects.at(-1)).toEqual({ kind: "suggestRule", scope: "always" });
    expect(driver.press("y").decision).toBeUndefined();
  });

  it("comments_are_sent_with_the_verdict", () => {
    const target = { path: "a.txt", line: 3, side: "proposed" as const };
    const driver = new Driver(ONE()).send({ kind: "commentOn", target }).type("why?").confirm();
    expect(driver.press("y").decision?.comments).toEqual([{ ...target, text: "why?" }]);
  });

  it("comment_on_same_line_replaces_and_clears", () => {
    const target = { path: "a.txt", line: 3, side: "proposed" as const };
    const driver = new Driver(ONE()).send({ kind: "commentOn", target }).type("why?").confirm();
    driver.send({ kind: "commentOn", target });
    expect(driver.state.dialog).toMatchObject({ text: "why?" });
    expect(driver.type("so").confirm().state.comments).toEqual([{ ...target, text: "so" }]);
    driver.send({ kind: "commentOn", target }).type("").confirm();
    expect(driver.state.comments).toEqual([]);
  });
});

describe("edits", () => {
  it("edited_file_is_shown_before_it_counts", () => {
    const driver = new Driver(ONE()).press("e");
    expect(driver.effects.at(-1)).toEqual({ kind: "loadText", subject: { kind: "file", path: "a.txt" } });
    driver.send({ kind: "textLoaded", text: "old" }).type("mine").confirm();
    expect(driver.state.dialog).toEqual({ kind: "edited", subject: { kind: "file", path: "a.txt" }, text: "mine" });
    driver.press("y");
    expect([driver.decision, driver.state.dialog]).toEqual([undefined, undefined]);
    expect(approveLabel(countsOf(driver.state))).toBe("Approve as edited, 2 hunks not seen");
    expect(driver.press("y").decision?.answer).toEqual({
      kind: "files",
      files: { "a.txt": { kind: "editedText", text: "mine" } },
    });
  });

  it("discarded_edit_leaves_the_proposal", () => {
    const driver = new Driver(ONE()).press("e").send({ kind: "textLoaded", text: "old" }).type("mine").confirm();
    driver.press("n");
    expect(driver.press("y").decision?.answer).toEqual({ kind: "approve" });
    const kept = new Driver(ONE()).press("e").send({ kind: "textLoaded", text: "o" }).type("mine").confirm().press("y");
    expect(kept.send({ kind: "discardEdit", path: "a.txt" }).press("y").decision?.answer).toEqual({ kind: "approve" });
  });

  it("late_text_does_not_overwrite_typing", () => {
    const driver = new Driver(ONE()).press("e").type("typed").send({ kind: "textLoaded", text: "loaded" });
    expect(driver.state.dialog).toMatchObject({ text: "typed" });
  });

  it("deleted_file_cannot_be_edited", () => {
    const driver = new Driver(review([file("a.txt", 1, { operation: "delete", after: { kind: "absent" } })])).press(
      "e",
    );
    expect(driver.state.dialog).toBeUndefined();
    expect(driver.announced).toEqual(["There is no text to edit; take or leave it."]);
  });

  it("edited_script_replaces_the_command", () => {
    const driver = new Driver(review([], COMMAND)).press("e").type("make -n").confirm().press("y", "y");
    expect(driver.decision?.answer).toEqual({ kind: "command", command: "make -n" });
    const unchanged = new Driver(review([], COMMAND)).press("e").confirm().press("y", "y");
    expect(unchanged.decision?.answer).toEqual({ kind: "approve" });
  });

  it("edited_arguments_must_be_an_object", () => {
    const driver = new Driver(review([], TOOL)).press("e").type("[1]").confirm();
    expect(driver.state.dialog).toMatchObject({ kind: "edit", error: "The arguments must be a JSON object." });
    driver.type('{"a":2}').confirm().press("y", "y");
    expect(driver.decision?.answer).toEqual({ kind: "arguments", json: '{"a":2}' });
  });
});

describe("no accidental approval", () => {
  it("decisions_before_the_guard_are_ignored", () => {
    const driver = new Driver(ONE());
    driver.time = GUARD_MS - 1;
    expect(driver.press("y").decision).toBeUndefined();
    driver.time = GUARD_MS;
    expect(driver.press("y").decision).toBeDefined();
  });

  it("paste_guards_decisions", () => {
    const driver = new Driver(ONE()).send({ kind: "paste", time: 1000 });
    driver.time = 1000 + GUARD_MS - 1;
    expect(driver.press("y").decision).toBeUndefined();
    driver.time = 1000 + GUARD_MS;
    expect(driver.press("y").decision).toBeDefined();
  });

  it("space_and_enter_never_decide", () => {
    const driver = new Driver(ONE()).press(" ", " ", "Enter", "Enter");
    expect(driver.decision).toBeUndefined();
  });

  it("verdict_is_sent_once", () => {
    const driver = new Driver(ONE()).press("y", "y", "n").confirm();
    expect(driver.effects.filter(({ kind }) => kind === "decide")).toHaveLength(1);
  });

  it("failed_verdict_can_be_sent_again", () => {
    const driver = new Driver(ONE()).press("y").send({ kind: "failed", problem: "the engine stopped", time: 500 });
    expect(driver.state.problem).toBe("the engine stopped");
    driver.time = 500 + GUARD_MS;
    driver.press("y");
    expect(driver.effects.filter(({ kind }) => kind === "decide")).toHaveLength(2);
  });

  it("reconnection_guards_decisions", () => {
    const driver = new Driver(ONE()).send({ kind: "connection", connected: false, time: 800 });
    expect(driver.press("y").decision).toBeUndefined();
    driver.send({ kind: "connection", connected: true, time: 1000 });
    driver.time = 1000;
    expect(driver.press("y").decision).toBeUndefined();
    driver.time = 1000 + GUARD_MS;
    expect(driver.press("y").decision).toBeDefined();
  });
});
