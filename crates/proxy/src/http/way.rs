//! Where a request goes.

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Request, Response, StatusCode, Uri};

use super::body::Reply;
use super::own::plain;
use super::upstream;
use crate::desk::Run;
use crate::entrance::{self, Entrances};
use crate::proxy::Proxy;
use crate::settings::Settings;

/// Where a request goes, and for whose run.
pub(crate) struct Way {
    pub(crate) run: Run,
    pub(crate) upstream: String,
    pub(crate) base: Uri,
    pub(crate) address: Uri,
    /// The path beneath the upstream.
    pub(crate) path: String,
    pub(crate) settings: Arc<Settings>,
}

/// How many ways are known.
const MOST: usize = 16;

/// The ways of the last requests: an agent sends all of its requests along one or two.
#[derive(Default)]
pub(crate) struct Ways(Mutex<Vec<Known>>);

struct Known {
    /// The path of the request, with its capability.
    asked: String,
    /// The state of the entrances by which it was found.
    entrances: u64,
    way: Arc<Way>,
}

impl std::fmt::Debug for Ways {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // There are capabilities and keys in them.
        f.debug_struct("Ways").finish_non_exhaustive()
    }
}

impl Ways {
    fn find(&self, asked: &str, entrances: u64, settings: &Arc<Settings>) -> Option<Arc<Way>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| {
            known.entrances == entrances
                && Arc::ptr_eq(&known.way.settings, settings)
                && entrance::same(known.asked.as_bytes(), asked.as_bytes())
        });
        found.map(|known| Arc::clone(&known.way))
    }

    fn remember(&self, asked: &str, entrances: u64, way: &Arc<Way>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.asked != asked && known.entrances == entrances);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push(Known { asked: asked.to_owned(), entrances, way: Arc::clone(way) });
    }
}

impl Proxy {
    /// Finds out where a request is to go.
    pub(super) fn way<B>(
        &self,
        request: &Request<B>,
        settings: Arc<Settings>,
    ) -> Result<Arc<Way>, Box<Response<Reply>>> {
        let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
        // Asked before they are looked at: what changes meanwhile is not missed.
        let entrances = self.entrances.changes();
        if let Some(way) = self.ways.find(asked, entrances, &settings) {
            return Ok(way);
        }
        let way = Arc::new(find(&self.entrances, request, settings)?);
        // Where Codex goes its headers say.
        if way.upstream != "codex" {
            self.ways.remember(asked, entrances, &way);
        }
        Ok(way)
    }
}

fn find<B>(entrances: &Entrances, request: &Request<B>, settings: Arc<Settings>) -> Result<Way, Box<Response<Reply>>> {
    let Some((capability, name, path)) = entrance::parse(request.uri()) else {
        let message = "sayso passes on what comes beneath /p/<capability>/<upstream>; `sayso env` prints the address";
        return Err(plain(StatusCode::NOT_FOUND, message).into());
    };
    let Some(entrance) = entrances.find(capability) else {
        let message = "sayso does not know this address, or its run is over; start the agent with `sayso run`, or \
                       take the address that `sayso env` prints";
        return Err(plain(StatusCode::UNAUTHORIZED, message).into());
    };
    let own = entrance.upstreams.get(name).and_then(|base| base.parse().ok());
    let base = own.or_else(|| base_of(&settings, name, request.headers()));
    let found = base.and_then(|base: Uri| upstream::address(&base, &path).map(|address| (base, address)));
    let Some((base, address)) = found else {
        let known: Vec<&str> = settings.upstreams.keys().map(String::as_str).collect();
        let message = format!(
            "sayso knows no upstream `{name}`; there are {}. Add [upstream.{name}] with a `url` to your configuration",
            known.join(", ")
        );
        return Err(plain(StatusCode::NOT_FOUND, &message).into());
    };
    Ok(Way { upstream: name.to_owned(), run: entrance.run(), base, address, path, settings })
}

/// The base of an upstream, as the user has configured it.
pub(super) fn base_of(settings: &Settings, name: &str, headers: &HeaderMap) -> Option<Uri> {
    let base = |name: &str| settings.upstreams.get(name).map(|upstream| upstream.base.clone());
    // Codex speaks to another server when its user has logged in with an account.
    match name {
        "codex" if base("codex").is_some() => base("codex"),
        "codex" if headers.contains_key("chatgpt-account-id") => base("chatgpt"),
        "codex" => upstream::address(&base("openai")?, "/v1"),
        _ => base(name),
    }
}
