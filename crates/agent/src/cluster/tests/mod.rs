//! Tests against a server.
