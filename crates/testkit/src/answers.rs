//! The kinds of answers of `plexus diagnose`, and the checks of `plexus doctor`, that a lab cannot lead to, by the place
//! where a test does. The test there sees to all of its list; tests in `plexus/tests/lab_cli` see to it that nothing
//! is on none.

/// A real cluster, where containers run and end, and users may not see everything.
pub const ON_A_CLUSTER: &[&str] = &["containers-wait", "finished", "not-seen"];

/// A machine of `plexus up`.
pub const ON_UP: &[&str] = &["nobody-runs-pods"];

/// What fails on a real API server that knows nothing of Plexus.
pub const CHECKS_OF_A_BARE_API_SERVER: &[&str] = &["api.controller", "api.definitions"];
