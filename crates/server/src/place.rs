//! Where an engine is found: a socket and a note beside the journal, which only the user can reach.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::token::Token;

/// The longest path that a socket's address holds, less the room for what ends it.
const LONGEST: usize = 100;

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

    /// Listens at both sockets, that of services first. Only for whoever holds the journal's lock: what is in the way is left from a
    /// crash.
    pub(crate) fn listen(&self) -> io::Result<(UnixListener, UnixListener)> {
        self.make_folder()?;
        remove(&self.socket())?;
        // Before anybody can connect: an old note beside a new socket would send them to the wrong address.
        remove(&self.note_file())?;
        // Whoever finds the one counts on the other.
        let traffic = listen(&self.traffic())?;
        Ok((listen(&self.socket())?, traffic))
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
        remove(&self.note_file())?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.note_file())?;
        file.write_all(&text)
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
