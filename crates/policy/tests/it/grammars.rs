//! Every grammar file is well-formed, and mistakes in one are named.

use std::fs;
use std::path::Path;

use crate::tables::Tables;

fn add(tables: &mut Tables, text: &str) -> Result<(), String> {
    tables.add(&text.parse::<toml::Table>().map_err(|error| error.to_string())?)
}

#[test]
fn each_grammar_file_is_well_formed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars");
    let mut all = Tables::default();
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        if let Err(problem) = add(&mut Tables::default(), &text).and_then(|()| add(&mut all, &text)) {
            panic!("{}: {problem}", entry.path().display());
        }
        count += 1;
    }
    println!("{count} grammar files, {} bytes of tables", all.code().len());
    assert!(count >= 100, "{count} files");
}

#[test]
fn mistakes_in_a_grammar_are_named() {
    for (text, problem) in [
        ("names = [\"x\"]\n[options]\n\"-a\" = \"wirte\"\n", "`wirte`"),
        ("names = [\"x\"]\n[options]\n\"-a\" = \"flag netwrok\"\n", "`netwrok`"),
        ("names = [\"x\"]\n[options]\n\"-a -b\" = \"flag\"\n\"-b\" = \"text\"\n", "`-b` stands there twice"),
        ("names = [\"x\"]\nstyle = \"unix\"\n", "`unix`"),
        ("names = [\"x\"]\nopperands = \"read*\"\n", "`opperands`"),
        ("names = [\"x\"]\n[verb.y]\nuse = \"z\"\n", "no group `z`"),
        ("names = [\"x\"]\n[verb.\"a, b\"]\n[verb.a]\n", "`a` stands there twice"),
        ("names = [\"x\", \"x\"]\n", "has a grammar already"),
        ("style = \"exact\"\n", "`names`"),
        ("names = [", "TOML"),
    ] {
        let error = add(&mut Tables::default(), text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
    }
}
