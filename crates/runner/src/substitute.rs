//! `$(list)`: runs the list and takes its output.

use std::io::Read;
use std::thread;

use sayso_shell::program::List;

use crate::descriptors::error_text;
use crate::shell::Shell;
use crate::walk::{Stop, Walker};

/// Largest output that a substitution may have.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

impl Walker<'_> {
    /// Runs a list in a subshell and gives its output without the newlines at its end.
    pub(crate) fn substitute(&self, body: &List, shell: &mut Shell) -> Result<Vec<u8>, Stop> {
        if body.items.is_empty() {
            shell.substitution_status = Some(0);
            return Ok(Vec::new());
        }
        let (reader, writer) = match std::io::pipe() {
            Ok(ends) => ends,
            Err(error) => return Err(cannot(shell, &error)),
        };
        let mut inner = shell.clone();
        inner.descriptors.put(1, std::os::fd::OwnedFd::from(writer));
        inner.depth += 1;
        // As bash does outside its POSIX mode.
        inner.options.exits_on_error = false;
        let (status, output) = thread::scope(|scope| {
            let started = thread::Builder::new().spawn_scoped(scope, move || self.subshell(body, inner));
            let mut output = Vec::new();
            let copied = reader.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut output);
            let status = match started {
                Ok(running) => running.join().unwrap_or(Err(Stop::Abort)),
                Err(error) => Err(cannot(shell, &error)),
            };
            (status, copied.map(|_| output))
        });
        let status = status?;
        let mut output = match output {
            Ok(output) => output,
            Err(error) => return Err(cannot(shell, &error)),
        };
        if output.len() as u64 > MAX_OUTPUT_BYTES {
            shell.complain("command substitution: output is larger than 64 MiB");
            return Err(Stop::Exit(1));
        }
        output.retain(|byte| *byte != 0);
        let end = output.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
        output.truncate(end);
        shell.substitution_status = Some(status);
        shell.status = status;
        Ok(output)
    }
}

/// Complains that the system lacks the means to go on.
pub(crate) fn cannot(shell: &Shell, error: &std::io::Error) -> Stop {
    shell.complain(&format!("fork: {}", error_text(error)));
    Stop::Exit(254)
}
