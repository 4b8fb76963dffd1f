//! Tests of the gateway over real HTTP, with a scripted model as the upstream. One binary, so that it links once.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic to fail and read the written files"
)]

mod cleanup;
mod faults;
mod handover;
mod holding;
mod identity;
mod large;
mod modes;
mod overrides;
mod recording;
mod redaction;
mod regressions;
mod responses;
mod scene;
mod sdk;
mod turn_edits;
mod undecodable;
mod unnamed_sessions;

#[test]
fn every_file_is_part_of_this_binary() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let listed = include_str!("main.rs");
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(listed.contains(&format!("mod {name};")), "{name}.rs is not listed in main.rs");
    }
}
