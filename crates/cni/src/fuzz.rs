//! Where the targets of this room have their corpus; each is in the module of its reader.

use plexus_fuzz::{Kind, Target};

pub(crate) const fn target(name: &'static str, kind: Kind) -> Target {
    Target::new(env!("CARGO_PKG_NAME"), name, kind)
}
