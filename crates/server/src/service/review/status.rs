//! Status of the engine, and logins.

use sayso_api::proto;
use sayso_review::ErrorKind;

use super::MAX_LIMIT;
use crate::failure::Failure;
use crate::host::Host;

pub(super) fn status(host: &Host, request: &proto::StatusRequest) -> Result<proto::StatusResponse, Failure> {
    let gate = &host.gate;
    // From the engine's index: the journal would have to be searched.
    let pending = if request.max_pending == 0 { Vec::new() } else { gate.pending_changes()? };
    let newest = pending.into_iter().rev().take(request.max_pending.min(MAX_LIMIT) as usize);
    let held_requests = host.proxy.interceptor.held().len() as u64;
    Ok(gate.read(|history| {
        let status = history.status()?;
        let turns = history.unreviewed()?;
        let turn = |(session, turn)| proto::Turn { session, turn, ..Default::default() };
        let mut pending_changes = Vec::new();
        for change in newest {
            pending_changes.push(proto::Change::from(&history.change(change)?));
        }
        let mut response = proto::StatusResponse {
            version: host.version.to_owned(),
            process: std::process::id(),
            workspace: host.root.to_string_lossy().into_owned(),
            started_ms: host.started,
            changes: status.changes,
            pending: status.pending,
            turns_to_review: turns.into_iter().map(turn).collect(),
            last_event: gate.last_event(),
            surfaces: u32::try_from(gate.surfaces()).unwrap_or(u32::MAX),
            journal: host.journal.to_string_lossy().into_owned(),
            pending_changes,
            url: host.url.get().cloned(),
            held_requests,
            read_through: history.read_through()?,
            ..Default::default()
        };
        if request.details {
            let sizes = history.sizes()?;
            (response.contents, response.stored_bytes) = (sizes.blobs, sizes.file_bytes);
            response.last_change = history.changes(None).next().transpose()?.as_ref().map(proto::Change::from).into();
        }
        Ok(response)
    })?)
}

pub(super) fn create_login(host: &Host, link: bool) -> Result<proto::CreateLoginResponse, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(ErrorKind::Unavailable, format!("cannot create a login: {error}"));
    let Some(url) = host.url.get() else {
        let message = "this engine has no HTTP server to log in to";
        return Err(Failure::new(ErrorKind::InvalidArgs, message).hint("start `sayso serve` and try again"));
    };
    let mut response = proto::CreateLoginResponse { url: url.clone(), ..Default::default() };
    if link {
        response.link = Some(host.logins.create_link_to(url).map_err(failed)?);
    } else {
        response.token = Some(host.logins.create().map_err(failed)?.reveal().to_owned());
    }
    Ok(response)
}
