import { create } from "@bufbuild/protobuf";
import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import {
  ModeState_AutoApply,
  ModeStateSchema,
  OverrideScope,
  RequestEnd_Kind,
  RequestMode,
  RequestProblemSchema,
  RequestStatus,
  Section_Kind,
} from "@sayso/client/proto/request";
import { HeldRequests, ListSubagentsResponse_RunSchema } from "@sayso/client/proto/request_service";

import { announcement } from "../../src/announce.js";
import { RequestEditor } from "../../src/request/editor.js";
import { RequestLog } from "../../src/request/log.js";
import { requestPreferences } from "../../src/request/request-preferences.js";
import { RequestsView } from "../../src/request/requests-page.js";
import { SubagentMonitor } from "../../src/request/subagent-monitor.js";
import { section, summary } from "./builders.js";
import { FakeEngine, renderWith, SESSION, stubLayout } from "./fake-engine.js";

let engine: FakeEngine;

beforeEach(() => {
  stubLayout();
  engine = new FakeEngine();
  requestPreferences.autoFollow.value = true;
  requestPreferences.metadataFields.value = ["sessionId", "requestId"];
  requestPreferences.extraSections.value = ["requestOptions"];
});
afterEach(cleanup);

const opened = vi.fn<(request: bigint) => void>();

async function openEditor() {
  opened.mockClear();
  const { router } = renderWith(engine, <RequestEditor request={5n} onOpen={opened} />);
  await screen.findByRole("heading", { level: 2 });
  await waitFor(() => expect(document.querySelectorAll("[data-section]").length).toBeGreaterThan(3));
  return router;
}

const card = (id: string): HTMLElement => {
  const element = document.querySelector<HTMLElement>(`[data-section="${id}"]`);
  if (!element) throw new Error(`no card ${id}`);
  return element;
};
const inCard = (id: string) => within(card(id));
const button = (name: string | RegExp) => screen.getByRole("button", { name });
const lastEdit = () => engine.edits.at(-1)?.edit;

async function openTree(id: string) {
  fireEvent.click(inCard(id).getByRole("button", { name: "Edit" }));
  await waitFor(() => expect(card(id).querySelector("[data-leaf]")).not.toBeNull());
}

describe("layout", () => {
  test("header_has_title_reset_and_summary", async () => {
    await openEditor();
    const banner = screen.getByRole("region", { name: "Request paused" });
    expect(within(banner).getByRole("button", { name: "Reset" })).toBeTruthy();
    expect(banner.textContent).toContain("claude-sonnet-4-5");
    expect(banner.textContent).toContain("panel");
    expect(banner.textContent).toContain("request 5");
  });

  test("status_banner_has_tokens_sections_and_time", async () => {
    await openEditor();
    const banner = screen.getByRole("region", { name: "Request paused" });
    expect(banner.textContent).toContain("7 sections");
    expect(banner.textContent).toContain("≈100 tokens");
    expect(banner.querySelector("time")?.textContent).toMatch(/^\d\d:\d\d:\d\d$/);
  });

  test("banner_stands_outside_the_scroller", async () => {
    await openEditor();
    expect(document.querySelector(".section-scroller .request-banner")).toBeNull();
    expect(document.querySelector(".request-banner ~ .request-columns .section-scroller")).not.toBeNull();
  });

  test("sections_are_a_vertical_list_of_cards", async () => {
    await openEditor();
    expect([...document.querySelectorAll("[data-section]")].map((item) => item.getAttribute("data-section"))).toEqual([
      "system",
      "ask",
      "call",
      "result",
      "more",
      "bash",
      "temperature",
    ]);
  });
});

describe("section chrome", () => {
  test("header_has_caret_badge_label_tokens", async () => {
    await openEditor();
    const toggle = inCard("ask").getByRole("button", { name: /Add a \*\*flag\*\*/ });
    expect(toggle.getAttribute("aria-expanded")).toBe("true");
    expect(toggle.querySelector(".kind-badge")?.textContent).toBe("user");
    expect(inCard("ask").getByRole("img", { name: "≈10 tokens, 10 % of the request" })).toBeTruthy();
  });

  test("caret_collapses_and_expands", async () => {
    await openEditor();
    const toggle = inCard("ask").getByRole("button", { name: /flag/ });
    fireEvent.click(toggle);
    expect(toggle.getAttribute("aria-expanded")).toBe("false");
    expect(card("ask").querySelector(".section-body")).toBeNull();
  });

  test("toolbar_has_edit_delete_stick_with_tooltips", async () => {
    await openEditor();
    const toolbar = inCard("ask").getByRole("group", { name: "Actions of the section" });
    const buttons = within(toolbar).getAllByRole("button");
    expect(buttons.map((item) => item.textContent)).toEqual(["Edit", "Delete", "Stick"]);
    expect(buttons.every((item) => item.title !== "" && item.tabIndex === 0)).toBe(true);
  });

  test("stick_pins_to_top_and_unsticks", async () => {
    await openEditor();
    fireEvent.click(inCard("more").getByRole("button", { name: "Stick" }));
    const group = await screen.findByRole("region", { name: "Pinned sections" });
    expect(within(group).getByText("Pinned", { selector: "h3" })).toBeTruthy();
    fireEvent.click(inCard("more").getByRole("button", { name: "Unstick" }));
    await waitFor(() => expect(screen.queryByRole("region", { name: "Pinned sections" })).toBeNull());
  });

  test("arrow_keys_reorder_pinned_sections", async () => {
    engine.pinned = ["system", "more"];
    await openEditor();
    fireEvent.keyDown(inCard("more").getByRole("button", { name: "Move more" }), { key: "ArrowUp" });
    await waitFor(() => expect(engine.pinned).toEqual(["more", "system"]));
    expect(engine.edits.at(-1)?.edit.case).toBe("pin");
  });

  test("drag_reorders_pinned_sections", async () => {
    engine.pinned = ["system", "more"];
    await openEditor();
    const grip = inCard("more").getByRole("button", { name: "Move more" });
    fireEvent.pointerDown(grip, { button: 0, pointerId: 1 });
    // Without layout, all rows are at 0: a pointer above it is before the first row.
    fireEvent.pointerMove(grip, { pointerId: 1, clientY: -5 });
    fireEvent.pointerUp(grip, { pointerId: 1 });
    await waitFor(() => expect(engine.pinned).toEqual(["more", "system"]));
  });

  test("deleted_section_has_restore_only", async () => {
    engine.sections = engine.sections.map((item) => (item.id === "more" ? { ...item, deleted: true } : item));
    await openEditor();
    expect(card("more").classList.contains("deleted")).toBe(true);
    expect(inCard("more").queryByRole("button", { name: "Edit" })).toBeNull();
    fireEvent.click(inCard("more").getByRole("button", { name: "Restore" }));
    await waitFor(() => expect(lastEdit()?.case).toBe("restore"));
  });

  test("tool_call_shows_name_id_and_arguments", async () => {
    await openEditor();
    const tool = inCard("call").getByRole("region", { name: "call.1" });
    expect(tool.textContent).toContain("Grep");
    expect(tool.textContent).toContain("toolu_1");
    expect(tool.querySelector("pre")?.textContent).toContain('"pattern": "println!"');
  });

  test("context_part_is_labelled_with_its_file", async () => {
    await openEditor();
    expect(inCard("ask").getByText("Context: AGENTS.md")).toBeTruthy();
  });

  test("kinds_have_their_own_style", async () => {
    await openEditor();
    expect(card("system").className).toContain("kind-system");
    expect(card("ask").className).toContain("kind-user");
  });

  test("body_is_markdown_until_edited", async () => {
    await openEditor();
    expect(card("ask").querySelector(".markdown strong")?.textContent).toBe("flag");
    await openTree("ask");
    expect(card("ask").querySelector(".markdown")).toBeNull();
  });
});

describe("editing flow", () => {
  test("edit_expands_and_shows_keys_and_values", async () => {
    await openEditor();
    fireEvent.click(inCard("ask").getByRole("button", { name: /flag/ }));
    await openTree("ask");
    expect(card("ask").querySelector(".leaf-tree")?.textContent).toContain("role");
  });

  test("only_leaves_are_editable", async () => {
    await openEditor();
    await openTree("ask");
    const names = inCard("ask")
      .getAllByRole("button", { name: /^Edit messages/ })
      .map((item) => item.dataset.leaf);
    expect(names).toContain("messages[0].content[1].text");
    expect(names).not.toContain("messages[0].content");
    expect(inCard("ask").getByRole("button", { name: /content/, expanded: true })).toBeTruthy();
  });

  test("one_leaf_is_one_edit_with_its_path", async () => {
    await openEditor();
    await openTree("ask");
    fireEvent.click(button(/^Edit messages\[0\].content\[1\].text/));
    const field = screen.getByRole("textbox", { name: "Value of messages[0].content[1].text" });
    fireEvent.input(field, { target: { value: "Add two flags." } });
    fireEvent.keyDown(field, { key: "Enter", ctrlKey: true });
    await waitFor(() => expect(engine.edits).toHaveLength(1));
    expect(engine.edits[0]?.revision).toBe(0n);
    expect(lastEdit()).toMatchObject({
      case: "set",
      value: { target: { target: { case: "path", value: "messages[0].content[1].text" } }, value: "Add two flags." },
    });
    await waitFor(() => expect(announcement.value).toContain("4 tokens more"));
  });

  test("escape_discards_the_draft", async () => {
    await openEditor();
    await openTree("ask");
    fireEvent.click(button(/^Edit messages\[0\].role/));
    const field = screen.getByRole("textbox", { name: "Value of messages[0].role" });
    fireEvent.input(field, { target: { value: "system" } });
    fireEvent.keyDown(field, { key: "Escape" });
    expect(screen.queryByRole("textbox", { name: /Value of/ })).toBeNull();
    expect(engine.edits).toHaveLength(0);
  });

  test("wrong_json_is_explained_and_not_sent", async () => {
    await openEditor();
    await openTree("temperature");
    fireEvent.click(button(/^Edit temperature/));
    const field = screen.getByRole("textbox", { name: "Value of temperature" });
    fireEvent.input(field, { target: { value: "warm" } });
    fireEvent.keyDown(field, { key: "Enter", ctrlKey: true });
    expect((await screen.findByRole("alert")).textContent).toContain("“warm” is not JSON");
    expect(engine.edits).toHaveLength(0);
  });

  test("recorded_request_is_preview_only", async () => {
    engine.request = { ...engine.request, held: false, status: RequestStatus.ANSWERED };
    engine.mode = create(ModeStateSchema, { mode: RequestMode.OFF });
    await openEditor();
    expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
    expect(document.body.textContent).toContain("In “Send normally”, requests are preview only.");
  });

  test("delete_names_the_paired_result_first", async () => {
    await openEditor();
    fireEvent.click(inCard("result").getByRole("button", { name: "Delete" }));
    const question = screen.getByRole("alertdialog", { name: "Paired tool call or result" });
    expect(question.textContent).toContain("in section 3");
    expect(engine.edits).toHaveLength(0);
    fireEvent.click(within(question).getByRole("button", { name: "Delete both" }));
    await waitFor(() => expect(engine.edits).toHaveLength(2));
  });

  test("delete_without_pair_is_one_edit", async () => {
    await openEditor();
    fireEvent.click(inCard("more").getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(card("more").classList.contains("deleted")).toBe(true));
    expect(lastEdit()).toMatchObject({ case: "delete", value: { target: { case: "section", value: "more" } } });
  });

  test("reset_clears_the_dirty_badge", async () => {
    await openEditor();
    fireEvent.click(inCard("more").getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(screen.getByTestId("dirty").textContent).toBe("1 edit"));
    fireEvent.click(button("Reset"));
    await waitFor(() => expect(screen.getByTestId("dirty").textContent).toBe("No edits"));
  });

  test("control_z_undoes_and_redoes", async () => {
    await openEditor();
    fireEvent.click(inCard("more").getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(screen.getByTestId("dirty").textContent).toBe("1 edit"));
    fireEvent.keyDown(document.body, { key: "z", ctrlKey: true });
    await waitFor(() => expect(lastEdit()?.case).toBe("undo"));
    await waitFor(() => expect(button("Redo").hasAttribute("disabled")).toBe(false));
    fireEvent.keyDown(document.body, { key: "Z", ctrlKey: true, shiftKey: true });
    await waitFor(() => expect(lastEdit()?.case).toBe("redo"));
  });

  test("append_adds_a_user_message", async () => {
    await openEditor();
    fireEvent.click(button("Append message"));
    fireEvent.input(screen.getByRole("textbox", { name: "Text of the user message" }), {
      target: { value: "And test it." },
    });
    fireEvent.click(button("Append"));
    await waitFor(() => expect(lastEdit()).toMatchObject({ case: "append", value: "And test it." }));
  });
});

describe("token visibility", () => {
  test("banner_shows_share_of_the_window", async () => {
    await openEditor();
    expect(document.querySelector(".banner-facts")?.textContent).toContain("10.0 % of 1,000");
  });

  test("pinned_heading_sums_tokens", async () => {
    engine.pinned = ["system", "more"];
    await openEditor();
    const group = screen.getByRole("region", { name: "Pinned sections" });
    expect(within(group).getByRole("img", { name: "≈20 tokens, 20 % of the request" })).toBeTruthy();
  });
});

describe("conversation targeting", () => {
  test("picker_is_enabled_and_by_recency", async () => {
    await openEditor();
    const picker = await screen.findByRole("combobox", { name: "Conversation" });
    await waitFor(() => expect(picker.querySelectorAll("option")).toHaveLength(2));
    expect(picker.hasAttribute("disabled")).toBe(false);
    expect([...picker.querySelectorAll("option")].map((item) => item.textContent)).toEqual([
      "claude · Add --json · …9f3c · 1 paused",
      "codex · …1111",
    ]);
  });

  test("follow_on_switches_to_new_paused_request", async () => {
    await openEditor();
    await screen.findByRole("option", { name: /1 paused/ });
    engine.others = [summary(9n, { held: true, status: RequestStatus.PAUSED })];
    engine.lastEvent.value += 1n;
    await waitFor(() => expect(opened).toHaveBeenCalledWith(9n));
  });

  test("follow_off_keeps_the_selection", async () => {
    requestPreferences.autoFollow.value = false;
    await openEditor();
    await screen.findByRole("option", { name: /1 paused/ });
    engine.others = [summary(9n, { held: true, status: RequestStatus.PAUSED, conversation: "other" })];
    engine.lastEvent.value += 1n;
    await waitFor(() => expect(screen.getAllByRole("option")).toHaveLength(3));
    expect(opened).not.toHaveBeenCalled();
  });

  test("followed_editor_flashes_once", async () => {
    renderWith(engine, <RequestsView />);
    await waitFor(() => expect(announcement.value).toBe("Now showing request 5"));
    cleanup();
    await openEditor();
    expect(document.querySelector(".request-editor.flash")).not.toBeNull();
    await waitFor(() => expect(document.querySelector(".request-editor.flash")).toBeNull());
  });

  test("toggle_is_a_switch_and_is_kept", async () => {
    await openEditor();
    const toggle = screen.getByRole("switch", { name: "Auto-follow latest" });
    expect(toggle.getAttribute("aria-checked")).toBe("true");
    fireEvent.click(toggle);
    expect(requestPreferences.autoFollow.value).toBe(false);
  });
});

describe("extras", () => {
  test("request_options_are_an_outline_with_copy", async () => {
    await openEditor();
    const metadata = screen.getByRole("region", { name: "Metadata" });
    expect(within(metadata).getByRole("button", { name: /requestOptions/, expanded: true })).toBeTruthy();
    expect(within(metadata).getByRole("button", { name: "Copy temperature" })).toBeTruthy();
  });

  test("raw_request_is_opt_in", async () => {
    await openEditor();
    expect(screen.queryByRole("button", { name: /^rawRequest/ })).toBeNull();
    requestPreferences.extraSections.value = ["rawRequest"];
    expect(await screen.findByRole("button", { name: /^rawRequest/, expanded: false })).toBeTruthy();
  });

  test("empty_field_list_keeps_token_budget", async () => {
    requestPreferences.metadataFields.value = [];
    await openEditor();
    const metadata = screen.getByRole("region", { name: "Metadata" });
    expect(within(metadata).queryByText("sessionId")).toBeNull();
    expect(within(metadata).getByText("100 of 1,000 · 10 %")).toBeTruthy();
  });

  test("metadata_fields_are_configurable_and_ordered", async () => {
    await openEditor();
    fireEvent.click(button("Configure"));
    fireEvent.click(screen.getByRole("checkbox", { name: "model" }));
    expect(requestPreferences.metadataFields.value).toEqual(["sessionId", "requestId", "model"]);
    expect(screen.getByRole("button", { name: "Copy model" })).toBeTruthy();
  });

  test("payload_shows_the_same_request", async () => {
    await openEditor();
    fireEvent.click(button("Raw payload"));
    const payload = await screen.findByLabelText("Payload");
    await waitFor(() => expect(payload.textContent).toContain('"temperature": 1'));
    expect(button("Copy")).toBeTruthy();
    expect(button("Open")).toBeTruthy();
  });
});

describe("empty and error states", () => {
  test("waiting_says_how_to_get_a_request", async () => {
    engine.request = { ...engine.request, held: false, status: RequestStatus.ANSWERED };
    renderWith(engine, <RequestsView />);
    expect(await screen.findByRole("heading", { name: "Waiting for chat request" })).toBeTruthy();
    expect(document.body.textContent).toContain("sayso run -- claude");
    expect(document.body.textContent).toContain("Live Request Editor idle — send a chat request to populate metadata.");
  });

  test("idle_banner_reminds_that_prompts_pause", async () => {
    engine.request = { ...engine.request, held: false, status: RequestStatus.ANSWERED };
    renderWith(engine, <RequestsView />);
    expect(await screen.findByText("Each turn is paused before it is sent.")).toBeTruthy();
  });

  test("paused_request_is_shown_without_selection", async () => {
    const { router } = renderWith(engine, <RequestsView />);
    await waitFor(() => expect(router.location.value.route).toEqual({ view: "request", request: 5n }));
  });

  test("unparsable_body_is_one_raw_section", async () => {
    engine.sections = [section("raw", { content: "not json" })];
    renderWith(engine, <RequestEditor request={5n} onOpen={opened} />);
    await waitFor(() => expect(card("raw")).toBeTruthy());
  });
});

describe("accessibility", () => {
  test("dirty_badge_is_a_polite_live_region", async () => {
    await openEditor();
    expect(screen.getByTestId("dirty").getAttribute("aria-live")).toBe("polite");
    expect(screen.getByTestId("dirty").textContent).toBe("No edits");
  });

  test("deleted_section_announces_deleted", async () => {
    await openEditor();
    fireEvent.click(inCard("more").getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(card("more").getAttribute("aria-label")).toContain("deleted"));
    await waitFor(() => expect(announcement.value).toContain("deleted"));
  });
});

describe("modes and auto-apply", () => {
  test("picker_has_the_three_labels", async () => {
    await openEditor();
    const modes = await screen.findByRole("group", { name: "Mode of new requests" });
    expect(
      within(modes)
        .getAllByRole("button")
        .map((item) => item.textContent),
    ).toEqual(["Send normally", "Pause & review every turn", "Auto-apply saved edits"]);
    await waitFor(() =>
      expect(within(modes).getByRole("button", { pressed: true }).textContent).toBe("Pause & review every turn"),
    );
  });

  test("send_normally_asks_about_paused_requests", async () => {
    await openEditor();
    await waitFor(() => expect(button("Send normally").hasAttribute("disabled")).toBe(false));
    fireEvent.click(button("Send normally"));
    expect(engine.modesSet).toHaveLength(0);
    fireEvent.click(button("Cancel them"));
    await waitFor(() => expect(engine.modesSet).toHaveLength(1));
    expect(engine.modesSet[0]).toMatchObject({
      session: SESSION,
      mode: RequestMode.OFF,
      heldRequests: HeldRequests.CANCEL,
    });
  });

  test("applying_banner_has_scope_time_and_actions", async () => {
    engine.mode = create(ModeStateSchema, {
      mode: RequestMode.AUTO_OVERRIDE,
      autoApply: ModeState_AutoApply.APPLYING,
      savedMs: 1_795_064_373_540n,
      saved: 2n,
    });
    await openEditor();
    const banner = await screen.findByRole("region", { name: "Auto-apply edits" });
    expect(banner.textContent).toMatch(/Auto-apply edits·Session/);
    expect(banner.textContent).toMatch(/Applying \(saved \d\d:\d\d\)/);
    fireEvent.click(within(banner).getByRole("button", { name: "Capture new edits" }));
    await waitFor(() => expect(engine.captured).toEqual([SESSION]));
  });

  test("capturing_banner_hides_redundant_actions", async () => {
    engine.mode = create(ModeStateSchema, {
      mode: RequestMode.AUTO_OVERRIDE,
      autoApply: ModeState_AutoApply.CAPTURING,
    });
    engine.previewLimit = 6n;
    await openEditor();
    const banner = await screen.findByRole("region", { name: "Auto-apply edits" });
    expect(banner.textContent).toContain("Capturing next turn · showing first 6 sections");
    expect(within(banner).queryByRole("button", { name: "Capture new edits" })).toBeNull();
    expect(within(banner).queryByRole("button", { name: "Remove saved edits" })).toBeNull();
  });

  test("remove_saved_edits_clears_the_scope", async () => {
    engine.mode = create(ModeStateSchema, { mode: RequestMode.AUTO_OVERRIDE, saved: 2n });
    await openEditor();
    fireEvent.click(await screen.findByRole("button", { name: "Remove saved edits" }));
    await waitFor(() => expect(engine.removed).toEqual([OverrideScope.SESSION]));
  });

  test("pause_next_turn_keeps_the_mode", async () => {
    engine.mode = create(ModeStateSchema, { mode: RequestMode.OFF });
    await openEditor();
    await waitFor(() => expect(button(/^Pause next turn/).hasAttribute("disabled")).toBe(false));
    fireEvent.click(button(/^Pause next turn/));
    await waitFor(() => expect(engine.paused).toEqual([SESSION]));
    expect(engine.modesSet).toHaveLength(0);
  });

  test("override_chip_shows_scope_time_and_diff", async () => {
    engine.sections = engine.sections.map((item) =>
      item.id === "ask.1"
        ? {
            ...item,
            edited: true,
            appliedOverride: {
              $typeName: "sayso.v1.Section.AppliedOverride",
              scope: OverrideScope.WORKSPACE,
              savedMs: 1n,
            },
          }
        : item,
    );
    await openEditor();
    expect(card("ask").querySelector(".edited-chip")?.textContent).toMatch(/Edited \(Workspace, \d\d:\d\d\)·Show diff/);
    fireEvent.click(inCard("ask").getByRole("button", { name: "Show diff" }));
    expect(await screen.findByText(/\+Add two flags/)).toBeTruthy();
  });
});

describe("interception", () => {
  test("resume_sends_the_revision_on_screen", async () => {
    await openEditor();
    fireEvent.click(inCard("more").getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(screen.getByTestId("dirty").textContent).toBe("1 edit"));
    await waitFor(() => expect(button(/^Resume send/).getAttribute("aria-disabled")).toBe("false"));
    fireEvent.click(button(/^Resume send/));
    await waitFor(() => expect(engine.resumed).toEqual([{ request: 5n, revision: 1n }]));
  });

  test("r_resumes_outside_fields", async () => {
    await openEditor();
    fireEvent.keyDown(document.body, { key: "r" });
    await waitFor(() => expect(engine.resumed).toHaveLength(1));
  });

  test("open_draft_blocks_the_send", async () => {
    await openEditor();
    await openTree("ask");
    fireEvent.click(button(/^Edit messages\[0\].role/));
    fireEvent.click(button(/^Resume send/));
    await waitFor(() => expect(announcement.value).toContain("A value is still open"));
    expect(engine.resumed).toHaveLength(0);
  });

  test("cancel_cancels_before_sending", async () => {
    await openEditor();
    fireEvent.click(button("Cancel"));
    await waitFor(() => expect(engine.canceled).toEqual([5n]));
    await waitFor(() => expect(announcement.value).toContain("Request canceled before sending"));
  });

  test("broken_request_is_not_sent_and_has_repairs", async () => {
    engine.problems = [
      create(RequestProblemSchema, {
        kind: "orphanCall",
        path: "messages[1]",
        message: "the call has no result",
        blocking: true,
        repairs: [{ name: "delete it", path: "messages[1]", repair: { case: "delete", value: "call" } }],
      }),
    ];
    await openEditor();
    expect(button(/^Resume send/).getAttribute("aria-disabled")).toBe("true");
    fireEvent.click(button(/^Resume send/));
    await waitFor(() => expect(announcement.value).toContain("Not sent: the call has no result"));
    expect(engine.resumed).toHaveLength(0);
    fireEvent.click(button("Delete it"));
    await waitFor(() => expect(lastEdit()?.case).toBe("repair"));
  });

  test("context_change_shows_discarded_banner", async () => {
    engine.request = summary(5n, {
      status: RequestStatus.ENDED,
      ended: { kind: RequestEnd_Kind.SESSION_DISPOSED, message: "Context changed – request discarded" },
    });
    await openEditor();
    expect(screen.getByRole("heading", { name: "Request discarded" })).toBeTruthy();
    expect(document.body.textContent).toContain("Context changed – request discarded");
  });
});

describe("selection of messages", () => {
  test("delete_shows_saving_and_pairs_first", async () => {
    await openEditor();
    fireEvent.click(button("Select messages"));
    fireEvent.click(inCard("result").getByRole("checkbox"));
    const bar = screen.getByRole("group", { name: "Actions on selected messages" });
    expect(bar.textContent).toContain("saves ≈20, with 1 pair");
    fireEvent.click(within(bar).getByRole("button", { name: /^Delete/ }));
    await waitFor(() => expect(engine.edits).toHaveLength(2));
  });

  test("keep_from_here_deletes_earlier_messages", async () => {
    await openEditor();
    fireEvent.click(button("Select messages"));
    fireEvent.click(inCard("more").getByRole("checkbox"));
    fireEvent.click(button(/^Keep from here/));
    await waitFor(() => expect(engine.edits).toHaveLength(3));
  });

  test("shrink_shortens_large_results", async () => {
    await openEditor();
    fireEvent.click(button("Select messages"));
    fireEvent.click(inCard("result").getByRole("checkbox"));
    fireEvent.click(button(/^Shrink results/));
    await waitFor(() => expect(lastEdit()?.case).toBe("shrink"));
  });
});

describe("log and replay", () => {
  test("log_filters_loaded_rows", async () => {
    engine.others = [summary(4n, { edited: true }), summary(3n)];
    renderWith(engine, <RequestLog />);
    await waitFor(() => expect(screen.getAllByRole("row")).toHaveLength(4));
    fireEvent.input(screen.getByRole("searchbox"), { target: { value: "is:edited" } });
    expect(screen.getAllByRole("row")).toHaveLength(2);
    expect(screen.getByRole("status").textContent).toBe("1 of 3 loaded requests");
  });

  test("wrong_filter_is_explained", async () => {
    renderWith(engine, <RequestLog />);
    fireEvent.input(await screen.findByRole("searchbox"), { target: { value: "colour:red" } });
    expect(screen.getByRole("status").textContent).toContain("“colour” is no key");
  });

  test("replay_shows_two_answers_side_by_side", async () => {
    engine.request = { ...engine.request, held: false, status: RequestStatus.ANSWERED };
    await openEditor();
    fireEvent.click(button("Replay"));
    const replay = await screen.findByRole("region", { name: "Replay" });
    expect(replay.textContent).toContain("Recorded answerold");
    expect(within(replay).getByText("new")).toBeTruthy();
  });
});

describe("subagent monitor", () => {
  const run = create(ListSubagentsResponse_RunSchema, {
    request: 7n,
    conversation: "claude · task · …9f3c",
    session: SESSION,
    subagent: { id: "explore" },
    startedMs: 1_795_064_373_540n,
    requests: 2n,
    sections: [section("s", { kind: Section_Kind.SYSTEM, content: "You explore." })],
  });

  test("runs_are_labelled_and_sections_read_only", async () => {
    engine.runs = [run];
    renderWith(engine, <SubagentMonitor />);
    const item = await screen.findByRole("treeitem", { name: /claude · task · …9f3c · explore · \d\d:\d\d:\d\d/ });
    fireEvent.click(within(item).getByRole("button"));
    fireEvent.click(await screen.findByRole("button", { name: /You explore/ }));
    expect(screen.getByRole("button", { name: "Copy section" })).toBeTruthy();
    expect(screen.queryByRole("button", { name: /Edit|Delete/ })).toBeNull();
  });

  test("run_is_revealed_in_the_log", async () => {
    engine.runs = [run];
    const { router } = renderWith(engine, <SubagentMonitor />);
    fireEvent.click(within(await screen.findByRole("treeitem")).getByRole("button"));
    fireEvent.click(await screen.findByRole("button", { name: "Reveal in request log" }));
    expect(router.location.value.route).toEqual({ view: "request", request: 7n });
  });

  test("number_of_kept_runs_is_named", async () => {
    renderWith(engine, <SubagentMonitor />);
    expect(await screen.findByText(/The last 10 runs are kept/)).toBeTruthy();
  });
});
