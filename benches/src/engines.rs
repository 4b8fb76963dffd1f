//! The engines that run in this process, each from two byte strings to the text of a unified diff with three lines of
//! context, in the cheapest way its crate offers.

use anyhow::Result;
use sayso_diff::{Diff, Rendering, UnifiedOptions};

use crate::bare;

/// A diff engine that produces unified text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `sayso-diff`.
    Ours,
    /// gix-imara-diff, histogram, untrimmed, with the smallest printer that gives correct text.
    Bare,
    /// `similar`, Myers.
    Similar,
    /// `diffy`.
    Diffy,
    /// libgit2 through `git2`.
    Libgit2,
}

/// Lines of context in every unified text.
pub const CONTEXT: usize = 3;

const OPTIONS: UnifiedOptions<'static> =
    UnifiedOptions { context: CONTEXT, old_label: "old", new_label: "new", rendering: Rendering::Exact, limit: None };

impl Engine {
    /// All engines, ours first.
    pub const ALL: [Self; 5] = [Self::Ours, Self::Bare, Self::Similar, Self::Diffy, Self::Libgit2];

    /// The name in tables and on the command line of the hidden subcommands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare => "bare",
            Self::Similar => "similar",
            Self::Diffy => "diffy",
            Self::Libgit2 => "libgit2",
        }
    }

    /// The engine of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// The unified diff of two contents.
    pub fn unified(self, old: &[u8], new: &[u8]) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Ours => Diff::new(old, new).unified(&OPTIONS).into_text(),
            Self::Bare => bare::unified(old, new, CONTEXT),
            Self::Similar => {
                let mut text = Vec::new();
                similar::TextDiff::from_lines(old, new)
                    .unified_diff()
                    .context_radius(CONTEXT)
                    .header("old", "new")
                    .to_writer(&mut text)?;
                text
            }
            Self::Diffy => diffy::DiffOptions::new().set_context_len(CONTEXT).create_patch_bytes(old, new).to_bytes(),
            Self::Libgit2 => {
                let mut options = git2::DiffOptions::new();
                options.context_lines(CONTEXT as u32).force_text(true);
                git2::Patch::from_buffers(old, None, new, None, Some(&mut options))?.to_buf()?.to_vec()
            }
        })
    }
}
