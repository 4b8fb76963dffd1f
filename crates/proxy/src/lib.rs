//! The intercepting gateway for model traffic.
pub mod desk;
mod entrance;
mod http;
mod log;
mod proxy;
mod route;
mod settings;

pub use desk::Desk;
pub use entrance::{Entrance, Entrances};
pub use http::{BodyError, ReplayError, Replayed, Reply, Which};
pub use proxy::Proxy;
pub use settings::{Keep, Pause, PauseRule, Retry, Settings, Upstream};
