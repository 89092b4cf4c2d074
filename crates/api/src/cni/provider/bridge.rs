//! `bridge`: a veth into a bridge on the node. Owns its options, which are the reference plugin's.

use super::kind::{Options, ProviderKind, Routing, Segment};
use crate::Fields;
use crate::cni::ObjectFacts;
use crate::cni::parse::native::{not_native, not_ours};
use crate::cni::parse::request::RuntimeRequest;
use crate::objects::NetworkSpec;
use plexus_types::{Feature, IfName};

/// Options of `bridge`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name, default `cni0`.
    pub bridge: IfName,
    /// The bridge has the gateway's address, and the node forwards.
    pub is_gateway: bool,
    /// … and the default route points there.
    pub is_default_gateway: bool,
    /// A different address on the bridge is replaced, not refused.
    pub force_address: bool,
    /// Traffic that leaves the subnet takes the node's address.
    pub ip_masq: bool,
    /// Frames may go back out of the port that they came in by.
    pub hairpin_mode: bool,
    /// The bridge is promiscuous.
    pub promisc_mode: bool,
}

impl Bridge {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "bridge",
        in_config: true,
        is_plugin: true,
        needs: &[Feature::Bridge, Feature::Veth],
        routing: Routing::OnLink,
        snat: true,
        host_ports: true,
        capabilities: &["ips", "mac"],
        keys: &[
            "bridge",
            "isGateway",
            "isDefaultGateway",
            "forceAddress",
            "ipMasq",
            "hairpinMode",
            "promiscMode",
            "vlan",
            "macspoofchk",
            "enabledad",
        ],
        // The plugin ignores a MAC in its configuration.
        own_keys: &["mac"],
        segment: |_| Some(Segment::Node),
    };
}

impl Options for Bridge {
    fn read(fields: &mut Fields<'_>, _request: &RuntimeRequest) -> Option<Self> {
        let name = match fields.text("bridge") {
            None => IfName::new("cni0").ok(),
            Some("") => {
                let text = "is empty: write the bridge's name, or leave it out for cni0";
                fields.problem("bridge", text);
                None
            }
            Some(_) => fields.parsed("bridge"),
        };
        let is_default_gateway = fields.flag("isDefaultGateway");
        let hairpin_mode = fields.flag("hairpinMode");
        let promisc_mode = fields.flag("promiscMode");
        if hairpin_mode && promisc_mode {
            let text = "cannot be set together with promiscMode: keep one of them";
            fields.problem("hairpinMode", text);
        }
        match fields.number("vlan") {
            None | Some(0) => {}
            Some(vlan @ 1..=4094) => not_ours(fields, &Self::KIND, "vlan", &vlan.to_string()),
            Some(vlan) => {
                fields.problem("vlan", format!("is {vlan}: write a number from 0 to 4094"));
            }
        }
        // Without a VLAN there is no default VLAN to preserve.
        fields.flag("preserveDefaultVlan");
        let off = [
            "macspoofchk",
            "enabledad",
            "disableContainerInterface",
            "portIsolation",
        ];
        not_native(fields, &Self::KIND, &off);
        for key in ["vlanTrunk", "ipMasqBackend"] {
            if fields.value(key).is_some() {
                not_ours(fields, &Self::KIND, key, "set");
            }
        }
        Some(Self {
            is_gateway: fields.flag("isGateway") || is_default_gateway,
            is_default_gateway,
            force_address: fields.flag("forceAddress"),
            ip_masq: fields.flag("ipMasq"),
            hairpin_mode,
            promisc_mode,
            bridge: name?,
        })
    }

    fn with_network(&mut self, spec: &NetworkSpec, _facts: &ObjectFacts) {
        self.ip_masq |= spec.snat;
    }
}
