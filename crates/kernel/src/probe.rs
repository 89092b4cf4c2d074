//! What this kernel can do, tried for real in a namespace that is thrown away. Owns the attempts;
//! decides nothing about them: a reason is given for what is missing.

use crate::effect::Effect;
use crate::observe::link_by_name;
use crate::{NetlinkError, Netns, Socket, link, nft, router, sys};
use netlink_packet_route::link::{
    InfoData, InfoIpVlan, InfoKind, InfoMacVlan, InfoVlan, InfoVrf, InfoVxlan, IpVlanMode,
    MacVlanMode,
};
use plexus_types::Feature;
use std::collections::BTreeMap;

/// What a kernel has and lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features {
    missing: BTreeMap<Feature, String>,
}

impl Features {
    /// Whether the kernel has it.
    pub fn has(&self, feature: Feature) -> bool {
        !self.missing.contains_key(&feature)
    }

    /// Why it is missing, if it is.
    pub fn missing(&self, feature: Feature) -> Option<&str> {
        self.missing.get(&feature).map(String::as_str)
    }

    /// Every feature with the reason if it is missing, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Feature, Option<&str>)> {
        let all = Feature::ALL.into_iter();
        all.map(|feature| (feature, self.missing(feature)))
    }
}

/// Tries everything once, on a thread of its own: that thread's namespace dies with it.
pub fn probe() -> Features {
    let thread = std::thread::Builder::new()
        .name("plexus-probe".into())
        .spawn(attempt_all);
    let failed = |why: String| Features {
        missing: Feature::ALL.map(|feature| (feature, why.clone())).into(),
    };
    match thread.map(|thread| thread.join()) {
        Ok(Ok(Ok(features))) => features,
        Ok(Ok(Err(why))) => failed(why),
        Ok(Err(_)) => failed("the probe itself failed".into()),
        Err(error) => failed(format!("cannot start a thread for the probe: {error}")),
    }
}

fn attempt_all() -> Result<Features, String> {
    sys::unshare_network().map_err(|error| {
        format!("cannot make a network namespace for the probe (this needs CAP_SYS_ADMIN): {error}")
    })?;
    let mut socket = Socket::open().map_err(|error| error.to_string())?;
    let mut features = Features::default();
    for feature in Feature::ALL {
        let attempt = match feature {
            Feature::Masquerade => nft::probe(),
            Feature::NetnsCookie => cookie(),
            Feature::RouterNetns => Ok(()),
            _ => attempt_link(&mut socket, feature),
        };
        let attempt = attempt.map_err(|error| match error.errno() {
            // The latter of sockets, where even the kind of netlink that nf_tables speaks is a module.
            Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT) => {
                format!("the kernel has no {feature}: load or build that module")
            }
            _ => error.to_string(),
        });
        let missing = attempt.and_then(|()| match feature {
            _ if plexus_faults::mistake(&format!("lacks-{feature}")) => {
                Err("switched off for a test".to_owned())
            }
            Feature::RouterNetns => attempt_pin(),
            _ => Ok(()),
        });
        features
            .missing
            .extend(missing.err().map(|why| (feature, why)));
    }
    Ok(features)
}

fn cookie() -> Result<(), NetlinkError> {
    Ok(Netns::current()?.cookie().map(drop)?)
}

fn attempt_pin() -> Result<(), String> {
    router::pin::attempt().map_err(|error| {
        format!("cannot make pinned network namespaces (this needs CAP_SYS_ADMIN): {error}")
    })
}

fn attempt_link(socket: &mut Socket, feature: Feature) -> Result<(), NetlinkError> {
    let macvlan = || InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Bridge)]);
    let ipvlan = || InfoData::IpVlan(vec![InfoIpVlan::Mode(IpVlanMode::L2)]);
    let vlan = || InfoData::Vlan(vec![InfoVlan::Id(80)]);
    let vxlan = || InfoData::Vxlan(vec![InfoVxlan::Id(80), InfoVxlan::Port(4789)]);
    let vrf = || InfoData::Vrf(vec![InfoVrf::TableId(80)]);
    // The loopback cannot carry a macvlan; the ends of the veth can. One end each, since a parent
    // carries macvlans or ipvlans but not both.
    let (kind, data, parent) = match feature {
        Feature::Veth => (InfoKind::Veth, None, None),
        Feature::Bridge => (InfoKind::Bridge, None, None),
        Feature::Dummy => (InfoKind::Dummy, None, None),
        Feature::Macvlan => (InfoKind::MacVlan, Some(macvlan()), Some(VETH.0)),
        Feature::Ipvlan => (InfoKind::IpVlan, Some(ipvlan()), Some(VETH.1)),
        Feature::Vlan => (InfoKind::Vlan, Some(vlan()), Some(VETH.0)),
        Feature::Vxlan => (InfoKind::Vxlan, Some(vxlan()), None),
        Feature::Vrf => (InfoKind::Vrf, Some(vrf()), None),
        Feature::Masquerade | Feature::NetnsCookie | Feature::RouterNetns => return Ok(()),
    };
    let index = match parent {
        None => None,
        Some(name) => link_by_name(socket, name)?.map(|link| link.index),
    };
    let request = link::create_plain(feature.name(), kind, data, index);
    // Nothing outside the throw-away namespace changes: not a place to die.
    match socket.batch(Effect::none(), &[request]) {
        // Without veth there is no parent. Only a kernel that knows the kind asks for one.
        Err(error)
            if parent.is_some() && index.is_none() && error.errno() == Some(libc::EINVAL) =>
        {
            Ok(())
        }
        attempt => attempt,
    }
}

/// The kernel names both ends when none is given: see [`link::create_plain`].
const VETH: (&str, &str) = ("veth", "veth0");
