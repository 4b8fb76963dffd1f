//! Rules to begin with, as text for a configuration file.

/// Rules for looking around, building and testing, each with a comment that explains it.
pub const STARTER_RULES: &str = include_str!("starter.toml");
