//! Tests of the tools.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and make files to read")]

mod diff_criteria;
mod diff_more;
mod like_difflib;
mod other_tools;
mod propose_changes;

use sayso_review::{Grants, PathGlobs};
use sayso_tools::{Context, Registry, ToolError};
use sayso_workspace::Workspace;
use serde_json::Value;
use tempfile::TempDir;

/// A workspace with files and grants.
pub(crate) struct Scene {
    pub(crate) directory: TempDir,
    pub(crate) grants: Grants,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self { directory, grants: Grants::none() }
    }

    pub(crate) fn grant(mut self, tool: &str) -> Self {
        self.grants.tools.insert(tool.to_owned());
        self
    }

    pub(crate) fn read(mut self, patterns: &[&str]) -> Self {
        self.grants.read = PathGlobs::new(patterns.iter().copied()).unwrap();
        self
    }

    pub(crate) fn write(mut self, patterns: &[&str]) -> Self {
        self.grants.write = PathGlobs::new(patterns.iter().copied()).unwrap();
        self
    }

    pub(crate) fn run(&self, tool: &str, arguments: &Value) -> Result<Value, ToolError> {
        let workspace = Workspace::open(self.directory.path()).unwrap();
        Registry::builtin().run(tool, arguments, &Context::new(&workspace, &self.grants))
    }

    pub(crate) fn kind(&self, tool: &str, arguments: &Value) -> &'static str {
        self.run(tool, arguments).map_or_else(|error| error.kind.name(), |value| panic!("it succeeded: {value}"))
    }
}
