//! Plans are applied whole, or not at all.

use std::os::unix::fs::symlink;
use std::path::Path;

use sayso_workspace::{ApplyError, Workspace};
use serde_json::{Value, json};

use crate::change::{
    Thing, approve, at, change, delete, files, in_every_way, plan, prepare, preview, put, set_mode, tree, undo, write,
};

fn text(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn created_changed_moved_removed_files_are_found() {
    in_every_way(|workspace, root| {
        for name in ["update", "delete", "from", "run"] {
            put(root, name, name);
        }
        symlink("update", root.join("link")).unwrap();
        symlink("update", root.join("gone")).unwrap();
        let changes = json!([
            write("create", "new\n"),
            write("deep/er/still", "deep\n"),
            write("update", "updated\n"),
            delete("delete"),
            {"operation": "rename", "path": "from", "to": "sub/to"},
            {"operation": "rename", "path": "link", "to": "sub/link"},
            delete("gone"),
            {"operation": "write", "path": "run", "new_content": "run", "exact": true, "executable": true},
        ]);
        let before = tree(root);
        let plan = plan(workspace, &changes);
        let prepared = workspace.prepare(plan.clone(), Vec::new()).unwrap();
        assert_eq!(tree(root), before, "preparing touches nothing");
        let made = prepared.record().directories;
        assert_eq!(made, ["deep", "deep/er", "sub"].map(at));
        assert!(prepared.apply().unwrap().lost.is_empty());
        let after = tree(root);
        // Permissions according to the umask.
        let Some(Thing::File { mode: plain, .. }) = before.get("from") else { panic!() };
        let plain = *plain;
        let is = |path: &str, text: &str, mode: u32| {
            assert_eq!(after.get(path), Some(&Thing::File { bytes: text.into(), mode }), "{path}");
        };
        is("create", "new\n", plain);
        is("deep/er/still", "deep\n", plain);
        is("update", "updated\n", plain);
        is("sub/to", "from", plain);
        is("run", "run", plain | (plain & 0o444) >> 2);
        assert_eq!(after.get("sub/link"), Some(&Thing::Link("update".to_owned())));
        for gone in ["delete", "from", "link", "gone"] {
            assert_eq!(after.get(gone), None, "{gone}");
        }
        // The undo also removes the created directories.
        workspace.prepare(undo(workspace, &plan), made).unwrap().apply().unwrap();
        assert_eq!(tree(root), before);
    });
}

#[test]
fn created_directory_is_removed_only_if_empty() {
    in_every_way(|workspace, root| {
        let plan = plan(workspace, &json!([write("a/b/c/file", "x"), write("d/file", "x")]));
        let prepared = workspace.prepare(plan.clone(), Vec::new()).unwrap();
        let made = prepared.record().directories;
        prepared.apply().unwrap();
        put(root, "a/mine", "mine");
        std::fs::create_dir(root.join("mine")).unwrap();
        workspace.prepare(undo(workspace, &plan), made).unwrap().apply().unwrap();
        assert_eq!(tree(root).into_keys().collect::<Vec<_>>(), ["a", "a/mine", "mine"]);
    });
}

#[test]
fn foreign_directory_survives_rollback() {
    in_every_way(|workspace, root| {
        put(root, "z", "shown");
        let prepared = prepare(workspace, &json!([write("new/deep/file", "x"), write("z", "y")]));
        assert_eq!(prepared.record().directories, ["new", "new/deep"].map(at));
        std::fs::create_dir(root.join("new")).unwrap();
        put(root, "z", "edited");
        assert!(matches!(prepared.apply(), Err(ApplyError::Stale { path }) if path == at("z")));
        assert_eq!(tree(root).into_keys().collect::<Vec<_>>(), ["new", "z"]);
    });
}

#[test]
fn file_in_place_of_directory_is_rejected() {
    in_every_way(|workspace, root| {
        put(root, "file", "x");
        let refused = approve(&preview(workspace, &json!([write("file/below", "y"), write("file/far/below", "y")])));
        assert!(refused.unwrap_err().contains("not a directory"));
        // The file replaces the directory after the observation.
        put(root, "dir/old", "x");
        for changes in [json!([write("dir/old", "y")]), json!([write("dir/new", "y")]), json!([delete("dir/old")])] {
            let prepared = prepare(workspace, &changes);
            std::fs::rename(root.join("dir"), root.join("kept")).unwrap();
            put(root, "dir", "a file now");
            let before = tree(root);
            let error = prepared.apply().unwrap_err();
            assert!(matches!(error, ApplyError::Stale { .. }), "{error}");
            assert_eq!(tree(root), before);
            std::fs::remove_file(root.join("dir")).unwrap();
            std::fs::rename(root.join("kept"), root.join("dir")).unwrap();
        }
        for (missing, nearer) in [("far/off", "far"), ("far/off", "far/off")] {
            let prepared = prepare(workspace, &json!([write(&format!("{missing}/file"), "y")]));
            put(root, nearer, "a file now");
            let before = tree(root);
            assert!(prepared.apply().is_err());
            assert_eq!(tree(root), before);
            std::fs::remove_file(root.join(nearer)).unwrap();
            let _ = std::fs::remove_dir(root.join("far"));
        }
    });
}

/// Six files: two created, two changed, two deleted, in existing and new directories.
fn mixed(root: &Path) -> (Vec<&'static str>, Value) {
    for name in ["b-update", "dir/d-update", "c-delete", "dir/e-delete"] {
        put(root, name, format!("{name} as shown\n"));
    }
    let changes = json!([
        write("a-create", "new"),
        write("b-update", "b-update as wanted\n"),
        delete("c-delete"),
        write("dir/d-update", "dir/d-update as wanted, longer\n"),
        delete("dir/e-delete"),
        write("new/f-create", "new"),
    ]);
    (vec!["a-create", "b-update", "c-delete", "dir/d-update", "dir/e-delete", "new/f-create"], changes)
}

#[test]
fn stale_file_stops_whole_plan() {
    type Disturb = fn(&Path);
    let disturbances: [(&str, Disturb); 7] = [
        ("same length", |path| {
            let bytes = std::fs::read(path).unwrap_or_else(|_| b"theirs".to_vec());
            put(path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap(), bytes.to_ascii_uppercase());
        }),
        ("other length", |path| put(path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap(), "theirs")),
        ("gone, or there", |path| match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(_) => put(path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap(), "theirs"),
        }),
        ("mode", |path| {
            if !path.exists() {
                put(path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap(), "theirs");
            }
            set_mode(path, 0o640);
        }),
        ("directory", |path| {
            let _ = std::fs::remove_file(path);
            std::fs::create_dir_all(path.join("inside")).unwrap();
        }),
        ("symlink", |path| {
            let _ = std::fs::remove_file(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink("/etc/passwd", path).unwrap();
        }),
        ("pipe", |path| {
            let _ = std::fs::remove_file(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
        }),
    ];
    for (what, disturb) in disturbances {
        for index in 0..6 {
            in_every_way(|workspace, root| {
                let (names, changes) = mixed(root);
                let prepared = prepare(workspace, &changes);
                disturb(&root.join(names[index]));
                let before = tree(root);
                let error = prepared.apply().unwrap_err();
                assert!(matches!(&error, ApplyError::Stale { path } if *path == at(names[index])), "{what}: {error}");
                assert_eq!(tree(root), before, "{what} {}", names[index]);
            });
        }
    }
}

#[test]
fn hard_linked_names_change_together() {
    in_every_way(|workspace, root| {
        put(root, "a", "one");
        std::fs::hard_link(root.join("a"), root.join("b")).unwrap();
        std::fs::hard_link(root.join("a"), root.join("c")).unwrap();
        change(workspace, &json!([write("a", "first"), write("b", "second")])).unwrap();
        assert_eq!([text(root, "a"), text(root, "b"), text(root, "c")], ["first", "second", "one"]);
    });
}

#[test]
fn directories_are_created_in_symlink_target() {
    in_every_way(|workspace, root| {
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("short")).unwrap();
        change(workspace, &json!([write("short/new/deep/file", "x")])).unwrap();
        assert_eq!(text(root, "real/new/deep/file"), "x");
        assert_eq!(tree(root).get("short"), Some(&Thing::Link("real".to_owned())));
    });
}

#[test]
fn protected_directory_is_never_written() {
    in_every_way(|_, root| {
        put(root, "state/journal", "x");
        symlink("state", root.join("short")).unwrap();
        let workspace = Workspace::open(root).unwrap().protecting(&root.join("short"));
        let before = tree(root);
        for path in ["state/journal", "state/new", "state/new/deep/er", "short/journal", "short/new", "short/new/deep"]
        {
            let refused = approve(&preview(&workspace, &json!([write(path, "y")])));
            assert!(refused.unwrap_err().contains("sayso's own records"), "{path}");
            // A plan of another workspace is rejected as well.
            let open = Workspace::open(root).unwrap();
            assert!(workspace.prepare(plan(&open, &json!([write(path, "y")])), Vec::new()).is_err(), "{path}");
        }
        assert_eq!(tree(root), before);
    });
}

#[test]
fn longest_file_names_are_written() {
    in_every_way(|workspace, root| {
        let name = "n".repeat(255);
        change(workspace, &json!([write(&name, "one")])).unwrap();
        change(workspace, &json!([write(&name, "two")])).unwrap();
        assert_eq!(text(root, &name), "two");
        change(workspace, &json!([delete(&name)])).unwrap();
        let longer = "n".repeat(256);
        let error = approve(&preview(workspace, &json!([write(&longer, "x")]))).unwrap_err();
        assert!(error.contains("too long"), "{error}");
    });
}

#[test]
fn plan_with_thousand_files_is_applied() {
    let directory = tempfile::tempdir().unwrap();
    let (workspace, root) = (Workspace::open(directory.path()).unwrap(), directory.path());
    let name = |number: usize| format!("d{}/{number}", number % 40);
    for number in 0..1000 {
        put(root, &name(number), "old\n");
    }
    let changes = |text: &str| Value::Array((0..1000).map(|number| write(&name(number), text)).collect());
    change(&workspace, &changes("new\n")).unwrap();
    let is_new = |thing: &Thing| matches!(thing, Thing::File { bytes, .. } if bytes == b"new\n");
    assert!(files(root).len() == 1000 && files(root).values().all(is_new));
    // The last file is stale.
    let prepared = prepare(&workspace, &changes("newer\n"));
    put(root, &name(999), "NEW\n");
    let before = tree(root);
    assert!(prepared.apply().is_err());
    assert_eq!(tree(root), before);
}

#[test]
fn stale_file_stops_large_plan() {
    // Enough files for several threads, which stop at different places.
    in_every_way(|workspace, root| {
        let changes: Vec<_> = (0..150)
            .map(|number| {
                let path = format!("d{}/f{number}", number % 70);
                put(root, &path, format!("old {number}"));
                if number % 5 == 0 { delete(&path) } else { write(&path, &format!("new {number}")) }
            })
            .collect();
        let prepared = prepare(workspace, &changes.into());
        put(root, "d7/f77", "theirs, and longer");
        let before = tree(root);
        assert!(matches!(prepared.apply().unwrap_err(), ApplyError::Stale { path } if path == at("d7/f77")));
        assert_eq!(tree(root), before);
    });
}
