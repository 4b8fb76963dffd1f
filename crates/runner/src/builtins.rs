//! Commands of the runner itself.

mod directory;
mod echo;
mod escapes;
mod format;
mod printf;
mod test;
mod variables;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::Access;
use sayso_shell::program::{Builtin, is_reserved_word};

use crate::descriptors::error_text;
use crate::files;
use crate::judge::PreparedCommand;
use crate::lookup::{self, Lookup};
use crate::shell::Shell;
use crate::walk::{Step, Stop, Walker};

/// Status of a shell that wrote into a pipe without a reader.
const BROKEN_PIPE: u8 = 141;

/// Arguments of a builtin, without its name.
pub(crate) type Arguments<'a> = [&'a [u8]];

impl Walker<'_> {
    /// Runs a builtin with its expanded arguments.
    pub(crate) fn builtin(&self, builtin: Builtin, command: &PreparedCommand, shell: &mut Shell) -> Step {
        let arguments: Vec<&[u8]> = command.argv.iter().skip(1).map(|word| word.as_bytes()).collect();
        match builtin {
            Builtin::True => Ok(0),
            Builtin::False => Ok(1),
            Builtin::Cd => directory::cd(&arguments, shell),
            Builtin::Pwd => directory::pwd(&arguments, shell),
            Builtin::Echo => echo::echo(&arguments, shell),
            Builtin::Printf if arguments.first().is_some_and(|first| first.starts_with(b"-v")) => {
                Err(self.refuse(command, "`printf -v` sets a variable".to_owned(), shell))
            }
            Builtin::Printf => printf::printf(&arguments, shell),
            Builtin::Test => Ok(test::test("test", &arguments, shell)),
            Builtin::Bracket => Ok(test::bracket(&arguments, shell)),
            Builtin::Exit => exit(&arguments, shell),
            Builtin::Export | Builtin::Unset | Builtin::Set => match variables::change(builtin, &arguments, shell) {
                Ok(status) => Ok(status),
                Err(reason) => Err(self.refuse(command, reason, shell)),
            },
            Builtin::Command => match arguments.split_first() {
                Some((&b"-v", names)) => command_v(names, shell),
                _ => Err(self.refuse(command, "`command` is supported with `-v` only".to_owned(), shell)),
            },
            Builtin::Type if arguments.first().is_some_and(|first| first.starts_with(b"-")) => {
                Err(self.refuse(command, "options of `type` are not supported".to_owned(), shell))
            }
            Builtin::Type => type_of(&arguments, shell),
        }
    }
}

/// Writes to standard output. A pipe without a reader ends the shell, as the signal would.
pub(crate) fn write(name: &str, bytes: &[u8], shell: &Shell) -> Step {
    match shell.descriptors.write(1, bytes) {
        Ok(()) => Ok(0),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Stop::Exit(BROKEN_PIPE)),
        Err(error) => {
            shell.complain(&format!("{name}: write error: {}", error_text(&error)));
            Ok(1)
        }
    }
}

fn exit(arguments: &Arguments<'_>, shell: &Shell) -> Step {
    let [argument, rest @ ..] = arguments else { return Err(Stop::Exit(shell.status)) };
    let Some(number) = test::integer(argument) else {
        shell.complain_bytes(&[b"exit: ", *argument, b": numeric argument required"].concat());
        return Err(Stop::Exit(2));
    };
    if !rest.is_empty() {
        shell.complain("exit: too many arguments");
        return Err(Stop::Exit(1));
    }
    // The low byte, as the kernel takes it.
    Err(Stop::Exit(number.to_le_bytes()[0]))
}

/// The meaning of a name in the place of a command.
enum Meaning {
    Keyword,
    Builtin,
    File(Vec<u8>),
    Unknown,
}

fn meaning(name: &[u8], shell: &Shell) -> Meaning {
    match std::str::from_utf8(name) {
        Ok(text) if is_reserved_word(text) => return Meaning::Keyword,
        Ok(text) if Builtin::named(text).is_some() || Builtin::rejection(text).is_some() || text == "kill" => {
            return Meaning::Builtin;
        }
        _ => {}
    }
    match lookup::find(OsStr::from_bytes(name), shell) {
        Lookup::Found(path) if files::allows(&path, Access::EXEC_OK) && !files::is_directory(&path) => {
            // A name with a slash is shown as it was written.
            let is_path = name.contains(&b'/');
            Meaning::File(if is_path { name.to_vec() } else { path.as_os_str().as_bytes().to_vec() })
        }
        Lookup::Found(_) | Lookup::Missing => Meaning::Unknown,
    }
}

fn command_v(names: &Arguments<'_>, shell: &Shell) -> Step {
    let mut output = Vec::new();
    for name in names {
        match meaning(name, shell) {
            Meaning::Keyword | Meaning::Builtin => output.extend_from_slice(name),
            Meaning::File(path) => output.extend_from_slice(&path),
            Meaning::Unknown => continue,
        }
        output.push(b'\n');
    }
    let is_found = !output.is_empty() || names.is_empty();
    let status = write("command", &output, shell)?;
    Ok(status.max(u8::from(!is_found)))
}

fn type_of(names: &Arguments<'_>, shell: &Shell) -> Step {
    let mut status = 0;
    for name in names {
        let kind: &[u8] = match meaning(name, shell) {
            Meaning::Keyword => b"a shell keyword",
            Meaning::Builtin => b"a shell builtin",
            Meaning::File(path) => {
                status = write("type", &[*name, b" is ", &path, b"\n"].concat(), shell)?.max(status);
                continue;
            }
            Meaning::Unknown => {
                shell.complain_bytes(&[b"type: ", *name, b": not found"].concat());
                status = 1;
                continue;
            }
        };
        status = write("type", &[*name, b" is ", kind, b"\n"].concat(), shell)?.max(status);
    }
    Ok(status)
}
