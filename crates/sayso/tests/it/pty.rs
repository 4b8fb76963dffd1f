//! A `sayso` on a real terminal, with a person who types.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use crate::Scene;
use crate::served::LONG;

pub(crate) struct Pty {
    child: Child,
    terminal: File,
    said: Receiver<String>,
    so_far: String,
}

impl Pty {
    pub(crate) fn start(scene: &Scene, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let flags = OFlags::NOCTTY.bits().cast_signed();
        let end = OpenOptions::new().read(true).write(true).custom_flags(flags).open(name).unwrap();
        // In a session of its own, whose terminal this is.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_sayso")])
            .args(arguments)
            .current_dir(scene.path("."))
            .env_clear()
            .envs(scene.environment())
            .env("TERM", "dumb")
            .envs(environment.iter().copied())
            .stdin(end.try_clone().unwrap())
            .stdout(end.try_clone().unwrap())
            .stderr(end)
            .spawn()
            .unwrap();
        let terminal = File::from(terminal);
        let (tell, said) = channel();
        let mut output = terminal.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let _ = tell.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
            }
        });
        Self { child, terminal, said, so_far: String::new() }
    }

    /// Waits until the screen shows a text, and gives all that it showed since the last time, up to that text.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.so_far.find(text) {
                let rest = self.so_far.split_off(at + text.len());
                return std::mem::replace(&mut self.so_far, rest);
            }
            match self.said.recv_timeout(LONG) {
                Ok(more) => self.so_far.push_str(&more),
                Err(error) => panic!("`{text}` was never shown ({error}):\n{}", self.so_far),
            }
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// `true` if the terminal echoes and passes whole lines, as at its start.
    pub(crate) fn is_cooked(&self) -> bool {
        tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}
