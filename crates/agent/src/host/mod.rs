//! What the agent writes on the host: the shim, configurations for runtimes, locks; and what it finds there: mounts,
//! another CNI's configuration.

pub(crate) mod atomic_file;
pub(crate) mod cluster_network;
pub(crate) mod conflist;
pub(crate) mod conflists;
pub(crate) mod install;
pub(crate) mod lock;
pub(crate) mod mounts;
pub(crate) mod register;
pub(crate) mod uninstall;
