//! System errors: each names the file, leaves the tree unchanged, and leaves no temporary file.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sayso_workspace::{ApplyError, Workspace};
use serde_json::{Value, json};

use crate::change::{approve, at, delete, in_every_way, prepare, preview, put, set_mode, tree, write};
use crate::respawn::{NOBODY, again, again_after, again_as_nobody, is_again};
use sayso_testkit::skip::skip;

#[track_caller]
fn refused(workspace: &Workspace, root: &Path, changes: &Value, path: &str, disturb: impl Fn()) -> String {
    let prepared = prepare(workspace, changes);
    disturb();
    let before = tree(root);
    let error = prepared.apply().unwrap_err();
    assert!(!matches!(error, ApplyError::Torn { .. }), "{error}");
    assert_eq!(*error.path(), at(path), "{error}");
    assert!(error.to_string().contains(&format!("`{path}`")) && error.to_string().contains("nothing was written"));
    assert_eq!(tree(root), before, "{error}");
    error.to_string()
}

#[test]
fn read_only_files_and_directories_are_obstacles() {
    // Root ignores permissions.
    if again_as_nobody("faults::read_only_files_and_directories_are_obstacles") {
        return;
    }
    in_every_way(|workspace, root| {
        put(root, "a", "old");
        put(root, "file", "old");
        put(root, "dir/file", "old");
        for (path, closed, mode, changes) in [
            ("file", "file", 0o444, vec![write("file", "new"), delete("file")]),
            ("dir/file", "dir", 0o555, vec![write("dir/file", "new"), delete("dir/file")]),
            ("dir/new", "dir", 0o555, vec![write("dir/new", "new")]),
            ("dir/new/deep", "dir", 0o555, vec![write("dir/new/deep", "new")]),
        ] {
            let open = root.join(closed).metadata().unwrap().mode() & 0o777;
            for change in changes {
                let changes = json!([write("a", "new"), change]);
                // The observation reports it before a plan exists.
                set_mode(root.join(closed), mode);
                let error = approve(&preview(workspace, &changes)).unwrap_err();
                assert!(error.contains("read-only") && error.contains(path), "{error}");
                set_mode(root.join(closed), open);
                // Afterwards: a file that was read-only in the preview would be stale, so this tests only the
                // directory.
                if closed == "dir" {
                    let named = if path == "dir/new/deep" { "dir/new" } else { path };
                    let error = refused(workspace, root, &changes, named, || set_mode(root.join(closed), mode));
                    assert!(error.contains("permission denied"), "{error}");
                    set_mode(root.join(closed), open);
                }
            }
        }
        // The user may own the directory and not the file.
        put(root, "mine", "old");
        let error =
            refused(workspace, root, &json!([write("mine", "new")]), "mine", || set_mode(root.join("mine"), 0o444));
        assert!(error.contains("changed after it was shown"), "{error}");
    });
}

#[test]
fn write_above_file_size_limit_leaves_nothing() {
    let name = "faults::write_above_file_size_limit_leaves_nothing";
    if !is_again() {
        // Limits files to 64 KiB, without the default signal.
        let limits = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
        again(name, &["bash", "-c", limits, "bash"]).unwrap();
        return;
    }
    in_every_way(|workspace, root| {
        put(root, "dir/a", "old");
        put(root, "dir/b", "old");
        put(root, "dir/c", "old");
        let large = "x".repeat(100_000);
        let changes = json!([write("dir/a", "new"), delete("dir/b"), write("dir/c", &large), write("new/d", "new")]);
        let error = refused(workspace, root, &changes, "dir/c", || {});
        assert!(error.contains("too large"), "{error}");
        let error = refused(workspace, root, &json!([write("fresh/deep/d", &large)]), "fresh/deep/d", || {});
        assert!(error.contains("too large"), "{error}");
    });
}

#[test]
fn full_disk_leaves_tree_unchanged() {
    let name = "faults::full_disk_leaves_tree_unchanged";
    if !is_again() {
        // Mounts a small file system for temporary directories.
        let mount = "mount -t tmpfs -o size=512k tmpfs /mnt && TMPDIR=/mnt exec \"$@\"";
        let root = rustix::process::geteuid().is_root();
        let namespace = if root { "-m" } else { "-rm" };
        if again(name, &["unshare", namespace, "bash", "-c", mount, "bash"]).is_none() {
            skip("no small file system can be mounted here");
        }
        return;
    }
    in_every_way(|workspace, root| {
        put(root, "a", "old");
        put(root, "b", "old");
        let large = "x".repeat(400_000);
        let changes = json!([write("a", &large), write("b", &large), write("new/c", "new")]);
        let error = refused(workspace, root, &changes, "b", || {});
        assert!(error.contains("no space left"), "{error}");
        // It succeeds once there is space.
        prepare(workspace, &json!([write("a", &large), write("new/c", "new")])).apply().unwrap();
    });
}

#[test]
fn too_many_open_directories_leave_tree_unchanged() {
    let name = "faults::too_many_open_directories_leave_tree_unchanged";
    if !is_again() {
        again(name, &["bash", "-c", "ulimit -n 100; exec \"$@\"", "bash"]).unwrap();
        return;
    }
    in_every_way(|workspace, root| {
        put(root, "a", "old");
        let changes = (0..200).map(|number| write(&format!("d{number}/file"), "new")).chain([write("a", "new")]);
        let changes: Vec<Value> = changes.collect();
        let prepared = prepare(workspace, &json!(changes));
        let before = tree(root);
        let error = prepared.apply().unwrap_err();
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        assert_eq!(tree(root), before);
        for number in 0..200 {
            put(root, &format!("d{number}/file"), "old");
        }
        let prepared = prepare(workspace, &json!(changes[..150].to_vec()));
        let before = tree(root);
        assert!(prepared.apply().unwrap_err().to_string().contains("ulimit -n"));
        assert_eq!(tree(root), before);
    });
}

#[test]
fn removed_directory_is_stale() {
    in_every_way(|workspace, root| {
        for changes in
            [json!([write("dir/file", "new")]), json!([delete("dir/file")]), json!([write("dir/new", "new")])]
        {
            put(root, "a", "old");
            put(root, "dir/file", "old");
            let path = if changes[0]["path"] == "dir/new" { "dir/new" } else { "dir/file" };
            let all = json!([write("a", "new"), changes[0]]);
            let error = refused(workspace, root, &all, path, || std::fs::remove_dir_all(root.join("dir")).unwrap());
            assert!(error.contains("changed after it was shown"), "{error}");
        }
    });
}

#[test]
fn target_replaced_by_directory_is_stale() {
    in_every_way(|workspace, root| {
        for change in [write("file", "new"), delete("file")] {
            put(root, "a", "old");
            put(root, "file", "old");
            refused(workspace, root, &json!([write("a", "new"), change]), "file", || {
                std::fs::remove_file(root.join("file")).unwrap();
                put(root, "file/inside", "theirs");
            });
            std::fs::remove_dir_all(root.join("file")).unwrap();
        }
    });
}

#[test]
fn setuid_file_does_not_change_owner() {
    let name = "faults::setuid_file_does_not_change_owner";
    if !is_again() {
        if rustix::process::geteuid().is_root() {
            // A world-writable file of another user.
            let make = |scratch: &Path| {
                for (path, mode) in [("user", 0o4777), ("group", 0o2777), ("plain", 0o777)] {
                    put(scratch, path, "old");
                    std::os::unix::fs::chown(scratch.join(path), Some(4242), Some(4343)).unwrap();
                    set_mode(scratch.join(path), mode);
                }
            };
            again_after(name, &NOBODY, make).unwrap();
        } else {
            skip("only root can give files away");
        }
        return;
    }
    let root = std::env::current_dir().unwrap();
    std::fs::remove_file(root.join("it")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    for path in ["user", "group"] {
        let error = refused(&workspace, &root, &json!([write(path, "new")]), path, || {});
        assert!(error.contains("cannot be given the permissions"), "{error}");
    }
    let applied = prepare(&workspace, &json!([write("plain", "new")])).apply().unwrap();
    assert_eq!(applied.lost, [(at("plain"), vec!["owner and group"])]);
}
