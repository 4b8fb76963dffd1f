//! Sockets and files of an engine, in a private directory beside the journal.
//!
//! Verdicts have an abstract socket. Its random name is in a file of the directory. The name is no secret: the kernel keeps processes
//! under the gate out, because their Landlock domain cannot connect to abstract sockets outside.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sayso_marks::PeerProcess;
use serde::{Deserialize, Serialize};

use crate::kernel_marks;
use crate::token::Token;

/// Longest path that fits into a socket address, with a margin.
const MAX_SOCKET_PATH_BYTES: usize = 100;

/// Length of an abstract name that fills a socket address. Some clients, such as Node.js, pad every name to it.
const ABSTRACT_NAME_BYTES: usize = 107;

/// The directory of a workspace's engine.
#[derive(Clone, Debug)]
pub struct EngineSocket {
    directory: PathBuf,
}

/// Address of an engine's HTTP server, in a file that only the user can read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerNote {
    pub url: String,
    /// Process id of the engine.
    pub process: u32,
    /// `None` if the server requires no token.
    pub token: Option<String>,
}

/// The sockets of an engine.
pub(crate) struct Listeners {
    pub(crate) services: UnixListener,
    pub(crate) models: UnixListener,
    /// `None` in an engine under the gate, which accepts no verdicts.
    pub(crate) verdicts: Option<UnixListener>,
}

impl EngineSocket {
    pub fn new(journal: &Path) -> Self {
        Self { directory: journal.join("engine") }
    }

    /// Socket for all calls except verdicts.
    pub fn path(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Socket for requests to models only.
    pub fn model_path(&self) -> PathBuf {
        self.directory.join("model")
    }

    /// Connects to the running engine; `None` if there is none. A socket without a listener is left over from a crash.
    pub fn connect(&self) -> io::Result<Option<UnixStream>> {
        connect(&self.path())
    }

    /// Connects to the running engine for requests to models; `None` if there is none.
    pub fn connect_for_models(&self) -> io::Result<Option<UnixStream>> {
        connect(&self.model_path())
    }

    /// Name of the abstract socket for verdicts; `None` if the engine has none.
    pub fn verdict_socket(&self) -> Option<String> {
        std::fs::read_to_string(self.verdicts_file()).ok().filter(|name| !name.is_empty())
    }

    /// Connects to the verdict socket of the running engine. `None` if there is none, or if the kernel denies it to this process.
    ///
    /// An agent can write the name of a socket of its own into the file. A listener of another user, or under the gate, is therefore
    /// not accepted as the engine.
    pub fn connect_to_decide(&self) -> io::Result<Option<UnixStream>> {
        let Some(name) = self.verdict_socket() else { return Ok(None) };
        let stream = match UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let engine = PeerProcess::of_socket(&stream)?;
        let is_ours = engine.user() == rustix::process::geteuid().as_raw();
        Ok((is_ours && kernel_marks::reject_marked_peer(&engine).is_ok()).then_some(stream))
    }

    /// Binds all sockets. The service socket comes last, because clients that find it rely on the others. Requires the journal's lock:
    /// existing files are then left over from a crash, and are replaced.
    pub(crate) fn listen(&self) -> io::Result<Listeners> {
        self.create_directory()?;
        remove(&self.path())?;
        // Before a client can connect: the old file would send it to the wrong address.
        remove(&self.server_file())?;
        let verdicts = if kernel_marks::is_marked() { None } else { Some(self.listen_for_verdicts()?) };
        let models = listen(&self.model_path())?;
        Ok(Listeners { services: listen(&self.path())?, models, verdicts })
    }

    fn listen_for_verdicts(&self) -> io::Result<UnixListener> {
        let name = format!("{:0<ABSTRACT_NAME_BYTES$}", format!("sayso-{}", Token::random()?.reveal()));
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        write_private(&self.verdicts_file(), name.as_bytes())?;
        Ok(listener)
    }

    /// Creates the directory with mode 0700, and restores the mode of an existing one.
    pub(crate) fn create_directory(&self) -> io::Result<()> {
        match DirBuilder::new().recursive(true).mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        std::fs::set_permissions(&self.directory, Permissions::from_mode(0o700))
    }

    /// Removes all sockets and files, so that new clients look for another engine.
    pub(crate) fn remove_all(&self) {
        // After a failure, the next start replaces them.
        let _ = remove(&self.path());
        let _ = remove(&self.model_path());
        let _ = remove(&self.server_file());
        let _ = remove(&self.verdicts_file());
    }

    fn verdicts_file(&self) -> PathBuf {
        self.directory.join("verdicts")
    }

    pub(crate) fn takeover_file(&self) -> PathBuf {
        self.directory.join("takeover")
    }

    fn server_file(&self) -> PathBuf {
        self.directory.join("server.json")
    }

    /// Writes the address of the HTTP server.
    pub(crate) fn write_server(&self, url: &str, token: Option<&Token>) -> io::Result<()> {
        let token = token.map(|token| token.reveal().to_owned());
        let note = ServerNote { url: url.to_owned(), process: std::process::id(), token };
        let text = serde_json::to_vec(&note).map_err(io::Error::other)?;
        write_private(&self.server_file(), &text)
    }

    /// Reads the address of the HTTP server; `None` if the engine has none.
    pub fn server(&self) -> Option<ServerNote> {
        serde_json::from_slice(&std::fs::read(self.server_file()).ok()?).ok()
    }
}

fn connect(socket: &Path) -> io::Result<Option<UnixStream>> {
    let connected = ShortPath::of(socket).and_then(|short| UnixStream::connect(&short.path));
    match connected {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    remove(socket)?;
    let short = ShortPath::of(socket)?;
    let listener = UnixListener::bind(&short.path)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Creates a file with mode 0600.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove(path)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A path to a socket that fits into an address. A longer path is replaced by one through the open directory in `/proc/self/fd`.
struct ShortPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl ShortPath {
    fn of(socket: &Path) -> io::Result<Self> {
        if socket.as_os_str().len() <= MAX_SOCKET_PATH_BYTES {
            return Ok(Self { path: socket.to_owned(), _directory: None });
        }
        let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let opened = rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _directory: Some(opened) })
    }
}
