import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";

import type { SessionInfo } from "@sayso/client";
import { InboxItemSchema } from "@sayso/client/proto/inbox";

import { completionAt, splitPath } from "../src/composer/completion.js";
import { mentionedFiles } from "../src/composer/mentions.js";
import { commandOf } from "../src/composer/slash.js";
import { locationName, sessionTitle } from "../src/session/name.js";
import { sessionStatus } from "../src/session/status.js";
import { isPlainBeyondThisMachine } from "../src/shell/banners.js";
import { toolWords } from "../src/stream/tool-words.js";
import { dayName, formatDollars, formatElapsed } from "../src/times.js";

const session: SessionInfo = {
  session: "s1",
  agent: "claude",
  location: "/home/me/ledger/",
  parent: undefined,
  startedMs: 1n,
  activeMs: 2n,
  ended: false,
  turn: undefined,
  title: undefined,
  lastChange: undefined,
  lastRequest: undefined,
};

test.each([
  ["Read", { file_path: "a.rs", offset: 3, limit: 10 }, { verb: "Read", path: "a.rs", detail: "lines 3–12" }],
  ["str_replace", { path: "a.rs" }, { verb: "Edit", path: "a.rs" }],
  ["Bash", { command: "ls -l" }, { verb: "Run", target: "ls -l" }],
  ["shell", { command: ["ls", "-l"] }, { verb: "Run", target: "ls -l" }],
  ["Grep", { pattern: "fn main" }, { verb: "Search", target: "fn main" }],
  ["mcp__x__y", { query: "q" }, { verb: "mcp__x__y", target: "q" }],
])("call_of_%s_has_words", (tool, values, words) => {
  expect(toolWords(tool, JSON.stringify(values))).toMatchObject(words);
});

test("shortened_arguments_give_verb_alone", () => {
  expect(toolWords("Edit", '{"file_path": "a.r')).toMatchObject({ verb: "Edit", path: null });
});

test("waiting_change_comes_before_running_turn", () => {
  const item = create(InboxItemSchema, {
    key: "change:1",
    session: "s1",
    files: 2n,
    subject: { case: "change", value: { change: 1n } },
  });
  const status = sessionStatus({ ...session, turn: "t" }, [item], undefined, undefined);
  expect(status).toMatchObject({ group: "waiting", text: "write to 2 files", waiting: 1 });
});

test("turn_to_review_does_not_wait", () => {
  const item = create(InboxItemSchema, {
    key: "turn:s1/t",
    session: "s1",
    files: 3n,
    subject: { case: "turn", value: { session: "s1", turn: "t" } },
  });
  const status = sessionStatus(session, [item], undefined, undefined);
  expect(status).toMatchObject({ group: "past", text: "3 files to review", waiting: 0, icon: "later" });
});

test("ended_session_does_not_run", () => {
  expect(sessionStatus({ ...session, turn: "t", ended: true }, [], undefined, undefined).group).toBe("past");
});

test("session_without_prompt_is_named_by_agent", () => {
  expect(sessionTitle(session, "0123abcd")).toBe("claude …abcd");
  expect(sessionTitle({ ...session, title: "Fix\u202Eit" }, "s1")).toBe("Fix\\u{202e}it");
  expect(locationName(session.location)).toBe("ledger");
});

test.each([
  [{ protocol: "http:", hostname: "127.0.0.1" }, false],
  [{ protocol: "http:", hostname: "localhost" }, false],
  [{ protocol: "http:", hostname: "[::1]" }, false],
  [{ protocol: "https:", hostname: "box.example" }, false],
  [{ protocol: "http:", hostname: "192.168.1.5" }, true],
  [{ protocol: "http:", hostname: "127.0.0.1.example" }, true],
])("plain_http_warning_for_%o", (location, isWarned) => {
  expect(isPlainBeyondThisMachine(location)).toBe(isWarned);
});

test("word_under_cursor_is_completed", () => {
  expect(completionAt("see @src/ma now", 11)).toEqual({ sign: "@", word: "src/ma", start: 4, end: 11 });
  expect(completionAt("/to", 3)).toMatchObject({ sign: "/", word: "to" });
  expect(completionAt("a /to", 5)).toBeNull();
  expect(splitPath("src/bin/ma")).toEqual({ directory: "src/bin", start: "ma" });
});

test("prompt_names_its_files_once", () => {
  expect(mentionedFiles("compare @a.rs with @b/c.rs and @a.rs, not me@home")).toEqual(["a.rs", "b/c.rs"]);
});

test("only_known_commands_are_commands", () => {
  expect(commandOf("/todos")).toBe("todos");
  expect(commandOf("/etc/passwd")).toBeNull();
  expect(commandOf("/constructor")).toBeNull();
});

test("times_have_short_words", () => {
  expect(formatElapsed(31)).toBe("31 ms");
  expect(formatElapsed(6_240)).toBe("6.2 s");
  expect(formatElapsed(48_000)).toBe("48 s");
  expect(formatElapsed(125_000)).toBe("2 min");
  expect(formatDollars(14_000_000n)).toBe("$0.014");
  expect(formatDollars(710_000_000n)).toBe("$0.71");
  const now = new Date(2026, 10, 19, 12).getTime();
  expect(dayName(BigInt(now - 1_000), now)).toBe("Today");
  expect(dayName(BigInt(now - 20 * 3_600_000), now)).toBe("Yesterday");
});
