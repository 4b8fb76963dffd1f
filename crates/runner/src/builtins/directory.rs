//! The builtins `cd` and `pwd`, with the logical and the physical directory.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

use super::{Arguments, write};
use crate::files;
use crate::shell::Shell;
use crate::walk::Step;

/// Treatment of symbolic links.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// `-L`: `..` removes the name before it.
    Logical,
    /// `-P`: symbolic links are resolved.
    Physical,
}

pub(super) fn cd(arguments: &Arguments<'_>, shell: &mut Shell) -> Step {
    let (links, operands) = match options("cd", arguments, shell) {
        Ok(options) => options,
        Err(status) => return Ok(status),
    };
    let target = match operands {
        [] => match shell.get("HOME") {
            Some(home) => home.to_vec(),
            None => return Ok(fail("HOME not set", shell)),
        },
        [b"-"] => match shell.get("OLDPWD") {
            Some(old) => old.to_vec(),
            None => return Ok(fail("OLDPWD not set", shell)),
        },
        [target] => target.to_vec(),
        _ => return Ok(fail("too many arguments", shell)),
    };
    if target.is_empty() {
        // The folder stays, and `cd -` leads to it.
        return enter(shell.directory.clone(), false, shell);
    }
    let is_shown = operands == [b"-"];
    match folder(&target, links, shell) {
        Ok(folder) => enter(folder, is_shown, shell),
        Err(reason) => {
            shell.complain_bytes(&[b"cd: ", target.as_slice(), b": ", reason.as_bytes()].concat());
            Ok(1)
        }
    }
}

fn fail(reason: &str, shell: &Shell) -> u8 {
    shell.complain(&format!("cd: {reason}"));
    1
}

/// The folder that a path names, if it can be entered.
fn folder(target: &[u8], links: Links, shell: &Shell) -> Result<PathBuf, String> {
    let path = shell.absolute(target);
    if let Some(error) = files::metadata_error(&path) {
        return Err(crate::descriptors::error_text(&error));
    }
    if !files::is_directory(&path) {
        return Err("Not a directory".to_owned());
    }
    if !files::allows(&path, Access::EXEC_OK) {
        return Err("Permission denied".to_owned());
    }
    let logical = normal(&path);
    if links == Links::Logical && files::is_directory(&logical) {
        return Ok(logical);
    }
    files::physical(&path).map_err(|error| crate::descriptors::error_text(&error))
}

fn enter(folder: PathBuf, is_shown: bool, shell: &mut Shell) -> Step {
    let old = std::mem::replace(&mut shell.directory, folder.clone());
    shell.export(OsStr::new("OLDPWD"), old.into_os_string().into_vec());
    let bytes = folder.into_os_string().into_vec();
    shell.export(OsStr::new("PWD"), bytes.clone());
    if is_shown { write("cd", &[bytes.as_slice(), b"\n"].concat(), shell) } else { Ok(0) }
}

pub(super) fn pwd(arguments: &Arguments<'_>, shell: &Shell) -> Step {
    let links = match options("pwd", arguments, shell) {
        Ok((links, _)) => links,
        Err(status) => return Ok(status),
    };
    let folder = match links {
        Links::Logical => shell.directory.clone(),
        Links::Physical => files::physical(&shell.directory).unwrap_or_else(|_| shell.directory.clone()),
    };
    write("pwd", &[folder.as_os_str().as_bytes(), b"\n"].concat(), shell)
}

/// Reads `-L`, `-P` and `--`. An error is a status; its message has been written.
fn options<'a, 'b>(name: &str, arguments: &'b Arguments<'a>, shell: &Shell) -> Result<(Links, &'b Arguments<'a>), u8> {
    let mut links = Links::Logical;
    let mut rest = arguments;
    while let [first, behind @ ..] = rest {
        match *first {
            b"--" => return Ok((links, behind)),
            b"-" => break,
            option if option.starts_with(b"-") => {
                for letter in &option[1..] {
                    links = match letter {
                        b'L' => Links::Logical,
                        b'P' => Links::Physical,
                        _ => return Err(invalid(name, *letter, shell)),
                    };
                }
                rest = behind;
            }
            _ => break,
        }
    }
    Ok((links, rest))
}

fn invalid(name: &str, letter: u8, shell: &Shell) -> u8 {
    shell.complain(&format!("{name}: -{}: invalid option", char::from(letter)));
    let usage = if name == "cd" { "cd [-L|[-P [-e]] [-@]] [dir]" } else { "pwd [-LP]" };
    // Standard error may be closed.
    let _ = shell.descriptors.write(2, format!("{name}: usage: {usage}\n").as_bytes());
    2
}

/// Removes `.` and `..` by their text.
fn normal(path: &Path) -> PathBuf {
    let mut folder = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folder.pop();
            }
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => folder.push(component),
        }
    }
    folder
}
