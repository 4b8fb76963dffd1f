//! The authority that each call needs: one table for all services.
//!
//! A listener looks a call up here before any service sees it. A method that is missing counts as one that admits, the most that
//! there is; a test compares the table with the protocol.

/// What a caller has to be allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Authority {
    /// Look at what anybody under the gate may see.
    Read,
    /// Look at what agents may not see, such as requests to models. For unmarked processes, on any channel.
    Inspect,
    /// Ask for something, wait for the verdict, and report what became of it: everything that agents and their hooks need.
    Propose,
    /// Give a verdict, or do what one would have to allow. On the verdict socket, or over TCP with a login.
    Decide,
    /// Hand out logins. On the verdict socket only.
    Admit,
}

use Authority::{Admit, Decide, Inspect, Propose, Read};

/// Every method of every service, sorted.
const METHODS: &[(&str, Authority)] = &[
    ("IntentService/AcknowledgeMessages", Propose),
    ("IntentService/Await", Propose),
    ("IntentService/Capture", Propose),
    ("IntentService/EndSession", Propose),
    ("IntentService/EndTurn", Propose),
    ("IntentService/Finish", Propose),
    ("IntentService/ListMessages", Propose),
    // Writes an order for a command that was let go ahead; the order grants nothing that the caller could not run itself.
    ("IntentService/PrepareCall", Propose),
    ("IntentService/StartSession", Propose),
    ("IntentService/StartTurn", Propose),
    ("IntentService/Submit", Propose),
    ("IntentService/TakeMessages", Propose),
    ("IntentService/Withdraw", Propose),
    ("RequestService/CancelRequest", Decide),
    ("RequestService/CaptureNext", Decide),
    ("RequestService/CloseEntrance", Decide),
    ("RequestService/DiffRequest", Inspect),
    ("RequestService/EditRequest", Decide),
    ("RequestService/GetModes", Inspect),
    ("RequestService/GetRequestBody", Inspect),
    ("RequestService/LastingEntrance", Decide),
    ("RequestService/ListOverrides", Inspect),
    ("RequestService/ListRequests", Inspect),
    ("RequestService/ListSubagents", Inspect),
    ("RequestService/OpenEntrance", Decide),
    ("RequestService/PauseNext", Decide),
    ("RequestService/RemoveOverrides", Decide),
    ("RequestService/ReplayRequest", Decide),
    ("RequestService/ResumeRequest", Decide),
    ("RequestService/SaveOverrides", Decide),
    ("RequestService/SetMode", Decide),
    ("RequestService/ShowRequest", Inspect),
    ("ReviewService/Collect", Decide),
    ("ReviewService/CreateLogin", Admit),
    ("ReviewService/Decide", Decide),
    ("ReviewService/GetChange", Read),
    ("ReviewService/ListChanges", Read),
    ("ReviewService/ListPending", Read),
    ("ReviewService/ListSessions", Read),
    ("ReviewService/ListSnapshots", Read),
    ("ReviewService/PlanRedo", Read),
    ("ReviewService/PlanRestore", Read),
    ("ReviewService/PlanUndo", Read),
    ("ReviewService/Propose", Propose),
    ("ReviewService/Redo", Decide),
    ("ReviewService/Rehearse", Decide),
    ("ReviewService/Restore", Decide),
    // Puts a turn up for review; the review itself waits for a verdict.
    ("ReviewService/ReviewTurn", Propose),
    ("ReviewService/Status", Read),
    ("ReviewService/Undo", Decide),
    ("ReviewService/Watch", Read),
    ("ToolService/ListTools", Read),
    // Runs what policy allows. What a caller grants beyond that counts only where it could decide as well.
    ("ToolService/RunTool", Propose),
    ("WorkspaceService/ExplainPolicy", Read),
    ("WorkspaceService/GetBranch", Read),
    ("WorkspaceService/ListDirectory", Read),
    ("WorkspaceService/PlanBranch", Read),
    ("WorkspaceService/ReadFile", Read),
    ("WorkspaceService/TakeUpBranch", Decide),
];

/// The authority that a call to this path needs.
pub(crate) fn of_path(path: &str) -> Authority {
    let method = path.strip_prefix("/sayso.v1.").unwrap_or_default();
    METHODS.binary_search_by_key(&method, |(name, _)| name).map_or(Admit, |at| METHODS[at].1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    /// Every method of every service, from the protocol itself.
    fn protocol() -> Vec<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/sayso/v1");
        let mut methods = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let mut service = "";
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("service ") {
                    service = rest.trim_end_matches(['{', ' ']);
                } else if let Some(rest) = line.trim_start().strip_prefix("rpc ") {
                    methods.push(format!("{service}/{}", rest.split('(').next().unwrap()));
                }
            }
        }
        methods.sort();
        methods
    }

    #[test]
    fn authority_table_lists_every_method_once() {
        let listed: Vec<&str> = METHODS.iter().map(|(method, _)| *method).collect();
        assert!(listed.is_sorted(), "the table is searched by halves");
        assert_eq!(protocol(), listed, "a new method needs an authority");
    }

    #[test]
    fn unknown_method_needs_the_most() {
        for path in ["/sayso.v1.ReviewService/Approve", "/sayso.v1.Other/Status", "/", "ReviewService/Status"] {
            assert_eq!(of_path(path), Admit, "{path}");
        }
        assert_eq!(of_path("/sayso.v1.ReviewService/Status"), Read);
        assert_eq!(of_path("/sayso.v1.ReviewService/Decide"), Decide);
    }
}
