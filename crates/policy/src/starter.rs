//! Starter rules for a new configuration file.

/// Commented rules for reading, building and testing, as TOML.
pub const STARTER_RULES: &str = include_str!("starter.toml");
