//! Tests of the tools.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and make files to read")]

mod diff_criteria;
mod diff_more;
mod edit;
mod grep;
mod like_difflib;
mod other_steps;
mod other_tools;
mod propose_changes;
mod read_for_model;
mod registry;
mod stale;

use sayso_review::Preview;
use sayso_review::{Grants, PathGlobs};
use sayso_tools::{Context, FileStep, ReadLog, Registry, Step, ToolError, ToolOutput, UnsavedBuffers};
use sayso_workspace::Workspace;
use serde_json::Value;
use tempfile::TempDir;

/// A workspace with files and grants.
pub(crate) struct Scene {
    pub(crate) directory: TempDir,
    pub(crate) grants: Grants,
    pub(crate) reads: ReadLog,
    pub(crate) buffers: Buffers,
}

/// Unsaved texts by path.
#[derive(Debug, Default)]
pub(crate) struct Buffers(pub(crate) std::collections::BTreeMap<String, String>);

impl UnsavedBuffers for Buffers {
    fn text(&self, location: &sayso_review::WsPath) -> Option<String> {
        self.0.get(location.as_str()).cloned()
    }
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self { directory, grants: Grants::none(), reads: ReadLog::default(), buffers: Buffers::default() }
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

    /// Grants every tool and every file, as a session of the agent does.
    pub(crate) fn agent(files: &[(&str, &[u8])]) -> Self {
        let mut scene = Self::new(files).read(&["**"]).write(&["**"]);
        scene.grants.tools.extend(Registry::builtin().names().map(str::to_owned));
        scene
    }

    pub(crate) fn with<T>(&self, action: impl FnOnce(&Workspace, &Context<'_>) -> T) -> T {
        let workspace = Workspace::open(self.directory.path()).unwrap();
        let context = Context::new(&workspace, &self.grants).with_reads(&self.reads).with_buffers(&self.buffers);
        action(&workspace, &context)
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<Step, ToolError> {
        self.with(|_, context| Registry::builtin().prepare(tool, arguments, context))
    }

    /// Returns the text of a call that ends at once.
    pub(crate) fn text(&self, tool: &str, arguments: &Value) -> String {
        match self.prepare(tool, arguments).unwrap() {
            Step::Done(ToolOutput { text, is_error: false, .. }) => text,
            step => panic!("{step:?}"),
        }
    }

    pub(crate) fn change(&self, tool: &str, arguments: &Value) -> FileStep {
        match self.prepare(tool, arguments).unwrap() {
            Step::ChangeFiles(step) => step,
            step => panic!("{step:?}"),
        }
    }

    pub(crate) fn error(&self, tool: &str, arguments: &Value) -> ToolError {
        self.prepare(tool, arguments).unwrap_err()
    }

    /// Returns the bytes that a step would write to a path.
    pub(crate) fn result(&self, step: &FileStep, path: &str) -> Vec<u8> {
        self.with(|workspace, _| {
            let draft = step.proposal.draft(|path| workspace.locate(path)).unwrap();
            let observation = workspace.observe(draft.paths(), sayso_tools::FILE_LIMIT);
            let preview: Preview = draft.preview(&observation);
            assert_eq!(preview.problems().collect::<Vec<_>>(), []);
            let file = preview.files().iter().find(|file| file.path.as_str() == path).unwrap();
            file.after.bytes().unwrap().to_vec()
        })
    }
}
