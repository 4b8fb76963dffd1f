//! Other users of the machine: they reach neither the socket nor the note with the token.

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
fn the_socket_and_the_note_are_the_users_alone() {
    let scene = Scene::new();
    // Whatever was there before.
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

/// What somebody else gets who calls on a socket.
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
fn another_user_cannot_use_the_socket() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can act as another user");
    }
    let scene = Scene::new();
    let server = scene.serve();
    // Everything above is open, so that it is the engine's own folder that keeps them out.
    let engine = scene.journal().join("engine");
    for folder in scene.journal().ancestors().take_while(|folder| folder.starts_with(std::env::temp_dir())) {
        if folder != std::env::temp_dir() {
            std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
    }
    let path = server.socket.as_os_str();
    let said = as_nobody("--unix-socket", path);
    assert!(!said.contains("version") && said.contains("curl"), "{said}");
    // The name of the socket for verdicts is no secret that it rests on.
    let said = as_nobody("--abstract-unix-socket", server.verdicts.as_ref());
    assert!(!said.contains("version") && said.contains("curl"), "{said}");
    // Should even that be opened by mistake, whoever comes is turned away.
    std::fs::set_permissions(&engine, Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&server.socket, Permissions::from_mode(0o666)).unwrap();
    let said = as_nobody("--unix-socket", path);
    assert!(!said.contains("version") && said.contains("curl"), "{said}");
}
