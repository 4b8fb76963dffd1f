//! The authority that each call needs, as one table for all services.
//!
//! A listener checks it before it dispatches a call. A missing method needs the highest authority. A test compares the table with the
//! protocol.

/// Required right of a caller, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Authority {
    /// Read state that agents may see.
    Read,
    /// Read state that agents may not see, such as requests to models. For unmarked processes, on any channel.
    Inspect,
    /// Submit an intent, await its outcome and report its end, as agents and their hooks do.
    Propose,
    /// Decide, or change state without a verdict. On the verdict socket, or over TCP with a login.
    Decide,
    /// Create logins. On the verdict socket only.
    Admit,
}

use Authority::{Admit, Decide, Inspect, Propose, Read};

/// Every method of every service, sorted.
const METHODS: &[(&str, Authority)] = &[
    ("AgentService/Attach", Inspect),
    ("AgentService/ClearSession", Decide),
    ("AgentService/GetSettings", Inspect),
    ("AgentService/GetTodos", Inspect),
    ("AgentService/Interrupt", Decide),
    ("AgentService/Invoke", Decide),
    ("AgentService/ListScenarios", Inspect),
    ("AgentService/ListSessions", Inspect),
    ("AgentService/SetSettings", Decide),
    ("AgentService/StartSession", Decide),
    ("AgentService/SubmitClientEvent", Decide),
    ("AgentService/WriteTodos", Decide),
    ("ConversationService/GetConversationBlock", Inspect),
    ("ConversationService/GetConversationPreview", Inspect),
    ("ConversationService/WatchConversation", Inspect),
    // An editor's answers become the text that a person decides about.
    ("EditorService/AnswerEditorRequest", Decide),
    ("EditorService/RegisterEditor", Decide),
    ("EditorService/ReportDirtyFiles", Decide),
    ("IntentService/AcknowledgeMessages", Propose),
    ("IntentService/Await", Propose),
    ("IntentService/Capture", Propose),
    ("IntentService/EndSession", Propose),
    ("IntentService/EndTurn", Propose),
    ("IntentService/Finish", Propose),
    ("IntentService/ListMessages", Propose),
    // Writes an order for a permitted command, which the caller could run itself.
    ("IntentService/PrepareCall", Propose),
    ("IntentService/StartSession", Propose),
    ("IntentService/StartTurn", Propose),
    ("IntentService/Submit", Propose),
    ("IntentService/TakeMessages", Propose),
    ("IntentService/Withdraw", Propose),
    ("RequestService/CancelRequest", Decide),
    ("RequestService/CaptureNext", Decide),
    ("RequestService/CloseEndpoint", Decide),
    ("RequestService/DiffRequest", Inspect),
    ("RequestService/EditRequest", Decide),
    ("RequestService/GetCost", Inspect),
    ("RequestService/GetModes", Inspect),
    ("RequestService/GetPersistentEndpoint", Decide),
    ("RequestService/GetRequestBody", Inspect),
    ("RequestService/ListOverrides", Inspect),
    ("RequestService/ListRequests", Inspect),
    ("RequestService/ListSubagents", Inspect),
    ("RequestService/OpenEndpoint", Decide),
    ("RequestService/PauseNext", Decide),
    ("RequestService/RemoveOverrides", Decide),
    ("RequestService/ReplayRequest", Decide),
    ("RequestService/ResumeRequest", Decide),
    ("RequestService/SaveOverrides", Decide),
    ("RequestService/SetMode", Decide),
    ("RequestService/ShowRequest", Inspect),
    ("ReviewService/AwaitChange", Read),
    ("ReviewService/Collect", Decide),
    ("ReviewService/CreateLogin", Admit),
    ("ReviewService/Decide", Decide),
    ("ReviewService/DryRun", Decide),
    ("ReviewService/GetChange", Read),
    // Contents that an agent may not read are withheld. The edits of a request need a person.
    ("ReviewService/GetDiff", Read),
    ("ReviewService/ListChanges", Read),
    // Shows requests, and what agents of other sessions said.
    ("ReviewService/ListInbox", Inspect),
    ("ReviewService/ListPending", Read),
    ("ReviewService/ListSessions", Read),
    ("ReviewService/ListSnapshots", Read),
    ("ReviewService/ListSurfaces", Read),
    ("ReviewService/MarkRead", Decide),
    // A mark claims that a person has seen a hunk.
    ("ReviewService/MarkSeen", Decide),
    ("ReviewService/PlanRedo", Read),
    ("ReviewService/PlanRestore", Read),
    ("ReviewService/PlanUndo", Read),
    ("ReviewService/Propose", Propose),
    ("ReviewService/Redo", Decide),
    ("ReviewService/ResolveSession", Read),
    ("ReviewService/Restore", Decide),
    // Opens a review, which then needs a verdict.
    ("ReviewService/ReviewTurn", Propose),
    ("ReviewService/Status", Read),
    ("ReviewService/SuggestRule", Read),
    ("ReviewService/Undo", Decide),
    ("ReviewService/Watch", Read),
    ("ReviewService/WatchInbox", Inspect),
    ("ToolService/ListTools", Read),
    // Limited to what policy allows. Grants beyond that require a caller that could decide.
    ("ToolService/RunTool", Propose),
    ("WorkspaceService/CheckOutBranch", Decide),
    ("WorkspaceService/ExplainPolicy", Read),
    ("WorkspaceService/GetBranch", Read),
    ("WorkspaceService/ListDirectory", Read),
    ("WorkspaceService/PlanBranch", Read),
    ("WorkspaceService/ReadFile", Read),
];

/// Authority for a call to this path.
pub(crate) fn of_path(path: &str) -> Authority {
    let method = path.strip_prefix("/sayso.v1.").unwrap_or_default();
    METHODS.binary_search_by_key(&method, |(name, _)| name).map_or(Admit, |at| METHODS[at].1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    /// All methods in the proto files, sorted.
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
        assert!(listed.is_sorted(), "binary search needs a sorted table");
        assert_eq!(protocol(), listed, "a new method needs an authority");
    }

    #[test]
    fn unknown_method_needs_highest_authority() {
        for path in ["/sayso.v1.ReviewService/Approve", "/sayso.v1.Other/Status", "/", "ReviewService/Status"] {
            assert_eq!(of_path(path), Admit, "{path}");
        }
        assert_eq!(of_path("/sayso.v1.ReviewService/Status"), Read);
        assert_eq!(of_path("/sayso.v1.ReviewService/Decide"), Decide);
    }
}
