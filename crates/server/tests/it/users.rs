//! Other users of the machine cannot access the sockets or the token.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::scene::Scene;
use sayso_testkit::skip::skip;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn socket_files_are_private_to_user() {
    let scene = Scene::new();
    // An existing directory with a wide mode.
    let folder = scene.journal().join("engine");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    std::fs::write(folder.join("server.json"), "{}").unwrap();
    std::fs::set_permissions(folder.join("server.json"), Permissions::from_mode(0o666)).unwrap();
    let server = scene.serve();
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&server.socket), 0o600);
    assert_eq!(mode(&folder.join("server.json")), 0o600);
    let note = std::fs::read_to_string(folder.join("server.json")).unwrap();
    assert!(note.contains(crate::scene::TOKEN), "{note}");
    server.end();
    assert!(!folder.join("server.json").exists());
    assert!(!folder.join("socket").exists());
}

/// Makes a call as user `nobody` and returns the output.
fn as_nobody(option: &str, socket: &std::ffi::OsStr) -> String {
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-sS", "-m", "60"])
        .args(["-H", "content-type: application/json", "-d", "{}", option])
        .arg(socket)
        .arg("http://localhost/sayso.v1.ReviewService/Status")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn other_user_cannot_connect() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can act as another user");
    }
    let scene = Scene::new();
    let server = scene.serve();
    // Opens all parent directories, so that only the engine's own directory excludes others.
    let engine = scene.journal().join("engine");
    for folder in scene.journal().ancestors().take_while(|folder| folder.starts_with(std::env::temp_dir())) {
        if folder != std::env::temp_dir() {
            std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
    }
    let path = server.socket.as_os_str();
    let said = as_nobody("--unix-socket", path);
    assert!(!said.contains("version") && said.contains("curl"), "{said}");
    // Security does not depend on the name of the verdict socket.
    let said = as_nobody("--abstract-unix-socket", server.verdicts.as_ref());
    assert!(!said.contains("version") && said.contains("curl"), "{said}");
    // Even with an open directory, the server rejects other users.
    std::fs::set_permissions(&engine, Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&server.socket, Permissions::from_mode(0o666)).unwrap();
    let said = as_nobody("--unix-socket", path);
    assert!(!said.contains("version") && said.contains("curl"), "{said}");
}
