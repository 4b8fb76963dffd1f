//! What the server's commands take.

use std::net::IpAddr;

use clap::{Args, ValueEnum};

use super::{Place, number};

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object in each line.
    Json,
}

/// Serves the engine of a workspace: Connect, gRPC and gRPC-Web on one port of this machine, and a Unix socket.
///
/// Prints its address and the token that has to be shown there to read and to propose; a verdict needs a login (`sayso login`). `sayso
/// review`, `sayso watch` and all other commands find it by themselves. There is one engine for each workspace: where one is served already, its address is printed instead. Ends with
/// Ctrl-C; streams end, and what is being written is finished.
#[derive(Args)]
pub(crate) struct ServeArguments {
    /// The port; without it 7777, or the next one that is free. 0 takes any.
    #[arg(long, value_name = "PORT", value_parser = number::port)]
    pub(crate) port: Option<u16>,
    /// The address to listen at. Others than this machine's can be reached from elsewhere, by whoever has the token.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// What has to be shown, instead of a new one for each start. Others on this machine may see it in the list of processes: the
    /// variable SAYSO_AUTH_TOKEN says the same unseen.
    #[arg(long, value_name = "TOKEN", env = "SAYSO_AUTH_TOKEN", hide_env_values = true)]
    pub(crate) auth_token: Option<String>,
    /// Ask for no token. For development only: any program on this machine can read and propose then.
    #[arg(long, conflicts_with = "auth_token")]
    pub(crate) no_auth: bool,
    /// Pages of this origin may call, such as http://localhost:5173; may be given several times.
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,
    /// Requests may name the server like this, besides localhost; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// What is logged to standard error: error, warn, info, debug, trace or off; or directives such as sayso_server=debug.
    #[arg(long, value_name = "LEVEL", default_value = "warn", env = "SAYSO_LOG")]
    pub(crate) log: String,
    /// How the log is written.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Prints a login, with which a program may decide over HTTP.
///
/// The token of `sayso serve` reads and proposes. Verdicts need a login: it is kept in memory by the engine, counts until that ends, and is
/// sent as `Authorization: Bearer LOGIN` instead of the token. With --link, print a link for a browser, which can be opened once within five
/// minutes and becomes a cookie. Agents get none: what runs under the gate decides nothing, with a login either.
#[derive(Args)]
pub(crate) struct LoginArguments {
    /// Print a link for a browser instead.
    #[arg(long)]
    pub(crate) link: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Looks for what is wrong, and says what to do about it.
///
/// Configuration, the agents on the PATH with their versions and whether they trust sayso's hooks, engines, the marks that this kernel keeps
/// on what runs under the gate, processes that go on without their sayso, and disk use. Exit code 1 if something is to be mended.
#[derive(Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) place: Place,
}

/// An origin as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    let wrong = || "this has to be scheme://host or scheme://host:port, such as http://localhost:5173".to_owned();
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (host, port) = match rest.rsplit_once(':') {
        // What is in brackets is an address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one));
    let is_host = !host.is_empty() && host.chars().all(|one| one.is_ascii_alphanumeric() || "-._[]:".contains(one));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    if is_scheme && is_host && is_port { Ok(text.to_owned()) } else { Err(wrong()) }
}
