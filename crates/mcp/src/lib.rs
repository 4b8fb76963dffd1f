//! Client of MCP servers.
