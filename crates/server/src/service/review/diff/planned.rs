//! Plans and net changes, kept for the next page.
//!
//! A plan of undo, redo or restore and the net change of a turn are computed from the journal and the tree, while the gate is locked.
//! A list of files always computes them. A page that quotes the hash of the list gets the plan with that hash, and any other page one
//! of the same journal position.

use std::sync::{Arc, Mutex, PoisonError};

use sayso_api::proto::DiffSubject;

use super::subject::{DiffedFiles, Version};

/// Plans in memory.
const MAX_PLANS: usize = 16;
/// Contents of these plans in bytes.
const MAX_PLAN_BYTES: usize = 32 << 20;

/// The plan to find.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlanKey<'k> {
    /// Hash of the plan.
    Hash(&'k str),
    /// Number of the last event.
    LastEvent(u64),
}

#[derive(Debug)]
struct PlannedSubject {
    asked: DiffSubject,
    last_event: u64,
    subject: Arc<DiffedFiles>,
    bytes: usize,
}

/// The plans used last.
#[derive(Debug, Default)]
pub(crate) struct PlannedSubjects {
    /// The plan used last is at the end.
    plans: Mutex<Vec<PlannedSubject>>,
}

impl PlannedSubjects {
    pub(super) fn find(&self, asked: &DiffSubject, key: PlanKey<'_>) -> Option<Arc<DiffedFiles>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sought = |plan: &PlannedSubject| match key {
            PlanKey::Hash(hash) => plan.subject.hash.to_string() == hash,
            PlanKey::LastEvent(number) => plan.last_event == number,
        };
        let at = plans.iter().rposition(|plan| plan.asked == *asked && is_sought(plan))?;
        let plan = plans.remove(at);
        let subject = Arc::clone(&plan.subject);
        plans.push(plan);
        Some(subject)
    }

    /// Adds a plan and removes the ones used longest ago. The new one stays even if it is larger than the limit.
    pub(super) fn add(&self, asked: DiffSubject, last_event: u64, subject: Arc<DiffedFiles>) {
        let versions = |subject: &DiffedFiles| -> usize {
            let of_file = |file: &super::SubjectFile| {
                let base = file.base.as_ref().map_or(0, Version::content_bytes);
                base + file.before.content_bytes() + file.after.content_bytes() + file.path.len()
            };
            subject.files.iter().map(of_file).sum()
        };
        let bytes = versions(&subject);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|plan| plan.asked != asked || plan.subject.hash != subject.hash);
        plans.push(PlannedSubject { asked, last_event, subject, bytes });
        let mut total: usize = plans.iter().map(|plan| plan.bytes).sum();
        while plans.len() > 1 && (plans.len() > MAX_PLANS || total > MAX_PLAN_BYTES) {
            total -= plans.remove(0).bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use sayso_api::proto::oneof::diff_subject;
    use sayso_review::{ContentHash, FileMode, FileState, Operation, WsPath};

    use super::*;

    fn asked(snapshot: u64) -> DiffSubject {
        DiffSubject { subject: Some(diff_subject::Subject::Restore(snapshot)), ..Default::default() }
    }

    fn subject(bytes: usize) -> Arc<DiffedFiles> {
        let state = FileState::file(vec![b'x'; bytes], FileMode::PLAIN);
        let file = super::super::SubjectFile {
            path: "a".to_owned(),
            label: None,
            operation: Operation::Create,
            base: None,
            before: (&FileState::Absent).into(),
            after: (&state).into(),
            counts: None,
            problem: None,
            locations: vec![WsPath::root()],
        };
        Arc::new(DiffedFiles { hash: ContentHash::of(&bytes.to_le_bytes()), files: vec![file] })
    }

    #[test]
    fn plan_is_found_by_hash_or_journal_position() {
        let plans = PlannedSubjects::default();
        let (plan, hash) = (subject(3), ContentHash::of(&3_usize.to_le_bytes()).to_string());
        plans.add(asked(1), 7, Arc::clone(&plan));
        assert!(plans.find(&asked(1), PlanKey::Hash(&hash)).is_some_and(|found| Arc::ptr_eq(&found, &plan)));
        assert!(plans.find(&asked(1), PlanKey::LastEvent(7)).is_some());
        assert!(plans.find(&asked(1), PlanKey::LastEvent(8)).is_none());
        assert!(plans.find(&asked(2), PlanKey::Hash(&hash)).is_none());
    }

    #[test]
    fn plans_stay_within_their_bounds() {
        let plans = PlannedSubjects::default();
        for snapshot in 0..100 {
            plans.add(asked(snapshot), snapshot, subject(1_000));
        }
        let held = |plans: &PlannedSubjects| plans.plans.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(held(&plans), MAX_PLANS);
        assert!(plans.find(&asked(99), PlanKey::LastEvent(99)).is_some());
        plans.add(asked(100), 100, subject(MAX_PLAN_BYTES + 1));
        assert_eq!(held(&plans), 1);
    }
}
