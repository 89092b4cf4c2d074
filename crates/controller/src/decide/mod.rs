//! Decisions: plain values in, plain values out. No I/O, no clock, nothing async; the time is an
//! argument where it matters.

pub(crate) mod conditions;
pub(crate) mod conflict;
pub(crate) mod first_seen;
pub(crate) mod gone;
pub(crate) mod multi_nic;
pub(crate) mod nad;
pub(crate) mod network;
pub(crate) mod prefixes;
pub(crate) mod usage;
pub(crate) mod vni;
