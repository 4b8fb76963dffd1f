//! Shared logic of every surface: what is shown, which answers are offered, and what an answer leads to.
//!
//! The command line, the terminal UI and the web app show the same changes and requests and take the same answers. Each rule about
//! that is here once, so that a summary, a refusal or an escape is the same on every surface, and a fix reaches all of them.
//!
//! # Design
//!
//! - **No IO.** There is no terminal, file, clock or process here. Callers pass the time and the width of the window. Every function
//!   can be tested by its result.
//! - **Spans in place of escape codes.** Text is a list of [`Span`](span::Span)s with a meaning, such as `Added` or `Note`. The
//!   surface maps meanings to colours: to ANSI codes, to cells of a terminal UI, or to CSS classes.
//! - **State machines in place of loops.** A review ([`file_review`]), a question ([`command_prompt`]) and the list of pending
//!   changes ([`inbox`]) are values with transitions. The surface reads a key, passes it on, and shows the next state. A surface
//!   that reads lines and a surface that handles key events drive the same machine.
//! - **Untrusted text is escaped here.** Paths, commands and messages come from agents. Every text that this crate returns has
//!   passed [`escape_unprintable`](escape::escape_unprintable), so that no surface can forget it.
//!
//! The crate sees the engine only through the messages of `api`. It never calls the engine: a surface does, and passes the result.

pub mod change;
pub mod command;
pub mod command_prompt;
pub mod diff;
pub mod error;
pub mod escape;
pub mod file_review;
pub mod inbox;
pub mod path_match;
pub mod preview;
pub mod request;
pub mod rule_suggestion;
pub mod span;
pub mod syntax;
pub mod words;
