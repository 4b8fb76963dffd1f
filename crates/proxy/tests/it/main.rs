//! One test binary for the gateway, over real HTTP, with a scripted model behind it.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic to fail and look at what was written"
)]

mod answers;
mod cleanup;
mod faults;
mod handover;
mod holding;
mod identity;
mod large;
mod log;
mod modes;
mod redaction;
mod regressions;
mod saved;
mod scene;
mod sdk;
mod turns;
mod unmarked;
mod unread;

#[test]
fn every_file_here_is_part_of_this_binary() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let listed = include_str!("main.rs");
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(listed.contains(&format!("mod {name};")), "{name}.rs is not listed in main.rs");
    }
}
