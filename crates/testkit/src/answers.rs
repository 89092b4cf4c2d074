//! The kinds of answers of `plexus explain` that a lab cannot lead to, by the place where a test does. The test
//! there sees to all of its list; one in `plexus/tests/lab_cli/explain` sees to it that no kind is on none.

/// A real cluster, where containers run and end, and users may not see everything.
pub const ON_A_CLUSTER: &[&str] = &["containers-wait", "finished", "not-seen"];

/// A machine of `plexus up`.
pub const ON_UP: &[&str] = &["nobody-runs-pods"];
