//! Only accepted bytes change, and metadata stays.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::XattrFlags;
use sayso_review::{Answer, Decider, FileAnswer, HunkId, Verdict};
use sayso_workspace::Workspace;
use serde_json::{Value, json};

use crate::change::{Thing, at, change, delete, in_every_way, preview, put, set_mode, tree, write};
use sayso_testkit::skip::skip;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"operation": "edit", "path": path, "old_string": old, "new_string": new})
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(unit).collect()
}

/// Edits a file as a model does, which sees text with `\n`, and compares every byte.
#[track_caller]
fn check(workspace: &Workspace, root: &Path, name: &str, old: &[u8], change_of: (&str, &str), new: &[u8]) {
    put(root, name, old);
    put(root, "untouched", old);
    let times = |path: &str| root.join(path).metadata().map(|meta| (meta.mtime(), meta.mtime_nsec())).unwrap();
    let untouched = times("untouched");
    change(workspace, &json!([edit(name, change_of.0, change_of.1)])).unwrap();
    let found = std::fs::read(root.join(name)).unwrap();
    assert_eq!(found, new, "{name}: {} / {}", found.escape_ascii(), new.escape_ascii());
    assert_eq!(std::fs::read(root.join("untouched")).unwrap(), old);
    assert_eq!(times("untouched"), untouched);
}

#[test]
fn text_format_is_preserved() {
    in_every_way(|workspace, root| {
        let check = |name: &str, old: &[u8], new: &[u8]| check(workspace, root, name, old, ("two", "zwei\ndrei"), new);
        check("lf", b"one\ntwo\nthree\n", b"one\nzwei\ndrei\nthree\n");
        check("crlf", b"one\r\ntwo\r\nthree\r\n", b"one\r\nzwei\r\ndrei\r\nthree\r\n");
        check("mixed", b"one\r\ntwo\nthree\r\n", b"one\r\nzwei\ndrei\nthree\r\n");
        check("no-newline", b"one\ntwo", b"one\nzwei\ndrei");
        check("utf8-bom", b"\xEF\xBB\xBFone\ntwo\n", b"\xEF\xBB\xBFone\nzwei\ndrei\n");
        for (name, unit) in [("utf16le", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("utf16be", u16::to_be_bytes)] {
            check(name, &utf16("öne\r\ntwo\r\n", unit), &utf16("öne\r\nzwei\r\ndrei\r\n", unit));
        }
    });
}

#[test]
fn non_utf8_bytes_are_preserved() {
    in_every_way(|workspace, root| {
        let old = b"caf\xE9 au lait, na\xEFve fa\xE7ade\nsecond line\nd\xE9j\xE0 vu\n";
        let new = b"caf\xE9 au lait, na\xEFve fa\xE7ade\nother line\nd\xE9j\xE0 vu\n";
        check(workspace, root, "latin1", old, ("second", "other"), new);
    });
}

#[test]
fn only_the_approved_hunks_change() {
    in_every_way(|workspace, root| {
        let lines = |changed: &[usize]| -> String {
            let line = |number: usize| format!("{number}{}\r\n", if changed.contains(&number) { " new" } else { "" });
            (0..40).map(line).collect()
        };
        put(root, "file", lines(&[]));
        let preview = preview(workspace, &json!([write("file", &lines(&[3, 20, 36]))]));
        let hunks = BTreeSet::from([HunkId::whole(1), HunkId::whole(3)]);
        let files = BTreeMap::from([(at("file"), FileAnswer::Hunks { hunks })]);
        let answer = Answer::Files { files, reason: None };
        let verdict =
            Verdict { preview: preview.hash(), answer, comments: Vec::new(), message: None, by: Decider::PERSON };
        workspace.prepare(preview.decide(&verdict).unwrap().plan, Vec::new()).unwrap().apply().unwrap();
        assert_eq!(std::fs::read_to_string(root.join("file")).unwrap(), lines(&[3, 36]));
    });
}

#[test]
fn file_modes_are_preserved() {
    in_every_way(|workspace, root| {
        for mode in [0o755, 0o600, 0o640, 0o4755, 0o2755, 0o1644, 0o777, 0o664] {
            put(root, "file", "old\n");
            set_mode(root.join("file"), mode);
            change(workspace, &json!([write("file", "new\n")])).unwrap();
            assert_eq!(tree(root).get("file"), Some(&Thing::File { bytes: b"new\n".to_vec(), mode }));
            change(workspace, &json!([{"operation": "rename", "path": "file", "to": "moved"}])).unwrap();
            assert_eq!(tree(root).get("moved"), Some(&Thing::File { bytes: b"new\n".to_vec(), mode }));
            std::fs::remove_file(root.join("moved")).unwrap();
        }
    });
}

#[test]
fn symlink_stays_and_target_is_written() {
    in_every_way(|workspace, root| {
        put(root, "dir/real", "old\n");
        symlink("dir/real", root.join("link")).unwrap();
        symlink("dir", root.join("short")).unwrap();
        change(workspace, &json!([write("link", "new\n")])).unwrap();
        assert_eq!(std::fs::read(root.join("dir/real")).unwrap(), b"new\n");
        change(workspace, &json!([write("short/real", "newer\n"), write("short/more", "x")])).unwrap();
        assert_eq!(std::fs::read(root.join("dir/real")).unwrap(), b"newer\n");
        let now = tree(root);
        assert_eq!(now.get("link"), Some(&Thing::Link("dir/real".to_owned())));
        assert_eq!(now.get("short"), Some(&Thing::Link("dir".to_owned())));
        assert!(now.contains_key("dir/more"));
        change(workspace, &json!([delete("link")])).unwrap();
        assert!(!tree(root).contains_key("link") && root.join("dir/real").exists(), "only the link goes");
    });
}

#[test]
fn hard_link_is_replaced_on_write() {
    in_every_way(|workspace, root| {
        let outside = root.join("../outside/secret");
        std::fs::hard_link(&outside, root.join("link")).unwrap();
        let shown = preview(workspace, &json!([write("link", "new")]));
        assert!(shown.files()[0].notes.contains(&sayso_review::Note::HardLink { names: 2 }));
        change(workspace, &json!([write("link", "new")])).unwrap();
        assert_eq!(std::fs::read(&outside).unwrap(), b"secret");
        assert_eq!(std::fs::read(root.join("link")).unwrap(), b"new");
        assert_eq!(outside.metadata().unwrap().nlink(), 1);
    });
}

#[test]
fn extended_attributes_are_preserved() {
    in_every_way(|workspace, root| {
        put(root, "file", "old\n");
        let path = root.join("file");
        if rustix::fs::setxattr(&path, "user.sayso.test", b"kept", XattrFlags::empty()).is_err() {
            return skip("this file system has no extended attributes");
        }
        let applied = change(workspace, &json!([write("file", "new\n")])).unwrap();
        let mut value = [0_u8; 16];
        let length = rustix::fs::getxattr(&path, "user.sayso.test", &mut value[..]).unwrap();
        assert_eq!((&value[..length], applied.lost.is_empty()), (&b"kept"[..], true));
        // Under another name as well.
        change(workspace, &json!([{"operation": "rename", "path": "file", "to": "elsewhere/file"}])).unwrap();
        let path = root.join("elsewhere/file");
        let length = rustix::fs::getxattr(&path, "user.sayso.test", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"kept");
    });
}

#[test]
fn directory_access_list_does_not_open_file() {
    in_every_way(|workspace, root| {
        std::fs::create_dir(root.join("dir")).unwrap();
        put(root, "dir/file", "old\n");
        set_mode(root.join("dir/file"), 0o660);
        // Version 2, owner rwx, user 4242 rwx, group rwx, mask rwx, others none.
        let entry = |tag: u16, id: u32| [&tag.to_le_bytes()[..], &7_u16.to_le_bytes(), &id.to_le_bytes()].concat();
        let none = u32::MAX;
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, id) in [(1, none), (2, 4242), (4, none), (16, none)] {
            list.extend(entry(tag, id));
        }
        list.extend([&32_u16.to_le_bytes()[..], &0_u16.to_le_bytes(), &none.to_le_bytes()].concat());
        let set = rustix::fs::setxattr(root.join("dir"), "system.posix_acl_default", &list, XattrFlags::empty());
        if set.is_err() {
            return skip("this file system has no access lists");
        }
        let has_list =
            || rustix::fs::getxattr(root.join("dir/file"), "system.posix_acl_access", &mut [0_u8; 256][..]).is_ok();
        assert!(!has_list());
        change(workspace, &json!([write("dir/file", "new\n")])).unwrap();
        assert!(!has_list(), "the directory's list was handed down");
        assert_eq!(root.join("dir/file").metadata().unwrap().permissions().mode() & 0o7777, 0o660);
    });
}

#[test]
fn owner_and_group_are_preserved() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give files away");
    }
    in_every_way(|workspace, root| {
        put(root, "file", "old\n");
        let path = root.join("file");
        std::os::unix::fs::chown(&path, Some(4242), Some(4343)).unwrap();
        set_mode(&path, 0o6755);
        let applied = change(workspace, &json!([write("file", "new\n")])).unwrap();
        let meta = path.metadata().unwrap();
        assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (4242, 4343, 0o6755));
        assert!(applied.lost.is_empty());
    });
}
