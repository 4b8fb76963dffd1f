import { describe, expect, it } from "vitest";

import type { DiffFile, TextFormat } from "../../src/diff/rows.js";
import {
  count,
  escapeUntrusted,
  escapeUntrustedLines,
  fileFacts,
  fileMarkers,
  formatDuration,
  formatSize,
  hunkName,
  hunkRange,
  noDiffSentence,
  sideFacts,
} from "../../src/diff/words.js";

const FORMAT: TextFormat = { encoding: "UTF-8", lineEnding: "LF", byteOrderMark: false, finalNewline: true, lines: 3 };

const file = (facts: Partial<DiffFile>): DiffFile => ({
  path: "a.sh",
  operation: "update",
  before: { kind: "file", size: 10, mode: 0o100644 },
  after: { kind: "file", size: 10, mode: 0o100644 },
  added: 1,
  removed: 1,
  hunks: 1,
  conflicts: 0,
  ...facts,
});

describe("words", () => {
  it("new_and_deleted_files_have_markers", () => {
    expect(fileMarkers(file({ operation: "create" }))).toEqual(["--- /dev/null", "+++ a.sh (new file)"]);
    expect(fileMarkers(file({ operation: "delete" }))).toEqual(["--- a.sh", "+++ /dev/null (deleted)"]);
    expect(fileMarkers(file({}))).toBeUndefined();
  });

  it("format_and_mode_changes_are_facts", () => {
    const changed = file({
      oldFormat: FORMAT,
      newFormat: { ...FORMAT, encoding: "UTF-16 LE", lineEnding: "CRLF", byteOrderMark: true },
      after: { kind: "file", mode: 0o100755 },
    });
    expect(fileFacts(changed)).toEqual([
      "line endings change from LF to CRLF",
      "encoding changes from UTF-8 to UTF-16 LE",
      "a byte order mark is added",
      "mode changes from 0644 to 0755",
    ]);
    expect(fileFacts(file({ oldFormat: FORMAT, newFormat: FORMAT }))).toEqual([]);
  });

  it("link_and_executable_are_facts", () => {
    expect(fileFacts(file({ after: { kind: "link", target: "b" } }))).toEqual(["file becomes link to b"]);
    const made = file({ operation: "create", before: { kind: "absent" }, after: { kind: "file", mode: 0o100755 } });
    expect(fileFacts(made)).toEqual(["executable"]);
  });

  it("missing_rows_have_a_sentence", () => {
    expect(noDiffSentence(file({ noDiff: "unchanged" }))).toBe("(no changes)");
    expect(noDiffSentence(file({ noDiff: "binary", after: { kind: "file", size: 2_000_000 } }))).toBe(
      "Binary content: 10 B before, 2,000 kB after. It is not shown by line.",
    );
    expect(noDiffSentence(file({ problem: "the text is gone" }))).toBe(
      "This change cannot be applied: the text is gone",
    );
    expect(noDiffSentence(file({}))).toBeUndefined();
  });

  it("mode_change_is_not_called_no_change", () => {
    const mode = file({ noDiff: "unchanged", after: { kind: "file", mode: 0o100755 } });
    expect(noDiffSentence(mode)).toBe("The content does not change.");
  });

  it("hunk_has_name_and_range", () => {
    const hunk = {
      number: 2,
      parts: 1,
      added: 3,
      removed: 1,
      oldStart: 12,
      oldLines: 1,
      newStart: 12,
      newLines: 3,
      firstRow: 0,
      rows: 4,
    };
    expect(hunkName(hunk, 2, 5)).toBe("hunk 2 of 5, 3 added, 1 removed");
    expect(hunkRange(hunk)).toBe("@@ -12 +12,3 @@");
  });

  it("numbers_have_units", () => {
    expect([count(1, "hunk"), count(1200, "line")]).toEqual(["1 hunk", "1,200 lines"]);
    expect([0, 59_999, 60_000, 7_200_000, 200_000_000].map(formatDuration)).toEqual([
      "0 s",
      "59 s",
      "1 min",
      "2 h",
      "2 d",
    ]);
    expect([999, 1001, 20_000_000].map(formatSize)).toEqual(["999 B", "2 kB", "20 MB"]);
    expect(sideFacts({ ...FORMAT, lineEnding: "CRLF" }, { kind: "file" })).toBe("3 lines, CRLF");
    expect(sideFacts(undefined, { kind: "absent" })).toBe("no file");
  });

  it("hidden_characters_are_escaped", () => {
    expect(escapeUntrusted("a\u202eb\u0007c\u200bd\u3164")).toBe("a\\u{202e}b\\u{7}c\\u{200b}d\\u{3164}");
    expect(escapeUntrusted("a\nb\tc")).toBe("a b c");
    expect(escapeUntrustedLines("a\r\nb\tc\u001b")).toBe("a\nb\tc\\u{1b}");
    expect(escapeUntrusted("Größe 😀")).toBe("Größe 😀");
  });
});
