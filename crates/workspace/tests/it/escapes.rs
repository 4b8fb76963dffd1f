//! Every known way out for a write, with both backends and both ways to replace a file.
//!
//! Each test runs beside `outside/secret`, and fails if a file there changes or appears.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use sayso_review::Proposal;
use sayso_workspace::{ApplyError, Prepared, Workspace};
use serde_json::{Value, json};

use crate::change::{Thing, approve, at, delete, in_every_way, plan, prepare, preview, put, tree, write};

#[test]
fn escaping_paths_are_rejected_before_access() {
    in_every_way(|workspace, root| {
        let outside = root.parent().unwrap().join("outside/secret");
        for path in ["../outside/secret", "a/../../outside/secret", outside.to_str().unwrap(), "/etc/passwd", ".."] {
            for changes in [write(path, "x"), delete(path), json!({"operation": "rename", "path": "a", "to": path})] {
                let proposal = Proposal::parse(changes.to_string().as_bytes()).unwrap();
                assert!(proposal.draft(|text| workspace.locate(text)).is_err(), "{path}");
            }
        }
    });
}

#[test]
fn outside_symlinks_are_not_written_through() {
    in_every_way(|workspace, root| {
        let outer = root.parent().unwrap();
        symlink("../outside/secret", root.join("file-relative")).unwrap();
        symlink(outer.join("outside/secret"), root.join("file-absolute")).unwrap();
        symlink("../outside", root.join("dir-relative")).unwrap();
        symlink(outer.join("outside"), root.join("dir-absolute")).unwrap();
        symlink("..", root.join("dir-up")).unwrap();
        symlink("../outside/none", root.join("dangling-relative")).unwrap();
        symlink(outer.join("outside/none"), root.join("dangling-absolute")).unwrap();
        symlink("none", root.join("dangling-inside")).unwrap();
        let before = tree(root);
        for path in [
            "file-relative",
            "file-absolute",
            "dir-relative/secret",
            "dir-relative/new",
            "dir-relative/new/deep",
            "dir-absolute/secret",
            "dir-absolute/new",
            "dir-absolute/new/deep",
            "dir-up/outside/secret",
            "dir-up/new",
            "dangling-relative",
            "dangling-relative/new",
            "dangling-absolute",
            "dangling-absolute/new/deep",
            "dangling-inside",
            "dangling-inside/new",
            "dangling-inside/new/deep",
        ] {
            let refused = approve(&preview(workspace, &json!([write(path, "x")])));
            assert!(refused.is_err(), "{path}");
        }
        for path in ["dir-relative/secret", "dir-absolute/secret", "dir-up/outside/secret"] {
            assert!(approve(&preview(workspace, &json!([delete(path)]))).is_err(), "{path}");
            let rename = json!([{"operation": "rename", "path": path, "to": "taken"}]);
            assert!(approve(&preview(workspace, &rename)).is_err(), "{path}");
        }
        assert_eq!(tree(root), before);
        // The link itself is inside.
        for path in ["file-relative", "file-absolute", "dir-relative", "dangling-absolute"] {
            prepare(workspace, &json!([delete(path)])).apply().unwrap();
            assert!(!tree(root).contains_key(path));
        }
    });
}

#[test]
fn symlinked_directory_after_observation_is_not_followed() {
    in_every_way(|workspace, root| {
        for target in ["../outside", "kept", root.parent().unwrap().join("outside").to_str().unwrap()] {
            for changes in [
                json!([write("dir/secret", "changed")]),
                json!([write("dir/new", "made")]),
                json!([write("dir/new/deep", "made")]),
                json!([delete("dir/secret")]),
                json!([write("a", "x"), write("dir/secret", "changed"), write("z/z", "x")]),
            ] {
                put(root, "dir/secret", "secret");
                for prepared_before in [true, false] {
                    let shown = plan(workspace, &changes);
                    let prepared = prepared_before.then(|| workspace.prepare(shown.clone(), Vec::new()).unwrap());
                    std::fs::rename(root.join("dir"), root.join("kept")).unwrap();
                    symlink(target, root.join("dir")).unwrap();
                    let before = tree(root);
                    let result = match prepared {
                        Some(prepared) => prepared.apply(),
                        None => workspace.prepare(shown, Vec::new()).and_then(Prepared::apply),
                    };
                    let error = result.unwrap_err();
                    assert!(matches!(error, ApplyError::Outside { .. }), "{target} {changes}: {error}");
                    assert_eq!(tree(root), before, "{target} {changes}");
                    std::fs::remove_file(root.join("dir")).unwrap();
                    std::fs::rename(root.join("kept"), root.join("dir")).unwrap();
                }
            }
        }
        // A file to create.
        let prepared = prepare(workspace, &json!([write("fresh/deep/file", "x")]));
        symlink("../outside", root.join("fresh")).unwrap();
        assert!(matches!(prepared.apply(), Err(ApplyError::Outside { .. })));
    });
}

#[test]
fn special_files_are_obstacles() {
    in_every_way(|workspace, root| {
        rustix::fs::mkfifoat(CWD, root.join("pipe"), Mode::RWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let mut specials = vec!["pipe", "socket"];
        // Only root can create device nodes.
        if rustix::fs::mknodat(CWD, root.join("device"), FileType::CharacterDevice, Mode::RWXU, 0x103).is_ok() {
            specials.push("device");
        }
        let before = tree(root);
        for special in specials {
            for changes in [write(special, "x"), delete(special), write(&format!("{special}/below"), "x")] {
                let error = approve(&preview(workspace, &json!([changes]))).unwrap_err();
                assert!(error.contains("not a regular file") || error.contains("not a directory"), "{error}");
                assert!(error.contains(special), "{error}");
            }
            assert!(
                approve(&preview(workspace, &json!([{"operation": "rename", "path": special, "to": "x"}]))).is_err()
            );
        }
        assert_eq!(tree(root), before);
    });
}

#[test]
fn special_file_in_place_is_stale() {
    type Place = fn(&Path) -> bool;
    let places: [Place; 3] = [
        |path| rustix::fs::mkfifoat(CWD, path, Mode::RWXU).is_ok(),
        |path| std::os::unix::net::UnixListener::bind(path).is_ok(),
        |path| rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::RWXU, 0x103).is_ok(),
    ];
    in_every_way(|workspace, root| {
        for place in places {
            for changes in [json!([write("file", "new")]), json!([delete("file")]), json!([write("none", "new")])] {
                put(root, "file", "old");
                let prepared = prepare(workspace, &changes);
                let path = prepared.plan().steps()[0].path.clone();
                let _ = std::fs::remove_file(root.join(path.as_str()));
                if !place(&root.join(path.as_str())) {
                    continue;
                }
                let before = tree(root);
                assert!(matches!(prepared.apply(), Err(ApplyError::Stale { path: at }) if at == path));
                assert_eq!(tree(root), before);
                std::fs::remove_file(root.join(path.as_str())).unwrap();
            }
        }
    });
}

#[test]
fn case_twins_are_noted() {
    in_every_way(|workspace, root| {
        put(root, "Makefile", "old");
        let shown = preview(workspace, &json!([write("makefile", "new")]));
        let twin = sayso_review::Note::CaseTwin { other: at("Makefile") };
        assert!(shown.files()[0].notes.contains(&twin), "{:?}", shown.files()[0].notes);
    });
}

const COUNT: usize = 8;

/// All files have the same number, so that a partial change shows.
fn generation(number: usize) -> Value {
    let below = (0..COUNT).map(|file| write(&format!("dir/{file}"), &format!("{number}\n")));
    Value::Array(below.chain([write("top", &format!("{number}\n"))]).collect())
}

/// Applies changes in a loop while another thread interferes, until both outcomes occurred often enough.
fn while_disturbed(workspace: &Workspace, root: &Path, disturb: impl Fn() + Sync) {
    prepare(workspace, &generation(0)).apply().unwrap();
    // Handle of the directory, which stays valid when it is moved.
    let held = std::fs::File::open(root.join("dir")).unwrap();
    let real = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let done = AtomicBool::new(false);
    let (mut applied, mut refused, mut number) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                disturb();
            }
        });
        for attempt in 0..20_000 {
            if applied >= 15 && refused >= 15 {
                break;
            }
            assert!(attempt < 19_999, "{applied} applied, {refused} refused");
            let Ok(plan) = approve(&preview(workspace, &generation(number + 1))) else { continue };
            // Without the directory the plan would create it.
            if plan.steps().iter().any(|step| step.before == sayso_review::FileState::Absent) {
                continue;
            }
            match workspace.prepare(plan, Vec::new()).and_then(Prepared::apply) {
                Ok(_) => (applied, number) = (applied + 1, number + 1),
                Err(error @ ApplyError::Torn { .. }) => panic!("{error}"),
                Err(_) => refused += 1,
            }
            let mut found = tree(&real);
            let top = Thing::File { bytes: std::fs::read(root.join("top")).unwrap(), mode: 0 };
            found.insert("top".to_owned(), top);
            let wanted = format!("{number}\n");
            assert_eq!(found.len(), COUNT + 1, "{:?}", found.keys());
            for (path, thing) in found {
                assert!(matches!(&thing, Thing::File { bytes, .. } if *bytes == wanted.as_bytes()), "{path}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn apply_stays_inside_during_directory_swap() {
    in_every_way(|workspace, root| {
        for file in 0..COUNT {
            // If the link were followed, the target would match.
            put(root, &format!("kept/{file}"), "0\n");
        }
        symlink("../outside", root.join("evil")).unwrap();
        let exchange =
            || rustix::fs::renameat_with(CWD, root.join("dir"), CWD, root.join("evil"), RenameFlags::EXCHANGE).unwrap();
        while_disturbed(workspace, root, || {
            exchange();
            exchange();
            for _ in 0..2_000 {
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        });
    });
}

#[test]
fn directory_moved_and_back_stays_atomic() {
    in_every_way(|workspace, root| {
        let away = root.parent().unwrap().join("away");
        while_disturbed(workspace, root, || {
            std::fs::rename(root.join("dir"), &away).unwrap();
            std::fs::rename(&away, root.join("dir")).unwrap();
            for _ in 0..2_000 {
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        });
        assert!(!away.exists());
    });
}

#[test]
fn directory_moved_out_is_left_unchanged() {
    in_every_way(|workspace, root| {
        prepare(workspace, &generation(0)).apply().unwrap();
        let (directory, away) = (root.join("dir"), root.parent().unwrap().join("away"));
        let mut number = 0;
        let refused = (0..50).any(|_| {
            let prepared = prepare(workspace, &generation(number + 1));
            let stop = AtomicBool::new(false);
            let result = std::thread::scope(|scope| {
                let mover = scope.spawn(|| {
                    let temporary = |entry: std::io::Result<std::fs::DirEntry>| {
                        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with(".sayso-"))
                    };
                    // Waits until files are being written.
                    while !stop.load(Ordering::Relaxed) {
                        if std::fs::read_dir(&directory).unwrap().any(temporary) {
                            return std::fs::rename(&directory, &away).unwrap();
                        }
                    }
                });
                let result = prepared.apply();
                stop.store(true, Ordering::Relaxed);
                mover.join().unwrap();
                result
            });
            let moved = away.exists();
            if moved {
                std::fs::rename(&away, &directory).unwrap();
            }
            match &result {
                Ok(_) => number += 1,
                Err(error) => assert!(moved && matches!(error, ApplyError::Outside { .. }), "{error}"),
            }
            let wanted = format!("{number}\n");
            let found = tree(root);
            assert_eq!(found.len(), COUNT + 2, "{:?}", found.keys());
            let is_right = |thing: &Thing| match thing {
                Thing::File { bytes, .. } => *bytes == wanted.as_bytes(),
                thing => *thing == Thing::Directory,
            };
            assert!(found.values().all(is_right), "{found:?}");
            result.is_err()
        });
        assert!(refused, "it was never moved in time");
    });
}
