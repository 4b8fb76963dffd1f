//! Where an engine is found: sockets and notes beside the journal, which only the user can reach.
//!
//! Verdicts have an abstract socket with a random name, which lies in a file here. Not the name keeps processes under the gate out, but
//! the kernel: their Landlock domain does not reach abstract sockets outside.

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

use crate::standing;
use crate::token::Token;

/// The longest path that a socket's address holds, less the room for what ends it.
const LONGEST: usize = 100;

/// The length of an abstract name that fills an address. Some clients, such as Node.js, send every name at this length.
const MAX_ABSTRACT_NAME: usize = 107;

/// Where the engine of a workspace is found.
#[derive(Clone, Debug)]
pub struct EnginePlace {
    folder: PathBuf,
}

/// What an engine that listens over HTTP leaves for those who want to reach it. Only the user can read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerNote {
    /// The address.
    pub url: String,
    /// The process.
    pub process: u32,
    /// What to show there; nothing, if nobody asks for it.
    pub token: Option<String>,
}

/// The sockets of an engine.
pub(crate) struct Listeners {
    pub(crate) services: UnixListener,
    pub(crate) traffic: UnixListener,
    /// Absent in an engine under the gate.
    pub(crate) verdicts: Option<UnixListener>,
}

impl EnginePlace {
    /// The place beside a journal in this folder.
    pub fn new(journal: &Path) -> Self {
        Self { folder: journal.join("engine") }
    }

    /// The socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// The socket for requests to models, at which nothing else is served.
    pub fn traffic(&self) -> PathBuf {
        self.folder.join("model")
    }

    /// Connects to the engine that runs. A socket that nobody listens at is what a crash left behind, and counts as none.
    pub fn connect(&self) -> io::Result<Option<UnixStream>> {
        connect(&self.socket())
    }

    /// The same for requests to models.
    pub fn connect_traffic(&self) -> io::Result<Option<UnixStream>> {
        connect(&self.traffic())
    }

    /// The name of the abstract socket for verdicts, if the engine has one.
    pub fn verdict_socket(&self) -> Option<String> {
        std::fs::read_to_string(self.verdicts_file()).ok().filter(|name| !name.is_empty())
    }

    /// Connects to the engine that runs where it takes verdicts. `None` if there is none, or this process may not go there.
    ///
    /// Whatever listens there under another user, or under the gate, is not the engine: an agent can write its own socket's name into
    /// the file.
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
        Ok((is_ours && standing::refuse_marked_peer(&engine).is_ok()).then_some(stream))
    }

    /// Listens at all sockets, that of services last: whoever finds it counts on the others. Only for whoever holds the journal's lock:
    /// what is in the way is left from a crash.
    pub(crate) fn listen(&self) -> io::Result<Listeners> {
        self.make_folder()?;
        remove(&self.socket())?;
        // Before anybody can connect: an old note beside a new socket would send them to the wrong address.
        remove(&self.note_file())?;
        let verdicts = if standing::is_marked() { None } else { Some(self.listen_for_verdicts()?) };
        let traffic = listen(&self.traffic())?;
        Ok(Listeners { services: listen(&self.socket())?, traffic, verdicts })
    }

    fn listen_for_verdicts(&self) -> io::Result<UnixListener> {
        let name = format!("{:0<MAX_ABSTRACT_NAME$}", format!("sayso-{}", Token::random()?.reveal()));
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        write_private(&self.verdicts_file(), name.as_bytes())?;
        Ok(listener)
    }

    /// Makes the folder, private at once, and private again should it be from other times.
    pub(crate) fn make_folder(&self) -> io::Result<()> {
        match DirBuilder::new().recursive(true).mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        std::fs::set_permissions(&self.folder, Permissions::from_mode(0o700))
    }

    /// Takes the socket away, so that nobody comes any more.
    pub(crate) fn leave(&self) {
        // Should they stay, the next start recognises them as left behind.
        let _ = remove(&self.socket());
        let _ = remove(&self.traffic());
        let _ = remove(&self.note_file());
        let _ = remove(&self.verdicts_file());
    }

    fn verdicts_file(&self) -> PathBuf {
        self.folder.join("verdicts")
    }

    pub(crate) fn wanted_file(&self) -> PathBuf {
        self.folder.join("wanted")
    }

    fn note_file(&self) -> PathBuf {
        self.folder.join("server.json")
    }

    /// Writes how to reach the engine over HTTP.
    pub(crate) fn note(&self, url: &str, token: Option<&Token>) -> io::Result<()> {
        let token = token.map(|token| token.reveal().to_owned());
        let note = ServerNote { url: url.to_owned(), process: std::process::id(), token };
        let text = serde_json::to_vec(&note).map_err(io::Error::other)?;
        write_private(&self.note_file(), &text)
    }

    /// How the engine is reached over HTTP, if it is.
    pub fn server(&self) -> Option<ServerNote> {
        serde_json::from_slice(&std::fs::read(self.note_file()).ok()?).ok()
    }
}

fn connect(socket: &Path) -> io::Result<Option<UnixStream>> {
    let connected = Reach::of(socket).and_then(|reach| UnixStream::connect(&reach.path));
    match connected {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    remove(socket)?;
    let reach = Reach::of(socket)?;
    let listener = UnixListener::bind(&reach.path)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Writes a file that only the user can read.
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

/// A way to a socket that is short enough for an address: through its directory, held open, where its own path is not.
struct Reach {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl Reach {
    fn of(socket: &Path) -> io::Result<Self> {
        if socket.as_os_str().len() <= LONGEST {
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
