//! `vlan`: an interface of the pod's own for one VLAN of one of the node's links. Owns its options, which are the
//! reference plugin's.

use super::kind::{Options, ProviderKind, Routing, Segment};
use crate::Fields;
use crate::cni::parse::native::not_native;
use crate::cni::parse::request::RuntimeRequest;
use plexus_types::{Feature, IfName};

/// Options of `vlan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vlan {
    /// The node's link.
    pub master: IfName,
    /// `vlanId`, default 0: frames with a priority and no VLAN.
    pub vlan_id: u16,
}

impl Vlan {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "vlan",
        in_config: true,
        is_plugin: true,
        needs: &[Feature::Vlan],
        routing: Routing::OnLink,
        snat: false,
        host_ports: false,
        // Its MAC is the master's.
        capabilities: &["ips"],
        keys: &["master", "vlanId", "linkInContainer"],
        own_keys: &[],
        segment: |_| Some(Segment::Wire),
    };
}

impl Options for Vlan {
    fn read(fields: &mut Fields<'_>, _request: &RuntimeRequest) -> Option<Self> {
        let master = fields.parsed("master");
        if !fields.has("master") {
            fields.missing("master", "name the node's link that carries the VLAN");
        }
        not_native(fields, &Self::KIND, &["linkInContainer"]);
        let written = fields.number("vlanId").unwrap_or(0);
        let vlan_id = u16::try_from(written).ok().filter(|id| *id <= 4094);
        if vlan_id.is_none() {
            let text = format!("is {written}: write a number from 0 to 4094");
            fields.problem("vlanId", text);
        }
        Some(Self {
            master: master?,
            vlan_id: vlan_id?,
        })
    }
}
