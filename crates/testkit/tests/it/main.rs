//! Tests of the repository itself: directions of dependencies, layout of files, truth of the documents, plain words.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and read the repository")]

mod agents;
mod architecture;
mod dependencies;
mod documents;
mod test_files;
mod words;
