//! Turns the grammar files into tables, so that the program parses none of them.

#![allow(clippy::panic, clippy::expect_used, reason = "a build script reports a failure by ending")]
#![allow(clippy::disallowed_methods, reason = "a build script reads the sources and writes where cargo says")]

#[path = "build/tables.rs"]
mod tables;
#[path = "src/grammar/vocabulary.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod vocabulary;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=grammars");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/tables.rs");
    println!("cargo:rerun-if-changed=src/grammar/vocabulary.rs");
    let mut files: Vec<PathBuf> =
        fs::read_dir("grammars").expect("the folder of grammars").flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut tables = tables::Tables::default();
    for file in &files {
        let text = fs::read_to_string(file).expect("a grammar is text");
        let grammar = text.parse::<toml::Table>().map_err(|error| error.to_string());
        if let Err(problem) = grammar.and_then(|grammar| tables.add(&grammar)) {
            panic!("{}: {problem}", file.display());
        }
    }
    let target = env::var_os("OUT_DIR").expect("cargo names the folder for generated code");
    fs::write(Path::new(&target).join("grammars.rs"), tables.code()).expect("the tables are written");
}
