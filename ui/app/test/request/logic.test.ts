import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";

import {
  ModeState_AutoApply,
  ModeStateSchema,
  OverrideScope,
  PauseReason_Kind,
  PauseReasonSchema,
  RequestCostSchema,
  RequestEnd_Kind,
  RequestMode,
  RequestStatus,
} from "@sayso/client/proto/request";
import { GetModesResponse_SessionSchema, ShowRequestResponseSchema } from "@sayso/client/proto/request_service";

import { answerText } from "../../src/request/answer-text.js";
import {
  autoApplyState,
  bannerWords,
  editorState,
  editsOf,
  idleReminder,
  isEditable,
  MODE_LABELS,
  previewReason,
} from "../../src/request/banner-state.js";
import { axisTicks, barOf, stack, sumBars, suspectedBreaks } from "../../src/request/cost-model.js";
import { matchesFilter, parseFilter } from "../../src/request/filter.js";
import { conversationChoices, conversationLabel, followTarget } from "../../src/request/follow.js";
import {
  ExactNumber,
  formatPath,
  leafRows,
  parseJson,
  parsePath,
  readLeaf,
  valueAt,
} from "../../src/request/leaves.js";
import { dropIndex, movePin, shiftPin } from "../../src/request/order.js";
import { initiallyOpen, listRows } from "../../src/request/rows.js";
import { planDelete, planKeepFrom, planShrink } from "../../src/request/selection.js";
import { buildTree, messageNumber, pairedSections } from "../../src/request/tree.js";
import {
  cardTitle,
  contextLabel,
  deadlineWords,
  kindWord,
  pauseWords,
  percent,
  tokenWords,
} from "../../src/request/words.js";
import { conversation, part, section, summary } from "./builders.js";

const BODY =
  '{"messages":[{"role":"user","content":[{"type":"text","text":"a\\nb"}]}],"temperature":1.0,"seed":9007199254740993}';

describe("keys and values", () => {
  test.each([
    ["messages[3].content[1].text", ["messages", 3, "content", 1, "text"]],
    ["temperature", ["temperature"]],
    ['metadata["a.b"]', ["metadata", "a.b"]],
    ["tools[0].input_schema", ["tools", 0, "input_schema"]],
  ])("path_%s_round_trips", (path, steps) => {
    expect(parsePath(path)).toEqual(steps);
    expect(formatPath(steps)).toBe(path);
  });

  test("path_with_tag_is_rejected", () => expect(parsePath("messages[0]<tag>")).toBeNull());

  test("tree_has_one_row_per_leaf", () => {
    const value = valueAt(parseJson(BODY), ["messages", 0]);
    const rows = leafRows(value ?? null, "messages[0]", new Set());
    expect(rows.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
      "leaf messages[0].role",
      "group messages[0].content",
      "group messages[0].content[0]",
      "leaf messages[0].content[0].type",
      "leaf messages[0].content[0].text",
    ]);
  });

  test("closed_group_hides_its_leaves", () => {
    const value = valueAt(parseJson(BODY), ["messages", 0]) ?? null;
    const rows = leafRows(value, "messages[0]", new Set(["messages[0].content"]));
    expect(rows.map(({ label, text }) => `${label}=${text}`)).toEqual(["role=user", "content=1 item"]);
  });

  test("root_leaf_is_one_row", () => {
    expect(leafRows("claude", "model", new Set())).toMatchObject([{ path: "model", kind: "leaf", text: "claude" }]);
  });

  test("prototype_keys_are_no_values", () => expect(valueAt(parseJson("{}"), ["constructor"])).toBeUndefined());

  test("large_number_keeps_its_digits", () => {
    const seed = valueAt(parseJson(BODY), ["seed"]);
    // Engines without source access give a double.
    if (seed instanceof ExactNumber) expect(seed.source).toBe("9007199254740993");
    else expect(seed).toBe(9007199254740992);
  });

  test.each([
    ["string", "a", "a", { kind: "unchanged" }],
    ["string", "a", "true", { kind: "set", value: "true" }],
    ["number", "1", " 0.5", { kind: "setJson", value: "0.5" }],
    ["boolean", "true", "false", { kind: "setJson", value: "false" }],
    ["null", "null", '"x"', { kind: "setJson", value: '"x"' }],
  ] as const)("leaf_%s_from_%s_to_%s", (type, before, after, edit) => {
    expect(readLeaf({ type, text: before }, after)).toEqual(edit);
  });

  test("leaf_that_is_no_json_is_named", () => {
    expect(readLeaf({ type: "number", text: "1" }, "one")).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("“one”") as string,
    });
  });
});

describe("tree of sections", () => {
  const tree = buildTree(conversation());

  test("groups_are_messages_tools_options", () => {
    expect(tree.groups.map(({ name, nodes }) => [name, nodes.length])).toEqual([
      ["Messages", 5],
      ["Tools", 1],
      ["Request options", 1],
    ]);
  });

  test("section_with_unknown_parent_stands_at_top", () => {
    expect(buildTree([part("a", "gone")]).groups[0]?.nodes).toHaveLength(1);
  });

  test("call_is_paired_with_whole_result_message", () => {
    expect(pairedSections(tree, "call.1").map(({ id }) => id)).toEqual(["result"]);
  });

  test("result_message_is_paired_with_call_part", () => {
    expect(pairedSections(tree, "result").map(({ id }) => id)).toEqual(["call.1"]);
  });

  test("deleted_pair_is_not_named_again", () => {
    const sections = conversation().map((item) => (item.id === "call.1" ? { ...item, deleted: true } : item));
    expect(pairedSections(buildTree(sections), "result")).toEqual([]);
  });

  test("message_number_counts_from_one", () => expect(messageNumber(tree, "call.1")).toBe(3));

  test("tools_and_options_start_collapsed", () => {
    const open = initiallyOpen(tree);
    expect([open.has("bash"), open.has("temperature"), open.has("ask")]).toEqual([false, false, true]);
  });

  test("pinned_section_stands_in_pinned_group_only", () => {
    const rows = listRows({
      tree,
      pinned: ["more"],
      cacheBreak: "call",
      captured: undefined,
      showOptions: true,
      sideBelow: true,
    });
    expect(rows.map((row) => (row.kind === "section" ? row.node.section.id : row.kind))).toEqual([
      "pinned",
      "heading",
      "system",
      "ask",
      "break",
      "call",
      "result",
      "heading",
      "bash",
      "heading",
      "temperature",
      "side",
    ]);
  });

  test("capture_shows_first_sections_only", () => {
    const rows = listRows({
      tree,
      pinned: [],
      cacheBreak: undefined,
      captured: 2,
      showOptions: false,
      sideBelow: false,
    });
    expect(rows.flatMap((row) => (row.kind === "section" ? [row.node.section.id] : []))).toEqual(["system", "ask"]);
    expect(rows.some((row) => row.kind === "omitted" && row.text.startsWith("3 sections"))).toBe(true);
  });
});

describe("order of pinned sections", () => {
  test.each([
    ["a", 2, ["b", "c", "a"], undefined],
    ["c", 0, ["c", "a", "b"], "a"],
    ["a", 1, ["b", "a", "c"], "c"],
  ])("move_%s_to_%i", (id, to, order, before) => {
    expect(movePin(["a", "b", "c"], id, to)).toEqual({ order, before });
  });

  test("move_to_own_place_is_nothing", () => expect(movePin(["a", "b"], "a", 0)).toBeNull());
  test("shift_beyond_the_end_is_nothing", () => expect(shiftPin(["a", "b"], "b", 1)).toBeNull());
  test("shift_up_names_the_next_section", () => expect(shiftPin(["a", "b"], "b", -1)?.before).toBe("a"));
  test("drop_below_all_is_the_end", () => expect(dropIndex([10, 30], 40)).toBe(2));
  test("drop_between_takes_the_place", () => expect(dropIndex([10, 30], 20)).toBe(1));
});

describe("banner", () => {
  const paused = summary(1n, { held: true, status: RequestStatus.PAUSED });

  test("mode_labels_are_those_of_the_design", () => {
    expect(MODE_LABELS.map(([, label]) => label)).toEqual([
      "Send normally",
      "Pause & review every turn",
      "Auto-apply saved edits",
    ]);
  });

  test("paused_request_says_it_is_the_request_itself", () => {
    expect(editorState(paused)).toBe("paused");
    expect(bannerWords(paused)).toEqual({
      title: "Request paused",
      cue: "This is the request itself, not the visible message.",
    });
  });

  test("disposed_session_shows_discarded_banner", () => {
    const ended = { kind: RequestEnd_Kind.SESSION_DISPOSED, message: "Context changed – request discarded" };
    const request = summary(1n, { status: RequestStatus.ENDED, ended });
    expect(bannerWords(request)).toEqual({ title: "Request discarded", cue: "Context changed – request discarded" });
  });

  test("sent_request_is_immutable", () => {
    const sent = summary(1n, { status: RequestStatus.SENT });
    expect(bannerWords(sent).title).toBe("Request in flight");
    expect(isEditable(create(ShowRequestResponseSchema, { summary: sent }))).toBe(false);
  });

  test("send_normally_is_preview_only", () => {
    const show = create(ShowRequestResponseSchema, { summary: summary(1n), mode: { mode: RequestMode.OFF } });
    expect(previewReason(show)).toBe("In “Send normally”, requests are preview only.");
  });

  test("subagent_reason_is_shown", () => {
    const show = create(ShowRequestResponseSchema, { summary: summary(1n), exemptReason: "a subagent's request" });
    expect(previewReason(show)).toBe("a subagent's request");
  });

  test("pins_do_not_make_a_request_dirty", () => {
    const show = create(ShowRequestResponseSchema, { edits: [{ targetKind: "pins" }, { targetKind: "contentText" }] });
    expect(editsOf(show)).toBe(1);
  });

  test.each([
    [{ mode: RequestMode.OFF }, ""],
    [{ mode: RequestMode.OFF, pauseNext: true }, "The next turn is paused before it is sent."],
    [{ mode: RequestMode.INTERCEPT_ALWAYS }, "Each turn is paused before it is sent."],
    [
      { mode: RequestMode.AUTO_OVERRIDE, autoApply: ModeState_AutoApply.CAPTURING },
      "The next turn is paused so that you can edit it. Its edits are saved.",
    ],
    [{ mode: RequestMode.AUTO_OVERRIDE, autoApply: ModeState_AutoApply.APPLYING }, ""],
  ])("idle_reminder_of_%o", (mode, words) => {
    expect(idleReminder(create(ModeStateSchema, mode))).toBe(words);
  });

  test("applying_shows_time_of_saving", () => {
    const mode = create(ModeStateSchema, {
      mode: RequestMode.AUTO_OVERRIDE,
      autoApply: ModeState_AutoApply.APPLYING,
      savedMs: 5n,
      saved: 2n,
    });
    expect(autoApplyState(mode, undefined, (time) => `T${time}`)).toEqual({
      isCapturing: false,
      subtitle: "Applying (saved T5)",
      canCapture: true,
      canPauseNext: true,
      canRemove: true,
    });
  });

  test("capturing_hides_actions_without_effect", () => {
    const mode = create(ModeStateSchema, { mode: RequestMode.AUTO_OVERRIDE, autoApply: ModeState_AutoApply.CAPTURING });
    expect(autoApplyState(mode, 6n, String)).toMatchObject({
      subtitle: "Capturing next turn · showing first 6 sections",
      canCapture: false,
      canPauseNext: false,
    });
  });

  test("other_modes_have_no_auto_apply_banner", () => {
    expect(autoApplyState(create(ModeStateSchema, { mode: RequestMode.OFF }), undefined, String)).toBeNull();
  });

  test.each([
    [undefined, 0, ""],
    [10_000n, 1_000, "agent waits 9 s more"],
    [533_000n, 1_000, "agent waits 8 min 52 s more"],
    [500n, 1_000, "the agent may have given up"],
  ])("deadline_%s", (deadline, now, words) => expect(deadlineWords(deadline, now)).toBe(words));

  test("pause_by_rule_names_the_rule", () => {
    expect(pauseWords(create(PauseReasonSchema, { kind: PauseReason_Kind.RULE, rule: "large" }))).toBe(
      "paused by the rule large",
    );
  });
});

describe("conversation picker", () => {
  test("label_has_location_name_and_tail", () => {
    expect(conversationLabel("claude", "Add --json", "6f0c-9f3c")).toBe("claude · Add --json · …9f3c");
  });

  test("choices_are_by_recency_and_prefer_paused", () => {
    const sessions = [
      create(GetModesResponse_SessionSchema, { session: "old-aaaa", agent: "codex", lastMs: 1n }),
      create(GetModesResponse_SessionSchema, { session: "new-bbbb", agent: "claude", lastMs: 9n }),
    ];
    const received = { origin: { agent: "claude", session: "new-bbbb" } };
    const requests = [
      summary(7n, { received, timeMs: 8n }),
      summary(5n, { received, timeMs: 7n, held: true, status: RequestStatus.PAUSED }),
    ];
    const choices = conversationChoices(sessions, requests, () => undefined);
    expect(choices.map(({ label, request, held }) => [label, request, held])).toEqual([
      ["claude · …bbbb", 5n, 1],
      ["codex · …aaaa", null, 0],
    ]);
  });

  test.each([
    ["off_keeps_the_selection", { isFollowing: false, present: 1n, before: [1n], held: [1n, 2n] }, null],
    ["on_takes_the_newest", { isFollowing: true, present: 1n, before: [1n], held: [1n, 2n, 3n] }, 3n],
    ["on_without_news_stays", { isFollowing: true, present: 1n, before: [1n, 2n], held: [1n, 2n] }, null],
    ["without_selection_shows_the_first", { isFollowing: false, present: null, before: [], held: [4n, 5n] }, 4n],
  ])("follow_%s", (_name, options, target) => expect(followTarget(options)).toBe(target));
});

describe("filter of the log", () => {
  const request = summary(3n, {
    received: {
      origin: { agent: "claude", session: "s-1" },
      model: "claude-sonnet",
      path: "/v1/messages",
      body: { size: 77_000n },
    },
    edited: true,
    answer: { status: 429, error: "slow down" },
  });

  test.each([
    ["agent:claude", true],
    ["-agent:claude", false],
    ["model:opus", false],
    ["status:failed", true],
    ["status:429", true],
    ["is:edited size>50k", true],
    ["size<50k", false],
    ['"slow down"', true],
    ["request:3", true],
    ["is:paused", false],
    ["", true],
  ])("filter_%s", (text, matches) => {
    const filter = parseFilter(text);
    expect(filter.problem).toBeNull();
    expect(matchesFilter(request, filter.terms)).toBe(matches);
  });

  test.each([
    ["colour:red", "“colour” is no key"],
    ["size:big", "size takes a bound"],
    ["is:odd", "is takes edited"],
  ])("wrong_filter_%s_is_explained", (text, problem) => expect(parseFilter(text).problem).toContain(problem));
});

describe("selected messages", () => {
  const tree = buildTree(conversation());

  test("deletion_takes_the_pair_along", () => {
    const plan = planDelete(tree, new Set(["result"]));
    expect(plan.targets.map(({ id }) => id)).toEqual(["result", "call.1"]);
    expect(plan.tokensSaved).toBe(20);
  });

  test("keep_from_here_spares_instructions", () => {
    expect(planKeepFrom(tree, "more").targets.map(({ id }) => id)).toEqual(["ask", "call", "result"]);
  });

  test("shrink_counts_large_results_only", () => {
    const plan = planShrink(tree, new Set(["ask", "result"]));
    expect(plan.targets.map(({ id }) => id)).toEqual(["result.0"]);
    expect(plan.tokensSaved).toBe(7);
  });
});

describe("cost", () => {
  const cost = create(RequestCostSchema, {
    input: 100n,
    cacheRead: 900n,
    cacheWritten: 0n,
    output: 50n,
    nanoDollars: 5n,
    cacheShare: 0.9,
  });
  const bar = barOf("1", "1", "Request 1", cost, 1n);

  test("classes_are_stacked_with_gaps", () => {
    expect(stack(bar, 0.1, 200).map(({ class: name, y, height }) => [name, y, height])).toEqual([
      ["read", 110, 90],
      ["fresh", 99, 10],
      ["output", 93, 5],
    ]);
  });

  test("unknown_price_makes_the_sum_unknown", () => {
    expect(sumBars([bar, { ...bar, nanoDollars: null }])).toMatchObject({
      requests: 2,
      nanoDollars: null,
      cacheShare: 0.9,
    });
  });

  test.each([
    [0, [0]],
    [31_000, [0, 10_000, 20_000, 30_000]],
    [90, [0, 25, 50, 75]],
  ])("axis_up_to_%i", (max, ticks) => expect(axisTicks(max)).toEqual(ticks));

  test("fall_of_cache_reads_is_suspected", () => {
    const broken = create(RequestCostSchema, { cacheRead: 0n, cacheWritten: 9_000n });
    const warm = create(RequestCostSchema, { cacheRead: 9_000n });
    const requests = [summary(1n, { cost: warm }), summary(2n, { cost: broken }), summary(3n, { cost: warm })];
    expect(suspectedBreaks(requests)).toEqual([2n]);
  });
});

describe("words", () => {
  test.each([
    ["Contents of /work/docs/AGENTS.md (project):\nx", "Context: AGENTS.md"],
    ['<file path="src/table.rs">', "Context: table.rs"],
    ["<environment_context>\n<cwd>", "Context: <environment_context>"],
    ["plain", "Context"],
  ])("context_label_of_%s", (content, label) => expect(contextLabel(section("a", { content }))).toBe(label));

  test("title_is_the_first_line_of_the_prompt", () => {
    const [, ask, ...rest] = conversation();
    const children = rest.filter((item) => item.parent === "ask");
    expect(ask && cardTitle(ask, children)).toBe("Add a **flag**.");
  });

  test("tool_result_has_its_own_badge", () => {
    const result = conversation().find(({ id }) => id === "result");
    expect(result && kindWord(result)).toBe("tool result");
  });

  test("estimates_are_marked", () => {
    expect(tokenWords(section("a", { tokens: { count: 1_206n } }).tokens)).toBe("≈1,206 tokens");
  });

  test.each([
    [0.08, "8 %"],
    [0.001, "<1 %"],
    [0, "0 %"],
  ])("share_%f", (share, words) => expect(percent(share)).toBe(words));

  test("scope_defaults_to_session", async () => {
    const { scopeWord } = await import("../../src/request/words.js");
    expect(scopeWord(OverrideScope.UNSPECIFIED)).toBe("Session");
  });
});

describe("text of a response", () => {
  test.each([
    ['{"content":[{"type":"text","text":"Hi"}]}', "Hi"],
    ['{"choices":[{"message":{"content":"Hi"}}]}', "Hi"],
    ['{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}', "Hi"],
    ['event: x\ndata: {"delta":{"type":"text_delta","text":"H"}}\n\ndata: {"delta":{"text":"i"}}\n', "Hi"],
    ['data: {"choices":[{"delta":{"content":"Hi"}}]}\ndata: [DONE]\n', "Hi"],
    ['data: {"type":"response.output_text.delta","delta":"Hi"}\n', "Hi"],
    ['{"error":{"message":"slow down"}}', "slow down"],
    ["<html>", "<html>"],
  ])("answer_%s", (body, text) => expect(answerText(body)).toBe(text));
});
