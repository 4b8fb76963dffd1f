//! Compiles the protocol to Rust, without `protoc`.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a build script reads files and speaks to cargo")]

use std::error::Error;
use std::path::{Path, PathBuf};

use protox::Compiler;

const PROTO: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(Path::new(PROTO).join("sayso/v1"))? {
        files.push(Path::new("sayso/v1").join(entry?.file_name()));
    }
    files.sort();
    let mut compiler = Compiler::new([PROTO])?;
    compiler.include_imports(true).include_source_info(true).open_files(&files)?;
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let descriptors = folder.join("sayso.bin");
    std::fs::write(&descriptors, compiler.encode_file_descriptor_set())?;
    connectrpc_build::Config::new()
        .descriptor_set(&descriptors)
        .files(&files)
        .include_file("_connectrpc.rs")
        .emit_rerun_directives(false)
        .compile()?;
    Ok(())
}
