//! What happens without a caller: replay of the journal, adoption of links without a record, namespaces that are gone,
//! removals that were left, DELs that were queued.

pub(crate) mod adopt;
mod marks;
pub(crate) mod queued;
pub(crate) mod removals;
pub(crate) mod replay;
pub(crate) mod sandbox;
