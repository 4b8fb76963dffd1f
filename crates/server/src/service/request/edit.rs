//! What a person makes of a request that waits.

use sayso_api::convert::BadMessage;
use sayso_api::convert::field::{count, oneof};
use sayso_api::proto;
use sayso_api::proto::edit_request_request::{Pin, Set, Shrink};
use sayso_api::proto::oneof::edit_place::Place as PlaceChoice;
use sayso_api::proto::oneof::edit_request_request::Edit as Choice;
use sayso_api::proto::oneof::repair::Repair as RepairChoice;
use sayso_proxy::desk::{Edit, Expected, FromNowOn, Looked, Place};
use sayso_wire::{Keep, Repair, SectionId};

use super::scope_message;
use super::section::{consequences, problems};
use crate::failure::Failure;
use crate::host::{Host, now};

pub(super) fn edit(host: &Host, asked: proto::EditRequestRequest) -> Result<proto::EditRequestResponse, Failure> {
    host.refresh_if_readable();
    let request = asked.request;
    let edit = read(oneof(asked.edit, "edit")?)?;
    let from_now_on = super::scope(asked.from_now_on, "from_now_on")?.map_or(FromNowOn::No, FromNowOn::Yes);
    super::known(host, request)?;
    let desk = &host.proxy.desk;
    let expected = asked.revision.map_or(Expected::Any, Expected::Version);
    let edited = desk.edit_seen(request, &edit, expected, from_now_on, now())?;
    // It may have been resumed by now: it is shown as it was sent then.
    let (meant, problems) = desk.look(request, |Looked { request, .. }| {
        (edited.consequences.as_ref().map(|found| consequences(request, found)), problems(request))
    })?;
    let saved = edited.consequences.as_ref().map_or(0, |found| {
        let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        tokens(found.before.count) - tokens(found.after.count)
    });
    Ok(proto::EditRequestResponse {
        revision: edited.revision,
        path: edited.path,
        tokens_saved: saved,
        tokens_saved_here: edited.fewer,
        added: edited.added,
        unknown_members: edited.unknown_members,
        consequences: meant.into(),
        problems: problems.into_iter().filter(|problem| problem.blocks).collect(),
        saved: edited.captured.saved as u64,
        removed: edited.captured.removed as u64,
        switched_to: edited.switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default().into(),
        switched_in: edited.switched.map(|to| scope_message(to.scope)).unwrap_or_default().into(),
        ..Default::default()
    })
}

/// What is to be done, each field checked.
fn read(choice: Choice) -> Result<Edit, BadMessage> {
    Ok(match choice {
        Choice::Set(set) => {
            let (at, value) = set_at(*set, "set")?;
            Edit::Set { at, value }
        }
        Choice::SetJson(set) => {
            let (at, value) = set_at(*set, "set_json")?;
            Edit::SetJson { at, value }
        }
        Choice::Delete(at) => Edit::Delete { at: place(Some(*at), "delete")? },
        Choice::Restore(at) => Edit::Restore { at: place(Some(*at), "restore")? },
        Choice::Append(text) => Edit::Append { text },
        Choice::Shrink(shrink) => {
            let Shrink { at, keep_head, keep_tail, .. } = *shrink;
            let usual = Keep::default();
            let keep = Keep {
                head: keep_head.map_or(Ok(usual.head), |number| count(number, "shrink.keep_head"))?,
                tail: keep_tail.map_or(Ok(usual.tail), |number| count(number, "shrink.keep_tail"))?,
            };
            Edit::Shrink { at: place(at.into_option(), "shrink.at")?, keep }
        }
        Choice::Repair(mend) => Edit::Repair(repair(*mend)?),
        Choice::Patch(patch) => Edit::Patch(patch),
        Choice::Pin(pin) => {
            let Pin { at, before, .. } = *pin;
            let before = before.map(|id| section(&id, "pin.before")).transpose()?;
            Edit::Pin { at: place(at.into_option(), "pin.at")?, before }
        }
        Choice::Unpin(at) => Edit::Unpin { at: place(Some(*at), "unpin")? },
        Choice::Undo(_) => Edit::Undo,
        Choice::Redo(_) => Edit::Redo,
        Choice::Reset(_) => Edit::Reset,
    })
}

fn set_at(set: Set, field: &str) -> Result<(Place, String), BadMessage> {
    Ok((place(set.at.into_option(), &format!("{field}.at"))?, set.value))
}

fn place(at: Option<proto::EditPlace>, field: &str) -> Result<Place, BadMessage> {
    let at = at.ok_or_else(|| BadMessage::new(field, "it is missing"))?;
    match oneof(at.place, field)? {
        PlaceChoice::Path(path) => Ok(Place::Path(path)),
        PlaceChoice::Section(id) => Ok(Place::Section(section(&id, &format!("{field}.section"))?)),
    }
}

fn section(id: &str, field: &str) -> Result<SectionId, BadMessage> {
    id.parse().map_err(|_| BadMessage::new(field, format!("`{id}` is no section's id, such as 0:12")))
}

fn repair(mend: proto::Repair) -> Result<Repair, BadMessage> {
    let target = |id: &str, field: &str| section(id, field).map(|section| section.target);
    Ok(match oneof(mend.repair, "repair")? {
        RepairChoice::Delete(id) => Repair::Delete(target(&id, "repair.delete")?),
        RepairChoice::Restore(id) => Repair::Restore(target(&id, "repair.restore")?),
        RepairChoice::Move(moved) => {
            Repair::MoveBefore(target(&moved.what, "repair.move.what")?, target(&moved.before, "repair.move.before")?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(choice: Choice) -> String {
        read(choice).err().map(|error| error.field).unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_with_an_edit_is_named() {
        let at = |id: &str| proto::EditPlace { place: Some(PlaceChoice::Section(id.to_owned())), ..Default::default() };
        assert_eq!(wrong(Choice::Delete(Box::new(at("x")))), "delete.section");
        assert_eq!(wrong(Choice::Delete(Box::default())), "delete");
        assert_eq!(wrong(Choice::Set(Box::default())), "set.at");
        assert_eq!(wrong(Choice::Repair(Box::default())), "repair");
        let pin = Pin { at: Some(at("0:1")).into(), before: Some("0:".to_owned()), ..Default::default() };
        assert_eq!(wrong(Choice::Pin(Box::new(pin))), "pin.before");
        assert_eq!(
            read(Choice::Restore(Box::new(at("0:7#2")))).ok(),
            "0:7#2".parse().ok().map(|id| Edit::Restore { at: Place::Section(id) })
        );
    }
}
