//! One test binary for the program: it runs the real `sayso`, in a throw-away directory, with an empty environment.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and make files to compare")]

mod command_line;
mod crash;
mod diff_drawn;
mod diff_files;
mod diff_trees;
mod tool;

use std::path::PathBuf;
use std::process::Output;

use sayso_testkit::programs;
use tempfile::TempDir;

/// A throw-away directory to run in.
pub(crate) struct Scene {
    pub(crate) directory: TempDir,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap() };
        for (path, content) in files {
            scene.write(path, content);
        }
        scene
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        programs::run(self.directory.path(), env!("CARGO_BIN_EXE_sayso"), arguments, input)
    }

    /// What a run printed and how it ended, with escapes as `\\e` and the directory's name left out.
    pub(crate) fn transcript(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments, b"");
        let clean = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace('\x1b', "\\e");
            text.replace(self.directory.path().to_str().unwrap(), "[DIR]")
        };
        let mut text = format!("$ sayso {}\n{}", arguments.join(" "), clean(&stdout));
        if !stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", clean(&stderr)));
        }
        text.push_str(&format!("--- exit {}\n", status.code().unwrap()));
        text
    }
}
