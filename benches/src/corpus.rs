//! Thousands of real edits: the files that differ between versions of large crates, out of the cargo registry.
//!
//! `cargo info NAME@VERSION` downloads and unpacks one crate without its dependencies. What it unpacked stays in cargo's own
//! cache, so only the first run needs the network, and the repository contains none of it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Large crates of different hands, with versions that follow one another closely: feature releases in a row, or every few
/// patch releases. Files then differ as they do in daily work, most a little and some throughout.
const CRATES: [(&str, &str); 10] = [
    ("bevy_ecs", "0.13.0 0.14.0 0.15.0 0.16.0 0.17.0 0.18.0"),
    ("cranelift-codegen", "0.119.0 0.120.0 0.121.0 0.122.0 0.123.0 0.124.0 0.125.0 0.126.0 0.127.0 0.128.0"),
    ("egui", "0.26.0 0.27.0 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0 0.33.0 0.34.0"),
    ("image", "0.24.6 0.24.7 0.24.8 0.24.9 0.25.0 0.25.1 0.25.2 0.25.4 0.25.5 0.25.6 0.25.8 0.25.9 0.25.10"),
    ("naga", "22.0.0 23.0.0 24.0.0 25.0.0 26.0.0 27.0.0 28.0.0"),
    ("polars-core", "0.45.0 0.46.0 0.47.0 0.48.0 0.49.0 0.50.0 0.51.0 0.52.0 0.53.0"),
    ("rustls", "0.23.0 0.23.5 0.23.10 0.23.15 0.23.20 0.23.25 0.23.31 0.23.35 0.23.40"),
    ("syn", "2.0.40 2.0.50 2.0.60 2.0.70 2.0.80 2.0.90 2.0.100 2.0.110 3.0.0"),
    ("tokio", "1.40.0 1.41.0 1.42.0 1.43.0 1.44.0 1.45.0 1.46.0 1.47.0 1.48.0 1.49.0 1.50.0 1.51.0 1.52.0"),
    ("wasmparser", "0.230.0 0.232.0 0.234.0 0.236.0 0.238.0 0.240.0 0.242.0 0.244.0"),
];

/// Number of pairs of a quick run.
const QUICK_PAIRS: usize = 300;

/// Portion of the corpus to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Full,
    /// A few hundred pairs, spread evenly.
    Quick,
}

/// Versions of a crate to compare. The share of changed lines determines the cost of an engine, so a ratio for one distance alone
/// depends on the choice of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Each with the next in the list.
    Near,
    /// The first with the last.
    Far,
}

/// One file in two versions that differ.
pub struct Pair {
    old_path: PathBuf,
    new_path: PathBuf,
    /// The earlier content.
    pub old: Vec<u8>,
    /// The later content.
    pub new: Vec<u8>,
}

impl Pair {
    /// The pair if both files are text and differ.
    fn read(old_path: PathBuf, new_path: PathBuf) -> Result<Option<Self>> {
        let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        let (old, new) = (read(&old_path)?, read(&new_path)?);
        let is_text = |bytes: &[u8]| !bytes[..bytes.len().min(8000)].contains(&0);
        Ok((old != new && is_text(&old) && is_text(&new)).then_some(Self { old_path, new_path, old, new }))
    }

    /// Path of the newer file, for messages.
    pub fn path(&self) -> &Path {
        &self.new_path
    }

    /// Bytes on both sides.
    pub fn size(&self) -> usize {
        self.old.len() + self.new.len()
    }
}

/// The file pairs, in a fixed order.
pub struct Corpus {
    /// Every pair differs.
    pub pairs: Vec<Pair>,
}

/// Returns the directory for the files of a run.
pub fn work_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/corpus")
}

impl Corpus {
    /// Fetches what is missing and reads all pairs.
    pub fn fetch(distance: Distance, extent: Extent) -> Result<Self> {
        let mut pairs = Vec::new();
        for (name, versions) in CRATES {
            let mut folders = Vec::new();
            for version in versions.split(' ') {
                folders.extend(fetch_crate(name, version)?);
            }
            if let ([first, .., last], Distance::Far) = (folders.as_slice(), distance) {
                folders = vec![first.clone(), last.clone()];
            }
            for versions in folders.windows(2) {
                pair_up(&versions[0], &versions[1], &mut pairs)?;
            }
        }
        ensure!(!pairs.is_empty(), "the corpus is empty: no crate could be fetched from the registry");
        if extent == Extent::Quick {
            let step = pairs.len().div_ceil(QUICK_PAIRS);
            pairs = pairs.into_iter().step_by(step).collect();
        }
        Ok(Self { pairs })
    }

    /// Bytes on both sides of all pairs.
    pub fn size(&self) -> usize {
        self.pairs.iter().map(Pair::size).sum()
    }

    /// Writes the paths of all pairs to a file, for [`Corpus::from_list`] in another process.
    pub fn write_list(&self, name: &str) -> Result<PathBuf> {
        fs::create_dir_all(work_directory())?;
        let path = work_directory().join(format!("{name}.tsv"));
        let mut list = BufWriter::new(File::create(&path)?);
        for Pair { old_path, new_path, .. } in &self.pairs {
            writeln!(list, "{}\t{}", old_path.display(), new_path.display())?;
        }
        list.flush()?;
        Ok(path)
    }

    /// Reads the pairs of a list.
    pub fn from_list(list: &Path) -> Result<Self> {
        let mut pairs = Vec::new();
        for line in fs::read_to_string(list)?.lines() {
            let (old, new) = line.split_once('\t').context("a line of the list is not two paths")?;
            pairs.extend(Pair::read(old.into(), new.into())?);
        }
        Ok(Self { pairs })
    }

    /// Lays all pairs out as two directories with the same names in them, for programs that compare trees.
    pub fn write_trees(&self) -> Result<Trees> {
        let contents = self.pairs.iter().map(|pair| (pair.old.as_slice(), pair.new.as_slice()));
        Trees::write("pairs", contents)
    }
}

/// Two directories that programs compare.
pub struct Trees {
    /// The folder that holds both.
    pub folder: PathBuf,
}

impl Trees {
    /// Writes `old/NUMBER` and `new/NUMBER` for each pair of contents beneath a folder of this name.
    pub fn write<'a>(name: &str, contents: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<Self> {
        let folder = work_directory().join("trees").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let sides = [folder.join("old"), folder.join("new")];
        for side in &sides {
            fs::create_dir_all(side)?;
        }
        for (number, (old, new)) in contents.enumerate() {
            fs::write(sides[0].join(format!("{number:05}")), old)?;
            fs::write(sides[1].join(format!("{number:05}")), new)?;
        }
        Ok(Self { folder })
    }
}

/// The unpacked crate, or `None` with a warning where the registry does not give it: a yanked version must not end the run.
fn fetch_crate(name: &str, version: &str) -> Result<Option<PathBuf>> {
    if let Some(folder) = unpacked(name, version)? {
        return Ok(Some(folder));
    }
    eprintln!("fetching {name} {version}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["info", "--quiet", &format!("{name}@{version}")])
        // Outside of any workspace, so that no lock file has a say.
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    let folder = unpacked(name, version)?;
    if !status.success() || folder.is_none() {
        eprintln!("warning: {name} {version} could not be fetched; its pairs are missing");
    }
    Ok(folder)
}

/// Returns the directory of this version of a crate in cargo's cache.
fn unpacked(name: &str, version: &str) -> Result<Option<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .context("neither CARGO_HOME nor a home directory is set")?;
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else { return Ok(None) };
    for registry in registries {
        let folder = registry?.path().join(format!("{name}-{version}"));
        // Cargo writes this file last.
        if folder.join(".cargo-ok").exists() {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// Adds the files that two folders both have and that differ, in the order of their names.
fn pair_up(old: &Path, new: &Path, pairs: &mut Vec<Pair>) -> Result<()> {
    let mut names: Vec<_> = fs::read_dir(old)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    names.sort();
    // Files with a dot are cargo's own.
    for name in names.iter().filter(|name| !hidden(name)) {
        let (old, new) = (old.join(name), new.join(name));
        if old.is_dir() && new.is_dir() {
            pair_up(&old, &new, pairs)?;
        } else if old.is_file() && new.is_file() {
            pairs.extend(Pair::read(old, new)?);
        }
    }
    Ok(())
}

fn hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}
