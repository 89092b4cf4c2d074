//! CNI's verbs, one file each: ADD, DEL, CHECK, GC, STATUS; the networks of a pod, and the plugins that are executed for
//! them.

pub(crate) mod add;
pub(crate) mod check;
pub(crate) mod del;
pub(crate) mod gc;
pub(crate) mod plugins;
pub(crate) mod pod_networks;
mod prepare;
pub(crate) mod status;
