//! The intercepting gateway for model traffic.
pub mod desk;
mod entrance;
mod log;
mod proxy;
mod route;
mod settings;

pub use desk::Desk;
pub use entrance::{Entrance, Entrances};
pub use proxy::{Proxy, ReplayError, Replayed, Which};
pub use settings::{Keep, Pause, PauseRule, Retry, Settings, Upstream};
