//! `macvlan`: an interface of the pod's own on one of the node's links. Owns its options, which are
//! the reference plugin's.

use super::kind::{Options, ProviderKind, Routing, Segment};
use crate::Fields;
use crate::cni::parse::common;
use crate::cni::parse::native::not_native;
use crate::cni::parse::request::RuntimeRequest;
use plexus_types::{Feature, IfName, MacvlanMode};
use serde_json::Value;

/// Options of `macvlan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macvlan {
    /// The node's link; none: the one that has the default route.
    pub master: Option<IfName>,
    /// `mode`, default bridge.
    pub mode: MacvlanMode,
    /// `bcqueuelen`.
    pub bcqueuelen: Option<u32>,
}

impl Macvlan {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "macvlan",
        in_config: true,
        is_plugin: true,
        needs: &[Feature::Macvlan],
        routing: Routing::OnLink,
        snat: false,
        host_ports: false,
        capabilities: &["ips", "mac"],
        keys: &["master", "mode", "mac", "bcqueuelen", "linkInContainer"],
        own_keys: &[],
        segment: |config| match config.get("mode").and_then(Value::as_str) {
            None | Some("bridge") => Some(Segment::Wire),
            _ => None,
        },
    };
}

impl Options for Macvlan {
    fn read(fields: &mut Fields<'_>, _request: &RuntimeRequest) -> Option<Self> {
        let master = fields.parsed("master");
        let bcqueuelen = fields.number("bcqueuelen").filter(|length| *length != 0);
        not_native(fields, &Self::KIND, &["linkInContainer"]);
        let modes = "bridge, vepa, private or passthru";
        let mode = common::mode(fields, MacvlanMode::from_name, modes)?;
        Some(Self {
            master,
            mode,
            bcqueuelen,
        })
    }
}
