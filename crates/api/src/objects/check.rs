//! What must fit together in a `Network`, and what follows from what is not written.

use super::{From, NetworkSpec, RouteSpec, Subnet};
use crate::cni::parse::choice;
use crate::cni::parse::ipam::span::{Span, address, overlaps};
use crate::cni::{BlockSubnet, Provider, ProviderKind, provider_problems};
use crate::text::{host_bits, other_family, quoted, shortened};
use crate::{Problems, pod};
use ipnet::IpNet;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// More than anyone writes; keeps the checks cheap.
const MAX_SUBNETS: usize = 64;
const MAX_EXCLUDE: usize = 1024;
const MAX_ROUTES: usize = 256;

/// The provider that executes plugins.
pub(crate) const DELEGATE: &str = "delegate";

/// Who can make a network, beside external providers.
pub fn providers() -> Vec<&'static str> {
    let mut names = ProviderKind::names(|_| true);
    names.push(DELEGATE);
    names
}

impl NetworkSpec {
    /// The provider, written or not.
    pub fn provider_name(&self) -> &str {
        let written = self.provider.as_deref().filter(|name| !name.is_empty());
        written.unwrap_or(Provider::DEFAULT)
    }

    /// Its provider, if that is a native one.
    pub fn provider_kind(&self) -> Option<&'static ProviderKind> {
        ProviderKind::of(self.provider_name())
    }

    /// All that is wrong with it, with field paths under `spec`. Empty: it can be made.
    pub fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        self.check_provider(&mut problems);
        self.check_identity(&mut problems);
        self.check_subnets(&mut problems);
        self.check_block_size(&mut problems);
        self.check_mtu(&mut problems);
        self.check_routes(&mut problems);
        self.check_namespaces(&mut problems);
        problems.without_repetition()
    }

    /// The gateway of a subnet: the one written, else the last address but one, where the original
    /// has it; the last where there are but two, the only one where there is but one.
    pub fn gateway_of(&self, subnet: &Subnet) -> IpAddr {
        let all = Span::of(&subnet.cidr);
        let last = all.last - u128::from(all.len() > 2);
        subnet.gateway.unwrap_or(address(all.family, last))
    }

    /// Prefix length of a subnet's blocks: as written, else 26 or 122; the subnet's own if that is
    /// longer.
    pub fn block_length_of(&self, subnet: &Subnet) -> u8 {
        self.block_length_in(&subnet.cidr)
    }

    fn block_length_in(&self, subnet: &IpNet) -> u8 {
        let size = self.block_size.as_ref();
        let length = match Family::of(subnet.addr()) {
            Family::V4 => size.and_then(|size| size.ipv4).unwrap_or(26).min(32),
            Family::V6 => size.and_then(|size| size.ipv6).unwrap_or(122).min(128),
        };
        length.max(subnet.prefix_len())
    }

    /// The block that a node claims to have `block`: itself, or the one that it is a part of. None: it is
    /// not this network's, whatever it says; whoever writes one of another place, or a larger one, wants
    /// the traffic of others. `earlier` are subnets that the spec no longer has.
    pub fn whole_block(&self, earlier: &[IpNet], block: &IpNet) -> Option<IpNet> {
        let subnets = self.subnets.values().map(|subnet| &subnet.cidr);
        let around = subnets
            .chain(earlier)
            .filter(|subnet| subnet.trunc().contains(block));
        let lengths = around.map(|subnet| self.block_length_in(subnet));
        let length = lengths
            .filter(|length| *length <= block.prefix_len())
            .max()?;
        let whole = IpNet::new(block.network(), length).ok()?;
        Some(whole.trunc())
    }

    /// Its subnets in order of preference, with everything filled in.
    pub fn block_subnets(&self) -> Vec<BlockSubnet> {
        let subnets = self.subnets.values();
        let subnets = subnets.map(|subnet| BlockSubnet {
            cidr: subnet.cidr.trunc(),
            gateway: Some(self.gateway_of(subnet)),
            exclude: subnet.exclude.iter().map(IpNet::trunc).collect(),
            block_length: Some(self.block_length_of(subnet)),
        });
        subnets.collect()
    }

    fn check_provider(&self, problems: &mut Problems) {
        let name = self.provider_name();
        if let Some((owner, rest)) = name.split_once('/') {
            if pod::check_object(owner).is_err() || pod::check_object(rest).is_err() {
                let name = quoted(name);
                let text = format!("{name} is not a provider's name: write it as example.com/name");
                problems.add("spec.provider", text);
            }
            return;
        }
        let known = providers();
        if !known.contains(&name) {
            let all = known.join(", ");
            let meant = choice::did_you_mean(name, &known);
            let text = format!(
                "{} is not a provider: {meant}there are {all}, and external ones with \"/\" in \
                 their name",
                quoted(name)
            );
            return problems.add("spec.provider", text);
        }
        if self.snat && self.provider_kind().is_none_or(|kind| !kind.snat) {
            let text =
                format!("is true, but the traffic of a {name} network does not pass the node");
            problems.add("spec.snat", text);
        }
        if name == DELEGATE {
            self.check_delegate(problems);
        }
        problems.0.extend(provider_problems(self).0);
    }

    /// Nothing but `config` reaches the plugins.
    fn check_delegate(&self, problems: &mut Problems) {
        for (key, is_set) in [
            ("subnets", !self.subnets.is_empty()),
            ("blockSize", self.block_size.is_some()),
            ("mtu", self.mtu.is_some()),
            ("routes", !self.routes.is_empty()),
        ] {
            if is_set {
                let text = "does not reach the plugins of a delegate network: write it in config";
                problems.add(format!("spec.{key}"), text);
            }
        }
    }

    fn check_identity(&self, problems: &mut Problems) {
        let legal = |uuid: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
            (1..=128).contains(&uuid.len()) && uuid.bytes().all(plain)
        };
        if let Some(uuid) = self.uuid.as_deref().filter(|uuid| !legal(uuid)) {
            let text = format!(
                "{} is not an identity: use 1 to 128 of A-Z a-z 0-9 - _ . :",
                quoted(uuid)
            );
            problems.add("spec.uuid", text);
        }
    }

    fn check_subnets(&self, problems: &mut Problems) {
        if self.subnets.len() > MAX_SUBNETS {
            let count = self.subnets.len();
            let text = format!("has {count}: write at most {MAX_SUBNETS}");
            return problems.add("spec.subnets", text);
        }
        for (key, subnet) in &self.subnets {
            if key.is_empty() || key.len() > 63 {
                let text = format!("has the key {}: use 1 to 63 characters", quoted(key));
                problems.add("spec.subnets", text);
            }
            let path = format!("spec.subnets.{}", shortened(key));
            self.check_subnet(&path, subnet, problems);
        }
        let list: Vec<(&String, &Subnet)> = self.subnets.iter().collect();
        let spans = list.iter().map(|(_, subnet)| Span::of(&subnet.cidr));
        let spans: Vec<Span> = spans.collect();
        for (i, j) in overlaps(&spans) {
            if let (Some((a, _)), Some((b, subnet))) = (list.get(i), list.get(j)) {
                let cidr = subnet.cidr;
                let text = format!("{cidr} overlaps subnet {a}: keep one of them");
                problems.add(format!("spec.subnets.{b}.cidr"), text);
            }
        }
    }

    fn check_subnet(&self, path: &str, subnet: &Subnet, problems: &mut Problems) {
        let cidr = subnet.cidr;
        if let Some(text) = host_bits(&cidr) {
            problems.add(format!("{path}.cidr"), text);
        }
        if cidr.prefix_len() == 0 {
            let text = format!(
                "{cidr} is every address, the cluster's own too: write a part of it, such as {}",
                match Family::of(cidr.addr()) {
                    Family::V4 => "10.1.0.0/16",
                    Family::V6 => "fd00:1::/48",
                }
            );
            return problems.add(format!("{path}.cidr"), text);
        }
        if let Some(kind) = unusable(&cidr) {
            let text = format!("{cidr} is {kind}: pods cannot have such addresses");
            problems.add(format!("{path}.cidr"), text);
        }
        if subnet.exclude.len() > MAX_EXCLUDE {
            let count = subnet.exclude.len();
            let text = format!("has {count} elements: write at most {MAX_EXCLUDE}");
            return problems.add(format!("{path}.exclude"), text);
        }
        for net in &subnet.exclude {
            if let Some(text) = host_bits(net) {
                problems.add(format!("{path}.exclude"), text);
            }
            if !cidr.contains(net) {
                let text = format!("{net} is not inside {cidr}: leave it out");
                problems.add(format!("{path}.exclude"), text);
            }
        }
        self.check_room(path, subnet, problems);
    }

    /// The gateway is in the subnet, and somebody can have an address beside it.
    fn check_room(&self, path: &str, subnet: &Subnet, problems: &mut Problems) {
        let usable = Span::usable(&subnet.cidr);
        let gateway = self.gateway_of(subnet);
        if !usable.holds(gateway) {
            let cidr = subnet.cidr;
            let text = format!("{gateway} is not a usable address of {cidr}: write one that is");
            return problems.add(format!("{path}.gateway"), text);
        }
        let mut gone: Vec<Span> = subnet.exclude.iter().map(Span::of).collect();
        gone.push(Span::of(&IpNet::from(gateway)));
        gone.sort_unstable();
        let mut left = usable.len();
        let mut next = usable.first;
        for span in gone.iter().filter_map(|span| usable.shared(span)) {
            let first = span.first.max(next);
            if span.last >= first {
                left = left.saturating_sub((span.last - first).saturating_add(1));
                next = span.last.saturating_add(1);
            }
        }
        if left == 0 {
            let text = format!(
                "{} has no address to hand out beside its gateway and what is excluded: write a \
                 larger one, or exclude less",
                subnet.cidr
            );
            problems.add(format!("{path}.cidr"), text);
        }
    }

    fn check_block_size(&self, problems: &mut Problems) {
        let Some(size) = &self.block_size else { return };
        for (key, length, bits) in [("ipv4", size.ipv4, 32), ("ipv6", size.ipv6, 128)] {
            if let Some(length) = length.filter(|length| !(1..=bits).contains(length)) {
                let text = format!("is {length}: write a prefix length from 1 to {bits}");
                problems.add(format!("spec.blockSize.{key}"), text);
            }
        }
    }

    fn check_mtu(&self, problems: &mut Problems) {
        let Some(mtu) = self.mtu else { return };
        let mut subnets = self.subnets.values();
        let has_v6 = subnets.any(|subnet| Family::of(subnet.cidr.addr()) == Family::V6);
        let least = if has_v6 { 1280 } else { 576 };
        if !(least..=65535).contains(&mtu) {
            let text = format!("is {mtu}: write a number from {least} to 65535");
            problems.add("spec.mtu", text);
        }
    }

    fn check_routes(&self, problems: &mut Problems) {
        if self.routes.len() > MAX_ROUTES {
            let text = format!("has {}: write at most {MAX_ROUTES}", self.routes.len());
            return problems.add("spec.routes", text);
        }
        if !self.routes.is_empty() && self.subnets.is_empty() && self.provider_name() != DELEGATE {
            let text = "need subnets: with an ipam section in config, write them there";
            problems.add("spec.routes", text);
        }
        for (i, RouteSpec { dst, gw }) in self.routes.iter().enumerate() {
            if let Some(text) = host_bits(dst) {
                problems.add(format!("spec.routes[{i}].dst"), text);
            }
            let text = gw.and_then(|gw| other_family(gw, dst).or_else(|| self.no_next_hop(gw)));
            if let Some(text) = text {
                problems.add(format!("spec.routes[{i}].gw"), text);
            }
        }
    }

    /// Why packets to `gw` would not go there: they go to the node or the router, which is the subnets' gateway alone.
    fn no_next_hop(&self, gw: IpAddr) -> Option<String> {
        let provider = self.provider_kind().filter(|kind| kind.is_routed())?;
        let subnets = self.subnets.values();
        let gateways: BTreeSet<IpAddr> = subnets.map(|subnet| self.gateway_of(subnet)).collect();
        let of_family = |one: &&IpAddr| Family::of(**one) == Family::of(gw);
        let served = gateways.iter().find(of_family);
        let remedy = served.map_or_else(String::new, |served| format!(", or write {served}"));
        let (is_served, name) = (gateways.contains(&gw), provider.name);
        (!is_served).then(|| {
            format!(
                "is {gw}: provider {name} sends what its pods send to the gateways of its subnets alone, \
                 not to other addresses: remove gw{remedy}"
            )
        })
    }

    fn check_namespaces(&self, problems: &mut Problems) {
        let Some(allowed) = &self.allowed_namespaces else {
            return;
        };
        let path = "spec.allowedNamespaces.selector";
        let text = match (allowed.from, &allowed.selector) {
            (From::Selector, None) => "is missing: write the labels that a namespace must have",
            (From::All | From::Same, Some(_)) => "is for from: Selector: remove it, or write that",
            (From::Selector, Some(selector)) if selector.is_empty() => {
                "is empty, which means nobody: write matchLabels or matchExpressions, or from: All"
            }
            _ => "",
        };
        if !text.is_empty() {
            problems.add(path, text);
        }
        let selector = allowed.selector.iter();
        let requirements = selector.flat_map(|one| &one.match_expressions);
        for (i, requirement) in requirements.enumerate() {
            if !requirement.is_sound() {
                let text = "must be there if, and only if, operator is In or NotIn";
                problems.add(format!("{path}.matchExpressions[{i}].values"), text);
            }
        }
    }
}

/// Addresses that no pod can have.
fn unusable(cidr: &IpNet) -> Option<&'static str> {
    let first = cidr.network();
    let within = |text: &str| text.parse::<IpNet>().is_ok_and(|net| net.contains(cidr));
    match first {
        _ if first.is_multicast() => Some("multicast"),
        _ if first.is_loopback() => Some("loopback"),
        _ if within("169.254.0.0/16") || within("fe80::/10") => Some("link-local"),
        _ if within("0.0.0.0/8") || within("240.0.0.0/4") => Some("reserved"),
        _ => None,
    }
}
