//! Lists the files of `ui/app/dist`, so that the library embeds them. Without that directory, the list is empty.
//!
//! The files are copied first: another build of the app may replace them before the library is compiled.

#![allow(clippy::disallowed_methods, reason = "a build script reads the files that it embeds")]
#![allow(clippy::print_stdout, reason = "a build script talks to cargo on stdout")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let app = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../ui/app");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let dist = app.join("dist");
    let mut files = Vec::new();
    if dist.is_dir() {
        println!("cargo::rerun-if-changed={}", dist.display());
        collect(&dist, &mut files)?;
        files.sort();
    } else {
        // Cargo runs the script at each build if a watched path is missing. The parent directory changes when `dist` appears.
        let watched = if app.is_dir() { app } else { PathBuf::from("build.rs") };
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let copies = out.join("files");
    if copies.is_dir() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir_all(&copies)?;
    let mut list = String::from("&[\n");
    for (number, file) in files.into_iter().enumerate() {
        let path = file.strip_prefix(&dist).map_err(io::Error::other)?;
        let path = path.to_str().ok_or_else(|| io::Error::other(format!("{} is not UTF-8", file.display())))?;
        let url = format!("/{}", path.replace('\\', "/"));
        let copy = copies.join(number.to_string());
        fs::copy(&file, &copy)?;
        list.push_str(&format!("    ({url:?}, include_bytes!({:?})),\n", copy.display().to_string()));
    }
    list.push(']');
    fs::write(out.join("files.rs"), list)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
