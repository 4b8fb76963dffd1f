//! Arguments of `serve`, `open`, `login` and `doctor`.

use std::net::IpAddr;

use clap::{Args, ValueEnum};

use super::{CommonOptions, number};

/// Format of the log.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object in each line
    Json,
}

/// Serve the workspace's engine on a local port and a Unix socket
///
/// Speaks Connect, gRPC and gRPC-Web on one port. Prints its address and a token that reads and proposes; a verdict over HTTP needs a
/// login (`sayso login`). All other commands find the engine by themselves.
///
/// A workspace has one engine: if it is served already, its address is printed. Ctrl-C ends it after writes in progress.
#[derive(Args)]
pub(crate) struct ServeArguments {
    /// Port; 0 takes any [default: 7777 or the next free one]
    #[arg(long, value_name = "PORT", value_parser = number::port)]
    pub(crate) port: Option<u16>,
    /// Address to listen on; other addresses than this machine's are reachable by everyone with the token
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Token in place of a random one; other users may see it in the process list, unlike SAYSO_AUTH_TOKEN
    #[arg(long, value_name = "TOKEN", env = "SAYSO_AUTH_TOKEN", hide_env_values = true)]
    pub(crate) auth_token: Option<String>,
    /// Require no token, for development only: any program on this machine can read and propose
    #[arg(long, conflicts_with = "auth_token")]
    pub(crate) no_auth: bool,
    /// Accept pages of this origin, such as http://localhost:5173; may be given several times
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,
    /// Accept requests to this host name, besides localhost; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Log level for stderr: error, warn, info, debug, trace or off; or directives such as sayso_server=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn", env = "SAYSO_LOG")]
    pub(crate) log: String,
    /// Format of the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Print a login for verdicts over HTTP
///
/// The token of `sayso serve` reads and proposes. A login also decides: send it as `Authorization: Bearer LOGIN` in place of the token.
/// The engine keeps it in memory, and it is valid until the engine ends. With --link, prints a link for a browser, which opens once
/// within five minutes and becomes a cookie. Processes under the gate get no login and cannot use one.
#[derive(Args)]
pub(crate) struct LoginArguments {
    /// Print a link for a browser
    #[arg(long)]
    pub(crate) link: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Open the web app in a browser, logged in
///
/// Creates a link that opens once, within five minutes, and becomes a cookie of the browser. Starts $BROWSER or the browser of the
/// desktop, and prints the link. Needs a running `sayso serve`. Processes under the gate get no link.
#[derive(Args)]
pub(crate) struct OpenArguments {
    /// View to open, such as /change/3, /request/7 or /history
    #[arg(value_name = "VIEW", value_parser = view)]
    pub(crate) view: Option<String>,
    /// Print the link and start no browser
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Check the installation, and say how to fix problems
///
/// Checks the configuration, the agents on the PATH with their versions and their trust in sayso's hooks, running engines, the kernel's
/// support for marks, processes whose sayso is gone, and disk use.
///
/// Exit code 1 if there is a problem.
#[derive(Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Reads the path of a view of the web app.
fn view(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte));
    let path = text.trim_start_matches('/');
    let views = ["session", "change", "request", "turn", "history", "requests", "sessions"];
    if is_plain && (path.is_empty() || path.split('/').next().is_some_and(|first| views.contains(&first))) {
        return Ok(format!("/{path}"));
    }
    Err("a view is /change/NUMBER, /request/NUMBER, /session/ID, /history, /requests or /sessions".to_owned())
}

/// Reads an origin as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    let wrong = || "this has to be scheme://host or scheme://host:port, such as http://localhost:5173".to_owned();
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (host, port) = match rest.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one));
    let is_host = !host.is_empty() && host.chars().all(|one| one.is_ascii_alphanumeric() || "-._[]:".contains(one));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    if is_scheme && is_host && is_port { Ok(text.to_owned()) } else { Err(wrong()) }
}
