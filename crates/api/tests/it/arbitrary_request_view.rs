//! Strategies for typed requests: summaries, sections, edits, modes and costs.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_api::request::{
    AppliedOverride, AutoApply, CacheMissReport, DefectRepair, EditEffects, EditEntry, Editability, ImpactReport,
    ListedRun, ModeLabel, ModeResult, ModeState, PromptDifference, RequestCost, RequestCosts, RequestDefect,
    RequestDetails, RequestDiff, RequestModes, RequestSection, RequestSummary, ResumeResult, SaveResult, SavedEdit,
    SectionDifference, SectionTool, SessionCost, SessionMode, StillHeld, SubagentRuns, SwitchedMode, TurnCost,
};
use sayso_review::{RequestMode, SubagentMark};
use sayso_wire::price::{BilledTokens, NanoDollars};
use sayso_wire::tokens::Tokens;
use sayso_wire::{
    CacheMissCause, ContentKind, Edit, EditTarget, NodeType, Repair, Scope, SectionChange, SectionId, SectionKind,
    ShrinkLimits,
};

use crate::arbitrary::{maybe, request_records, text, texts};

fn scopes() -> impl Strategy<Value = Scope> {
    select(vec![Scope::Global, Scope::Workspace, Scope::Session])
}

fn modes() -> impl Strategy<Value = RequestMode> {
    select(RequestMode::ALL.to_vec())
}

fn tokens() -> impl Strategy<Value = Tokens> {
    prop_oneof![any::<u64>().prop_map(Tokens::exact), any::<u64>().prop_map(Tokens::estimate)]
}

fn section_ids() -> impl Strategy<Value = SectionId> {
    (0_u32..3, any::<u32>(), option::of(any::<u32>())).prop_map(|(part, value, tag)| {
        let tag = tag.map(|tag| format!("#{tag}")).unwrap_or_default();
        format!("{part}:{value}{tag}").parse().unwrap()
    })
}

fn node_types() -> impl Strategy<Value = NodeType> {
    use NodeType::{ContentPart, Message, Metadata, Raw, Remote, RequestOption, Tag, ToolCall, ToolSchema};
    select(vec![Message, ContentPart, ToolCall, Metadata, Tag, ToolSchema, RequestOption, Remote, Raw])
}

fn section_kinds() -> impl Strategy<Value = SectionKind> {
    use SectionKind::{Assistant, Context, History, Other, Prediction, System, Tool, User};
    select(vec![System, User, Assistant, Context, Tool, History, Prediction, Other])
}

fn content_kinds() -> impl Strategy<Value = ContentKind> {
    use ContentKind::{CacheBreakpoint, Image, Opaque, Other, Text};
    select(vec![Text, Image, Opaque, CacheBreakpoint, Other])
}

fn applied_edits() -> impl Strategy<Value = AppliedOverride> {
    (scopes(), any::<i64>()).prop_map(|(scope, saved)| AppliedOverride { scope, saved })
}

fn sections() -> impl Strategy<Value = RequestSection> {
    let place = (section_ids(), option::of(section_ids()), node_types(), section_kinds(), content_kinds());
    let texts = (text(), text(), text(), any::<u64>());
    let size = (tokens(), 0.0_f64..1.0);
    let editability = prop_oneof![
        Just(Editability::Yes),
        Just(Editability::InParts),
        maybe().prop_map(|reason| Editability::No { reason }),
    ];
    let flags = any::<[bool; 5]>();
    let tool =
        option::of((maybe(), maybe(), maybe()).prop_map(|(id, name, arguments)| SectionTool { id, name, arguments }));
    let indexes = any::<[Option<u32>; 3]>();
    (place, texts, size, editability, flags, option::of(applied_edits()), tool, indexes).prop_map(
        |(place, texts, (tokens, share), editability, flags, applied_edit, tool, indexes)| {
            let (id, parent, node, kind, content_kind) = place;
            let (label, raw_path, content, content_size) = texts;
            let [deletable, deleted, pinned, collapsed, edited] = flags;
            let [message_index, content_index, tool_call_index] = indexes;
            RequestSection {
                id,
                parent,
                node,
                kind,
                label,
                raw_path,
                content_kind,
                content,
                content_size,
                tokens,
                share,
                editability,
                deletable,
                deleted,
                pinned,
                collapsed,
                edited,
                applied_edit,
                tool,
                message_index,
                content_index,
                tool_call_index,
            }
        },
    )
}

fn costs() -> impl Strategy<Value = RequestCost> {
    let tokens = any::<[u32; 5]>().prop_map(|counts| {
        let [input, cache_read, cache_written, output, reasoning] = counts.map(u64::from);
        BilledTokens { input, cache_read, cache_written, output, reasoning }
    });
    (tokens, option::of(any::<u64>().prop_map(NanoDollars)), option::of(0.0_f64..1.0))
        .prop_map(|(tokens, price, context_share)| RequestCost { tokens, price, context_share })
}

pub(crate) fn request_costs() -> impl Strategy<Value = RequestCosts> {
    let turn = (text(), maybe(), any::<u64>(), costs());
    let turn = turn.prop_map(|(session, turn, requests, cost)| TurnCost { session, turn, requests, cost });
    let session = (maybe(), maybe(), any::<u64>(), costs(), texts()).prop_map(
        |(session, agent, requests, cost, unknown_models)| SessionCost {
            session,
            agent,
            requests,
            cost,
            unknown_models,
        },
    );
    (vec(turn, 0..3), vec(session, 0..3), costs(), text())
        .prop_map(|(turns, sessions, total, prices_date)| RequestCosts { turns, sessions, total, prices_date })
}

fn cache_misses() -> impl Strategy<Value = CacheMissReport> {
    use CacheMissCause::{Compaction, Edited, Expired, ModelChanged, ToolsChanged, Unexplained, UnstablePrefix};
    let causes = vec![ModelChanged, ToolsChanged, Compaction, Edited, UnstablePrefix, Expired, Unexplained];
    let difference = (text(), text(), text(), text(), tokens())
        .prop_map(|(path, label, old, new, tokens_lost)| PromptDifference { path, label, old, new, tokens_lost });
    (select(causes), any::<bool>(), text(), any::<u64>(), option::of(difference)).prop_map(
        |(cause, expected, text, previous_request, difference)| CacheMissReport {
            cause,
            expected,
            text,
            previous_request,
            difference,
        },
    )
}

pub(crate) fn request_summaries() -> impl Strategy<Value = RequestSummary> {
    (request_records(), any::<bool>(), any::<bool>(), text(), option::of(costs())).prop_map(
        |(record, held, edited, conversation, cost)| RequestSummary { record, held, edited, conversation, cost },
    )
}

fn repairs() -> impl Strategy<Value = Repair> {
    let target = || section_ids().prop_map(|id| id.target);
    prop_oneof![
        target().prop_map(Repair::Delete),
        target().prop_map(Repair::Restore),
        (target(), target()).prop_map(|(target, before)| Repair::MoveBefore(target, before)),
    ]
}

fn defects() -> impl Strategy<Value = RequestDefect> {
    let repair = (text(), text(), repairs()).prop_map(|(name, path, repair)| DefectRepair { name, path, repair });
    (text(), text(), text(), any::<bool>(), vec(repair, 0..3))
        .prop_map(|(kind, path, message, blocking, repairs)| RequestDefect { kind, path, message, blocking, repairs })
}

fn impacts() -> impl Strategy<Value = ImpactReport> {
    (tokens(), tokens(), tokens(), texts(), texts(), maybe()).prop_map(
        |(before, after, reread, breakpoints_lost, sealed_after, alternative)| ImpactReport {
            before,
            after,
            reread,
            breakpoints_lost,
            sealed_after,
            alternative,
        },
    )
}

fn edit_entries() -> impl Strategy<Value = EditEntry> {
    (any::<u64>(), text(), text(), maybe(), maybe()).prop_map(
        |(revision, target_kind, target_path, old_json, new_json)| EditEntry {
            revision,
            target_kind,
            target_path,
            old_json,
            new_json,
        },
    )
}

pub(crate) fn request_details() -> impl Strategy<Value = RequestDetails> {
    let parts = (vec(sections(), 0..3), vec(section_ids(), 0..3), tokens(), tokens());
    let limits = (any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u32>>());
    let edits = (vec(defects(), 0..3), option::of(impacts()), vec(edit_entries(), 0..2), vec(edit_entries(), 0..2));
    let reasons = (maybe(), maybe(), maybe(), texts(), any::<bool>());
    let strip = vec((text(), text()), 0..3);
    (request_summaries(), parts, limits, edits, reasons, strip, mode_states(), option::of(cache_misses())).prop_map(
        |(summary, parts, limits, edits, reasons, metadata, mode, cache_miss)| {
            let (sections, pinned, pinned_tokens, tokens) = parts;
            let (context_window, max_output_tokens, captured) = limits;
            let (problems, impact, edits, undone) = edits;
            let (parse_error, read_only_reason, exempt_reason, redacted, streaming) = reasons;
            RequestDetails {
                summary,
                sections,
                pinned,
                pinned_tokens,
                tokens,
                context_window,
                max_output_tokens,
                problems,
                impact,
                edits,
                undone,
                parse_error,
                read_only_reason,
                metadata,
                mode,
                exempt_reason,
                captured_sections: captured.map(|sections| sections as usize),
                streaming,
                redacted,
                cache_miss,
            }
        },
    )
}

fn switched() -> impl Strategy<Value = Option<SwitchedMode>> {
    option::of((modes(), scopes()).prop_map(|(mode, scope)| SwitchedMode { mode, scope }))
}

pub(crate) fn edit_results() -> impl Strategy<Value = EditEffects> {
    let counts = (any::<u64>(), any::<i64>(), any::<i64>(), any::<u64>(), any::<u64>());
    (text(), counts, option::of(impacts()), vec(defects(), 0..2), switched(), any::<bool>(), texts()).prop_map(
        |(path, counts, impact, problems, switched, added, unknown_members)| {
            let (revision, tokens_saved, tokens_saved_here, saved, removed) = counts;
            EditEffects {
                revision,
                path,
                tokens_saved,
                tokens_saved_here,
                impact,
                problems,
                saved,
                removed,
                switched,
                added,
                unknown_members,
            }
        },
    )
}

pub(crate) fn resume_results() -> impl Strategy<Value = ResumeResult> {
    (any::<u64>(), any::<u64>(), switched(), any::<u64>())
        .prop_map(|(saved, removed, switched, turn_edits)| ResumeResult { saved, removed, switched, turn_edits })
}

pub(crate) fn save_results() -> impl Strategy<Value = SaveResult> {
    (any::<u64>(), scopes(), option::of(modes())).prop_map(|(saved, scope, new_mode)| SaveResult {
        saved,
        scope,
        new_mode,
    })
}

fn mode_states() -> impl Strategy<Value = ModeState> {
    let auto_apply = select(vec![AutoApply::Off, AutoApply::Capturing, AutoApply::Applying]);
    (modes(), text(), any::<bool>(), any::<bool>(), auto_apply, any::<Option<i64>>(), any::<u64>()).prop_map(
        |(mode, label, pause_next, capture_next, auto_apply, latest_saved, saved)| ModeState {
            mode,
            label,
            pause_next,
            capture_next,
            auto_apply,
            latest_saved,
            saved,
        },
    )
}

pub(crate) fn request_modes() -> impl Strategy<Value = RequestModes> {
    let activity = (any::<i64>(), any::<u64>(), any::<u64>(), any::<bool>());
    let session = (text(), text(), maybe(), maybe(), activity, mode_states()).prop_map(
        |(session, conversation, agent, model, (last, requests, held, has_own_mode), state)| SessionMode {
            session,
            conversation,
            agent,
            model,
            last,
            requests,
            held,
            state,
            has_own_mode,
        },
    );
    let choice = (modes(), text()).prop_map(|(mode, label)| ModeLabel { mode, label });
    (mode_states(), vec(session, 0..3), vec(choice, 0..3), scopes(), any::<Option<u64>>()).prop_map(
        |(default_state, sessions, choices, capture_scope, preview_limit)| RequestModes {
            default_state,
            sessions,
            choices,
            capture_scope,
            preview_limit,
        },
    )
}

pub(crate) fn mode_results() -> impl Strategy<Value = ModeResult> {
    let still_held = (any::<u64>(), text()).prop_map(|(request, reason)| StillHeld { request, reason });
    (any::<u64>(), any::<u64>(), vec(still_held, 0..3), mode_states())
        .prop_map(|(canceled, resumed, still_held, state)| ModeResult { canceled, resumed, still_held, state })
}

pub(crate) fn saved_edits() -> impl Strategy<Value = SavedEdit> {
    (scopes(), maybe(), text(), section_kinds(), node_types(), maybe(), any::<i64>()).prop_map(
        |(scope, session, path, kind, node, content, updated)| SavedEdit {
            scope,
            session,
            path,
            kind,
            node,
            content,
            updated,
        },
    )
}

pub(crate) fn request_diffs() -> impl Strategy<Value = RequestDiff> {
    let change = select(vec![SectionChange::Edited, SectionChange::Deleted, SectionChange::Added]);
    let section = (section_ids(), text(), text(), change, (text(), text(), text()), option::of(applied_edits()));
    let section = section.prop_map(|(section, path, label, change, (old, new, unified), applied_edit)| {
        SectionDifference { section, path, label, change, old, new, unified, applied_edit }
    });
    (vec(section, 0..3), text()).prop_map(|(sections, unified)| RequestDiff { sections, unified })
}

pub(crate) fn subagent_runs() -> impl Strategy<Value = SubagentRuns> {
    let mark = (maybe(), maybe()).prop_map(|(id, parent)| SubagentMark { id, parent });
    let names = (text(), text(), maybe(), option::of(mark), maybe());
    let run = (any::<u64>(), names, any::<[i64; 2]>(), any::<u64>(), tokens(), vec(sections(), 0..2)).prop_map(
        |(request, names, [started, last], requests, tokens, sections)| {
            let (conversation, session, agent, subagent, model) = names;
            ListedRun {
                request,
                conversation,
                session,
                agent,
                subagent,
                model,
                started,
                last,
                requests,
                tokens,
                sections,
            }
        },
    );
    (vec(run, 0..2), any::<u64>()).prop_map(|(runs, max_runs)| SubagentRuns { runs, max_runs })
}

fn edit_targets() -> impl Strategy<Value = EditTarget> {
    prop_oneof![text().prop_map(EditTarget::Path), section_ids().prop_map(EditTarget::Section)]
}

/// Every kind of edit.
pub(crate) fn edits() -> impl Strategy<Value = Edit> {
    let keep = any::<[u32; 2]>().prop_map(|[head, tail]| ShrinkLimits { head: head as usize, tail: tail as usize });
    prop_oneof![
        (edit_targets(), text()).prop_map(|(at, value)| Edit::Set { at, value }),
        (edit_targets(), text()).prop_map(|(at, value)| Edit::SetJson { at, value }),
        edit_targets().prop_map(|at| Edit::Delete { at }),
        edit_targets().prop_map(|at| Edit::Restore { at }),
        text().prop_map(|text| Edit::Append { text }),
        (edit_targets(), keep).prop_map(|(at, keep)| Edit::Shrink { at, keep }),
        repairs().prop_map(Edit::Repair),
        vec(any::<u8>(), 0..8).prop_map(Edit::Patch),
        (edit_targets(), option::of(section_ids())).prop_map(|(at, before)| Edit::Pin { at, before }),
        edit_targets().prop_map(|at| Edit::Unpin { at }),
        select(vec![Edit::Undo, Edit::Redo, Edit::Reset]),
    ]
}
