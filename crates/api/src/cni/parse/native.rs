//! The options of the native providers, written for `provider` or for a reference plugin's `type`.

use super::asked::Asked;
use super::{choice, common, ipam};
use crate::cni::{Bridge, Ipam, Macvlan, MacvlanMode, Native, Provider, Routed};
use crate::text::shown;
use crate::{Fields, Problem, Problems};
use plexus_types::IfName;

/// Who the options are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Us: a key that we do not understand is an error.
    ForUs,
    /// The reference plugin: such a key makes us execute it.
    ForPlugin,
}

/// The native providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Macvlan,
    Bridge,
    Routed,
}

impl Kind {
    /// The value of `provider`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "macvlan" => Some(Kind::Macvlan),
            "bridge" => Some(Kind::Bridge),
            "routed" => Some(Kind::Routed),
            _ => None,
        }
    }

    /// The value of `type`: the reference plugins that we can stand in for.
    pub(super) fn of_plugin(text: &str) -> Option<Self> {
        Self::parse(text).filter(|kind| *kind != Kind::Routed)
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Macvlan => "macvlan",
            Kind::Bridge => "bridge",
            Kind::Routed => "routed",
        }
    }
}

/// Every key that some native network has; for messages about networks of no known kind.
pub(crate) const ALL_OPTIONS: [&str; 20] = [
    "master",
    "mode",
    "mtu",
    "mac",
    "bcqueuelen",
    "linkInContainer",
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
    "ipam",
    "dns",
    "sourceRouting",
    "args",
];

/// Reads the options of one native network. `asked` is what the request adds to it.
pub(crate) fn read(
    fields: &mut Fields<'_>,
    kind: Kind,
    written: Written,
    asked: &Asked,
) -> Option<Native> {
    let mtu = common::mtu(fields);
    let dns = fields.object("dns", common::dns).unwrap_or_default();
    // The bridge plugin ignores a MAC in its configuration: only our own bridge takes one.
    let has_mac = written == Written::ForUs || kind == Kind::Macvlan;
    let mac = if has_mac { fields.parsed("mac") } else { None };
    let provider = match kind {
        Kind::Macvlan => macvlan(fields).map(Provider::Macvlan),
        Kind::Bridge => bridge(fields).map(Provider::Bridge),
        Kind::Routed => Some(Provider::Routed(Routed {
            ip_masq: fields.flag("ipMasq"),
            not_masq: Vec::new(),
            source_check: false,
        })),
    };
    let ipam = ipam::read(fields, kind.name(), asked);
    if kind == Kind::Routed && !fields.has("ipam") && !asked.has_subnets {
        fields.missing("ipam", "a routed network needs addresses to route to");
    }
    check_asked(fields, asked);
    let ips = match ipam {
        Some(Ipam::Static(_)) => Vec::new(),
        _ => asked.ips().to_vec(),
    };
    Some(Native {
        provider: provider?,
        ipam,
        mac: asked.mac.or(mac),
        ips,
        mtu,
        dns,
    })
}

/// What is asked for must have a place in the network.
pub(crate) fn check_asked(fields: &mut Fields<'_>, asked: &Asked) {
    let addressed = fields.has("ipam") || asked.has_subnets;
    if let (Some((ip, _)), false) = (asked.ips().first(), addressed) {
        let text = format!("is missing, but the address {ip} is asked for: write one");
        fields.problem("ipam", text);
    }
    for key in &asked.unknown {
        let path = format!("args.cni.{}", key.chars().take(64).collect::<String>());
        let text = "is not a known key: ips, mac and labels are".to_owned();
        fields.absorb(Problems(vec![Problem {
            path,
            text,
            unknown_key: true,
        }]));
    }
}

fn macvlan(fields: &mut Fields<'_>) -> Option<Macvlan> {
    let master = fields.parsed("master");
    let bcqueuelen = fields.number("bcqueuelen").filter(|length| *length != 0);
    not_native(fields, Kind::Macvlan, &["linkInContainer"]);
    let written = fields.text("mode").filter(|mode| !mode.is_empty());
    let Some(mode) = written.map_or(Some(MacvlanMode::default()), MacvlanMode::from_name) else {
        let value = shown(written.unwrap_or_default());
        fields.problem(
            "mode",
            format!("is {value}: write bridge, vepa, private or passthru"),
        );
        return None;
    };
    Some(Macvlan {
        master,
        mode,
        bcqueuelen,
    })
}

fn bridge(fields: &mut Fields<'_>) -> Option<Bridge> {
    let name = match fields.text("bridge") {
        None => IfName::new("cni0").ok(),
        Some("") => {
            fields.problem(
                "bridge",
                "is empty: write the bridge's name, or leave it out for cni0",
            );
            None
        }
        Some(_) => fields.parsed("bridge"),
    };
    let is_default_gateway = fields.flag("isDefaultGateway");
    let hairpin_mode = fields.flag("hairpinMode");
    let promisc_mode = fields.flag("promiscMode");
    if hairpin_mode && promisc_mode {
        fields.problem(
            "hairpinMode",
            "cannot be set together with promiscMode: keep one of them",
        );
    }
    match fields.number("vlan") {
        None | Some(0) => {}
        Some(vlan @ 1..=4094) => not_ours(fields, Kind::Bridge, "vlan", &vlan.to_string()),
        Some(vlan) => fields.problem("vlan", format!("is {vlan}: write a number from 0 to 4094")),
    }
    // Without a VLAN there is no default VLAN to preserve.
    fields.flag("preserveDefaultVlan");
    let off = [
        "macspoofchk",
        "enabledad",
        "disableContainerInterface",
        "portIsolation",
    ];
    not_native(fields, Kind::Bridge, &off);
    for key in ["vlanTrunk", "ipMasqBackend"] {
        if fields.value(key).is_some() {
            not_ours(fields, Kind::Bridge, key, "set");
        }
    }
    Some(Bridge {
        is_gateway: fields.flag("isGateway") || is_default_gateway,
        is_default_gateway,
        force_address: fields.flag("forceAddress"),
        ip_masq: fields.flag("ipMasq"),
        hairpin_mode,
        promisc_mode,
        bridge: name?,
    })
}

/// Flags of the plugin that we understand only when they are off.
fn not_native(fields: &mut Fields<'_>, kind: Kind, keys: &[&'static str]) {
    for key in keys {
        if fields.flag(key) {
            not_ours(fields, kind, key, "true");
        }
    }
}

fn not_ours(fields: &mut Fields<'_>, kind: Kind, key: &str, value: &str) {
    let real = choice::real_plugin(kind.name(), fields.path());
    let text = format!("is {value}, which is not native: leave it out, or {real}");
    fields.unsupported(key, text);
}
