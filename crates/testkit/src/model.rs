//! The scripted model server of [`sayso_scripted_model`], for tests: failures panic.
//!
//! ```
//! use sayso_testkit::model::{Answer, ModelServer, Turn};
//!
//! let server = ModelServer::start([Turn::calls("Write", serde_json::json!({"file_path": "a"})), Turn::says("bye")]);
//! server.once(|request| request.last_user_text().contains("hurry"), Answer::error(529, "busy"));
//! ```

use std::ops::Deref;
use std::time::Duration;

pub use sayso_scripted_model::{Answer, Delivery, Latch, Received, SIDE_TEXT, ToolCall, ToolResult, Turn};

/// Time after which a waiting test fails.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// A model server on a free port. Stops when dropped.
#[derive(Debug)]
pub struct ModelServer(sayso_scripted_model::ModelServer);

impl ModelServer {
    /// Starts a server that answers requests with tools with these turns, in order.
    pub fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        let server = sayso_scripted_model::ModelServer::bind(([127, 0, 0, 1], 0).into(), script);
        Self(server.expect("a port on this machine"))
    }

    /// Blocks this thread until the predicate holds for the recorded requests.
    ///
    /// # Panics
    ///
    /// After a minute.
    pub fn wait_until(&self, holds: impl FnMut(&[Received]) -> bool) {
        self.0.wait(holds, WAIT_LIMIT).unwrap_or_else(|unmet| panic!("{unmet}"));
    }

    /// Waits in this task until the predicate holds for the recorded requests.
    ///
    /// # Panics
    ///
    /// After a minute of real time, independently of the clock of this task's runtime.
    pub async fn until(&self, holds: impl FnMut(&[Received]) -> bool) {
        self.0.wait_async(holds, WAIT_LIMIT).await.unwrap_or_else(|unmet| panic!("{unmet}"));
    }
}

impl Deref for ModelServer {
    type Target = sayso_scripted_model::ModelServer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
