//! `export`, `unset` and `set`.

use std::ffi::OsStr;

use sayso_shell::program::{Builtin, VariableClass, is_name, variable_class};

use super::{Arguments, test};
use crate::shell::Shell;

/// Carries out a change of variables or options. The error is a reason to refuse the script.
///
/// The parser lets only literal names through. They are checked again because the name of the builtin can be an expansion.
pub(super) fn change(builtin: Builtin, arguments: &Arguments<'_>, shell: &mut Shell) -> Result<u8, String> {
    if builtin == Builtin::Set {
        return set(arguments, shell);
    }
    for argument in arguments {
        let text = String::from_utf8_lossy(argument);
        let (name, value) = text.split_once('=').map_or((text.as_ref(), None), |(name, value)| (name, Some(value)));
        if !is_name(name) {
            return Err(format!("`{name}` is not the name of a variable"));
        }
        if variable_class(name) == VariableClass::Dangerous {
            return Err(format!("setting `{name}` changes how programs run"));
        }
        let bytes = argument.get(name.len() + 1..).unwrap_or_default().to_vec();
        match (builtin, value) {
            (Builtin::Export, Some(_)) => shell.export(OsStr::new(name), bytes),
            (Builtin::Export, None) => shell.export_existing(OsStr::new(name)),
            _ => shell.unset(OsStr::new(name)),
        }
    }
    Ok(0)
}

fn set(arguments: &Arguments<'_>, shell: &mut Shell) -> Result<u8, String> {
    let texts: Option<Vec<&str>> = arguments.iter().map(|argument| test::text(argument)).collect();
    let options = texts.and_then(|texts| Builtin::shell_options(&texts));
    let reason = "`set` is supported with `-e`, `-u`, `-x` and `-o pipefail` only";
    for (option, is_on) in options.ok_or(reason)? {
        shell.options.set(option, is_on);
    }
    Ok(0)
}
