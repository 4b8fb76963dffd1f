//! Stub.
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::intent::Proposal;
use crate::policy::Place;
use crate::ws_path::WsPath;

/// Stub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Syntax {
    /// Stub.
    Fine,
}
/// Stub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPreview {
    /// Stub.
    pub syntax: Syntax,
    /// Stub.
    pub dry_run: Option<Vec<String>>,
}
impl CommandPreview {
    /// Stub.
    pub fn of(_: &str, _: &WsPath, _: &str) -> Self {
        Self { syntax: Syntax::Fine, dry_run: None }
    }
    /// Stub.
    pub fn reads(&self) -> Vec<Place> {
        Vec::new()
    }
    /// Stub.
    pub fn writes(&self) -> Vec<Place> {
        Vec::new()
    }
}
/// Stub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationPreview {
    /// Stub.
    pub agent: String,
    /// Stub.
    pub tools: Vec<String>,
}
/// Stub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPreview {
    /// Stub.
    pub changes: Option<Proposal>,
    /// Stub.
    pub delegation: Option<DelegationPreview>,
}
impl ToolPreview {
    /// Stub.
    pub fn of(_: &str, _: &Value, _: Option<&Value>) -> Self {
        Self { changes: None, delegation: None }
    }
}
