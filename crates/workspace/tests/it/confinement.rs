//! Every known way out of a workspace, with both backends.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::respawn::again_as_nobody;
use sayso_workspace::{Backend, OpenError, ReadError, ReadLimit, WalkLimit, Workspace, WsPath, WsPathError};

const LIMIT: ReadLimit = ReadLimit(1000);

/// `outer/secret` is outside, `outer/ws` is the workspace.
fn with_workspaces(test: impl Fn(&Workspace, &Path)) {
    for backend in [Backend::OpenAt2, Backend::Stepwise] {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        std::fs::create_dir_all(root.join("dir/sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        std::fs::write(root.join("file"), "inside").unwrap();
        std::fs::write(root.join("dir/sub/deep"), "deep").unwrap();
        test(&Workspace::open_with(&root, backend).unwrap(), &root);
    }
}

fn read(workspace: &Workspace, path: &str) -> Result<(String, String), ReadError> {
    let opened = workspace.open_path(&WsPath::parse(path).unwrap())?;
    let resolved = opened.resolved.to_string();
    Ok((resolved, String::from_utf8(opened.read(LIMIT)?).unwrap()))
}

#[test]
fn system_supports_openat2() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    assert!(format!("{workspace:?}").contains("OpenAt2"), "else only one backend is tested");
}

#[test]
fn files_inside_are_read() {
    with_workspaces(|workspace, _| {
        assert_eq!(read(workspace, "file").unwrap(), ("file".to_owned(), "inside".to_owned()));
        assert_eq!(read(workspace, "dir/sub/deep").unwrap().1, "deep");
    });
}

#[test]
fn inside_symlinks_are_resolved() {
    with_workspaces(|workspace, root| {
        symlink("../file", root.join("dir/up")).unwrap();
        symlink("dir/sub", root.join("short")).unwrap();
        symlink("short/../up", root.join("chain")).unwrap();
        assert_eq!(read(workspace, "dir/up").unwrap(), ("file".to_owned(), "inside".to_owned()));
        assert_eq!(read(workspace, "short/deep").unwrap(), ("dir/sub/deep".to_owned(), "deep".to_owned()));
        // `short/..` is the parent of the link's target, not of the link.
        assert_eq!(read(workspace, "chain").unwrap().0, "file");
    });
}

#[test]
fn outside_symlinks_are_rejected() {
    with_workspaces(|workspace, root| {
        symlink("../secret", root.join("relative")).unwrap();
        symlink(root.parent().unwrap().join("secret"), root.join("absolute")).unwrap();
        symlink("..", root.join("parent")).unwrap();
        symlink("dir/sub/../../../secret", root.join("through")).unwrap();
        symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
        for path in ["relative", "absolute", "parent/secret", "through", "magic"] {
            let error = read(workspace, path).unwrap_err();
            assert!(matches!(error, ReadError::Open(OpenError::Outside { .. })), "{path}: {error}");
        }
    });
}

#[test]
fn symlink_loop_is_error() {
    with_workspaces(|workspace, root| {
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        let error = read(workspace, "a").unwrap_err();
        assert!(matches!(error, ReadError::Open(OpenError::TooManyLinks(_))), "{error}");
    });
}

#[test]
fn special_files_are_not_read() {
    with_workspaces(|workspace, root| {
        let fifo = root.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        for special in ["pipe", "socket"] {
            let error = read(workspace, special).unwrap_err();
            assert!(matches!(error, ReadError::Open(OpenError::Special(_))), "{special}: {error}");
        }
        assert!(matches!(read(workspace, "dir"), Err(ReadError::Directory(_))));
    });
}

#[test]
fn unreadable_parent_directory_is_traversed() {
    // Root ignores permissions.
    if again_as_nobody("confinement::unreadable_parent_directory_is_traversed") {
        return;
    }
    with_workspaces(|workspace, root| {
        symlink("dir/sub/deep", root.join("link")).unwrap();
        let closed = root.join("dir");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o111)).unwrap();
        assert_eq!(read(workspace, "dir/sub/deep").unwrap().1, "deep");
        assert_eq!(read(workspace, "link").unwrap().1, "deep");
        assert!(workspace.open_path(&WsPath::parse("dir").unwrap()).is_err(), "it cannot be listed");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    });
}

#[test]
fn walk_is_bounded_and_skips_vanished_files() {
    with_workspaces(|workspace, root| {
        for number in 0..20 {
            std::fs::write(root.join(format!("dir/{number}")), "").unwrap();
        }
        let walk = |limit| workspace.walk_files(&WsPath::root(), WalkLimit(limit)).unwrap();
        assert_eq!((walk(5).files.len(), walk(5).truncated), (5, true));
        assert_eq!((walk(22).files.len(), walk(22).truncated), (22, false));
        let mut deep = root.join("deep");
        for _ in 0..300 {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("f"), "").unwrap();
        assert!(walk(1000).truncated, "too deep to be a source tree");
        symlink("..", root.join("dir/loop")).unwrap();
        assert!(walk(1000).files.iter().all(|file| !file.as_str().contains("loop")));
    });
}

#[test]
fn missing_and_non_directory_paths_are_errors() {
    with_workspaces(|workspace, _| {
        assert!(matches!(read(workspace, "absent"), Err(ReadError::Open(OpenError::NotFound(_)))));
        assert!(matches!(read(workspace, "file/x"), Err(ReadError::Open(OpenError::NotADirectory(_)))));
    });
}

#[test]
fn reads_are_bounded() {
    with_workspaces(|workspace, root| {
        std::fs::write(root.join("fits"), vec![b'x'; 1000]).unwrap();
        std::fs::write(root.join("large"), vec![b'x'; 1001]).unwrap();
        assert!(read(workspace, "fits").is_ok());
        assert!(matches!(read(workspace, "large"), Err(ReadError::TooLarge { limit: 1000, .. })));
        // A file without a known size is bounded as well.
        if Path::new("/proc/self/maps").exists() {
            let proc = Workspace::open_with(Path::new("/proc/self"), Backend::Stepwise).unwrap();
            let maps = proc.open_path(&WsPath::parse("maps").unwrap()).unwrap();
            assert!(matches!(maps.read(ReadLimit(10)), Err(ReadError::TooLarge { .. })));
        }
    });
}

#[test]
fn absolute_paths_need_the_root() {
    with_workspaces(|workspace, root| {
        let locate = |path: &Path| workspace.locate(path.to_str().unwrap());
        assert_eq!(locate(&root.join("dir/sub")).unwrap().as_str(), "dir/sub");
        assert!(locate(root).unwrap().is_root());
        let beside = format!("{}2/x", root.display());
        assert!(matches!(workspace.locate(&beside), Err(WsPathError::Absolute(_))));
        assert!(matches!(locate(&root.join("../secret")), Err(WsPathError::Parent(_))));
        assert!(matches!(workspace.locate("/etc/passwd"), Err(WsPathError::Absolute(_))));
    });
}

#[test]
fn root_symlink_is_accepted() {
    let outer = tempfile::tempdir().unwrap();
    std::fs::create_dir(outer.path().join("real")).unwrap();
    std::fs::write(outer.path().join("real/f"), "x").unwrap();
    symlink("real", outer.path().join("link")).unwrap();
    let named = outer.path().join("link");
    let workspace = Workspace::open(&named).unwrap();
    for root in [&named, &outer.path().canonicalize().unwrap().join("real")] {
        assert_eq!(workspace.locate(root.join("f").to_str().unwrap()).unwrap().as_str(), "f");
    }
}

#[test]
fn open_stays_inside_during_directory_swap() {
    with_workspaces(|workspace, root| {
        std::fs::create_dir(root.join("swap")).unwrap();
        std::fs::write(root.join("swap/secret"), "inside").unwrap();
        symlink("..", root.join("evil")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Exchanges two names in a loop, so that `swap` is either the directory or the link out.
                while !done.load(Ordering::Relaxed) {
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        root.join("swap"),
                        rustix::fs::CWD,
                        root.join("evil"),
                        rustix::fs::RenameFlags::EXCHANGE,
                    );
                }
            });
            let (mut inside, mut refused) = (0, 0);
            for _ in 0..20_000 {
                match read(workspace, "swap/secret") {
                    Ok((_, text)) => {
                        assert_eq!(text, "inside");
                        inside += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            done.store(true, Ordering::Relaxed);
            assert!(inside > 0 && refused > 0, "the race happened: {inside} inside, {refused} refused");
        });
    });
}
