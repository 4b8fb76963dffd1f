//! Results of edits: defects, impact, history and switched modes.

use buffa::{EnumValue, MessageField};
use sayso_wire::Repair;

use crate::convert::field::{enumeration, list, oneof, optional, required};
use crate::convert::{BadMessage, messages};
use crate::proto;
use crate::request::{
    DefectRepair, EditEffects, EditEntry, ImpactReport, RequestDefect, ResumeResult, SaveResult, SwitchedMode,
};

/// Reads a mode and its scope. `None` if the mode is unspecified.
fn switched(
    mode: EnumValue<proto::RequestMode>,
    scope: EnumValue<proto::OverrideScope>,
) -> Result<Option<SwitchedMode>, BadMessage> {
    let Some(mode) = enumeration::<_, Option<sayso_review::RequestMode>>(mode, "new_mode")? else { return Ok(None) };
    Ok(Some(SwitchedMode { mode, scope: enumeration(scope, "new_mode_scope")? }))
}

fn switched_message(
    switched: Option<SwitchedMode>,
) -> (EnumValue<proto::RequestMode>, EnumValue<proto::OverrideScope>) {
    let mode = switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default();
    let scope = switched.map(|to| proto::OverrideScope::from(to.scope)).unwrap_or_default();
    (mode.into(), scope.into())
}

impl From<&DefectRepair> for proto::Repair {
    fn from(repair: &DefectRepair) -> Self {
        Self { name: repair.name.clone(), path: repair.path.clone(), ..repair.repair.into() }
    }
}

impl TryFrom<proto::Repair> for DefectRepair {
    type Error = BadMessage;

    fn try_from(repair: proto::Repair) -> Result<Self, BadMessage> {
        let choice = Repair::try_from(oneof(repair.repair, "repair")?)?;
        Ok(Self { name: repair.name, path: repair.path, repair: choice })
    }
}

impl From<&RequestDefect> for proto::RequestProblem {
    fn from(defect: &RequestDefect) -> Self {
        Self {
            kind: defect.kind.clone(),
            path: defect.path.clone(),
            message: defect.message.clone(),
            blocking: defect.blocking,
            repairs: messages(&defect.repairs),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RequestProblem> for RequestDefect {
    type Error = BadMessage;

    fn try_from(problem: proto::RequestProblem) -> Result<Self, BadMessage> {
        Ok(Self {
            kind: problem.kind,
            path: problem.path,
            message: problem.message,
            blocking: problem.blocking,
            repairs: list(problem.repairs, "repairs")?,
        })
    }
}

impl From<&ImpactReport> for proto::EditImpact {
    fn from(impact: &ImpactReport) -> Self {
        Self {
            before: MessageField::some(impact.before.into()),
            after: MessageField::some(impact.after.into()),
            reread: MessageField::some(impact.reread.into()),
            breakpoints_lost: impact.breakpoints_lost.clone(),
            sealed_after: impact.sealed_after.clone(),
            alternative: impact.alternative.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::EditImpact> for ImpactReport {
    type Error = BadMessage;

    fn try_from(impact: proto::EditImpact) -> Result<Self, BadMessage> {
        Ok(Self {
            before: required(impact.before, "before")?,
            after: required(impact.after, "after")?,
            reread: required(impact.reread, "reread")?,
            breakpoints_lost: impact.breakpoints_lost,
            sealed_after: impact.sealed_after,
            alternative: impact.alternative,
        })
    }
}

impl From<&EditEntry> for proto::RequestEdit {
    fn from(edit: &EditEntry) -> Self {
        let EditEntry { revision, target_kind, target_path, old_json, new_json } = edit.clone();
        Self { revision, target_kind, target_path, old_json, new_json, ..Default::default() }
    }
}

impl From<proto::RequestEdit> for EditEntry {
    fn from(edit: proto::RequestEdit) -> Self {
        Self {
            revision: edit.revision,
            target_kind: edit.target_kind,
            target_path: edit.target_path,
            old_json: edit.old_json,
            new_json: edit.new_json,
        }
    }
}

impl From<&EditEffects> for proto::EditRequestResponse {
    fn from(edit: &EditEffects) -> Self {
        let (new_mode, new_mode_scope) = switched_message(edit.switched);
        Self {
            revision: edit.revision,
            path: edit.path.clone(),
            tokens_saved: edit.tokens_saved,
            tokens_saved_here: edit.tokens_saved_here,
            impact: edit.impact.as_ref().map(Into::into).into(),
            problems: messages(&edit.problems),
            saved: edit.saved,
            removed: edit.removed,
            new_mode,
            new_mode_scope,
            added: edit.added,
            unknown_members: edit.unknown_members.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::EditRequestResponse> for EditEffects {
    type Error = BadMessage;

    fn try_from(edit: proto::EditRequestResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            revision: edit.revision,
            path: edit.path,
            tokens_saved: edit.tokens_saved,
            tokens_saved_here: edit.tokens_saved_here,
            impact: optional(edit.impact, "impact")?,
            problems: list(edit.problems, "problems")?,
            saved: edit.saved,
            removed: edit.removed,
            switched: switched(edit.new_mode, edit.new_mode_scope)?,
            added: edit.added,
            unknown_members: edit.unknown_members,
        })
    }
}

impl From<&ResumeResult> for proto::ResumeRequestResponse {
    fn from(resumed: &ResumeResult) -> Self {
        let (new_mode, new_mode_scope) = switched_message(resumed.switched);
        Self {
            saved: resumed.saved,
            removed: resumed.removed,
            new_mode,
            new_mode_scope,
            turn_edits: resumed.turn_edits,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ResumeRequestResponse> for ResumeResult {
    type Error = BadMessage;

    fn try_from(resumed: proto::ResumeRequestResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            saved: resumed.saved,
            removed: resumed.removed,
            switched: switched(resumed.new_mode, resumed.new_mode_scope)?,
            turn_edits: resumed.turn_edits,
        })
    }
}

impl From<&SaveResult> for proto::SaveOverridesResponse {
    fn from(saved: &SaveResult) -> Self {
        Self {
            saved: saved.saved,
            scope: proto::OverrideScope::from(saved.scope).into(),
            new_mode: saved.new_mode.map(proto::RequestMode::from).unwrap_or_default().into(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::SaveOverridesResponse> for SaveResult {
    type Error = BadMessage;

    fn try_from(saved: proto::SaveOverridesResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            saved: saved.saved,
            scope: enumeration(saved.scope, "scope")?,
            new_mode: enumeration(saved.new_mode, "new_mode")?,
        })
    }
}
