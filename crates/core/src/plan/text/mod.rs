//! Plans as the commands that a person would type: for `--dry-run`, messages and tests. The pod's
//! namespace is called `pod`, a router's by its name.

mod ports;
mod router;

use super::{
    Bridge, HostEnd, Link, LinkKind, Masquerade, Neighbour, NodePlan, PROTOCOL, PodPlan, Route,
    Rule, Setting,
};
use ipnet::IpNet;
use plexus_types::{Family, IfName};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

/// A pod's plan, both its ends.
pub fn pod_text(plan: &PodPlan) -> String {
    let mut lines = Lines::default();
    for link in &plan.links {
        lines.link(link, plan.group);
    }
    lines.host_ports(plan);
    lines.0
}

/// Of that plan only the ports of the node that lead to the pod.
pub fn ports_text(plan: &PodPlan) -> String {
    let mut lines = Lines::default();
    lines.host_ports(plan);
    lines.0
}

/// What the networks of a pod keep on the node.
pub fn node_text(plan: &NodePlan) -> String {
    let mut lines = Lines::default();
    for setting in &plan.settings {
        lines.setting("", setting);
    }
    for bridge in &plan.bridges {
        lines.bridge(bridge);
    }
    if !plan.masquerades.is_empty() {
        lines.table();
        lines.chain("postrouting", "nat", "postrouting priority srcnat");
    }
    for masquerade in &plan.masquerades {
        lines.masquerade(masquerade);
    }
    for router in &plan.routers {
        lines.router(router);
    }
    lines.0
}

impl Display for Route {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.via {
            Some(via) if self.is_default() => write!(f, "default via {via}")?,
            Some(via) => write!(f, "{} via {via}", self.dst)?,
            None => write!(f, "{}", self.dst)?,
        }
        option(f, "src", self.src)?;
        option(f, "table", self.table)?;
        option(f, "metric", self.metric)?;
        option(f, "scope", self.scope)?;
        option(f, "mtu", self.mtu)?;
        option(f, "advmss", self.advmss)?;
        if self.onlink {
            f.write_str(" onlink")
        } else {
            Ok(())
        }
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "from {} lookup {} priority {}",
            self.from, self.table, self.priority
        )
    }
}

impl Link {
    /// Every route that it has: those that the kernel makes with its addresses, and its own.
    pub fn routes_text(&self) -> Vec<String> {
        let whole = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
        let addresses = self.addresses.iter().map(|address| address.net);
        let on_link = addresses.filter(|net| !whole(net)).map(|net| net.trunc());
        let on_link: BTreeSet<IpNet> = on_link.collect();
        let on_link = on_link.iter().map(IpNet::to_string);
        on_link
            .chain(self.routes.iter().map(Route::to_string))
            .collect()
    }
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, line: impl Display) {
        self.0.push_str(&line.to_string());
        self.0.push('\n');
    }

    fn link(&mut self, link: &Link, group: u32) {
        let name = &link.name;
        let shape = Shape(link.mac.map(|mac| mac.to_string()), link.mtu, Some(group));
        match &link.kind {
            LinkKind::Stacked(stacked) => self.line(format_args!(
                "ip link add {name} link {} netns pod{shape} type {stacked}",
                stacked.parent.name
            )),
            LinkKind::Moved(device) => {
                let mac = link.mac.map(|mac| format!(" address {mac}"));
                let mtu = link.mtu.map(|mtu| format!(" mtu {mtu}"));
                self.line(format_args!(
                    "ip link set {} netns pod name {name}{}{}",
                    device.name,
                    mac.unwrap_or_default(),
                    mtu.unwrap_or_default()
                ));
            }
            LinkKind::Veth(end) => {
                let host = Shape(Some(end.mac.to_string()), end.mtu, end.group());
                self.line(format_args!(
                    "{} link add {}{host} txqueuelen 0 type veth peer name {name} netns pod{shape}",
                    ip_of(end),
                    end.name
                ));
            }
        }
        self.line(format_args!(
            "ip -n pod link set {name} alias '{}'",
            link.alias
        ));
        if let Some(end) = link.kind.host_end() {
            self.host_end(end);
        }
        for setting in &link.settings {
            self.setting("ip netns exec pod ", setting);
        }
        for address in &link.addresses {
            let v6 = Family::of(address.net.addr()) == Family::V6;
            let nodad = if v6 { " nodad" } else { "" };
            self.line(format_args!(
                "ip -n pod address add {} dev {name}{nodad}",
                address.net
            ));
        }
        self.line(format_args!("ip -n pod link set {name} up"));
        self.rest("ip -n pod", name, &link.neighbours, &link.routes);
        for rule in &link.rules {
            self.line(format_args!(
                "ip -n pod rule add {rule} protocol {PROTOCOL}"
            ));
        }
    }

    fn host_end(&mut self, end: &HostEnd) {
        let (ip, name) = (ip_of(end), &end.name);
        self.line(format_args!("{ip} link set {name} alias '{}'", end.alias));
        let inside = end.router.as_ref();
        let exec = inside.map_or_else(String::new, |router| format!("ip netns exec {router} "));
        for setting in &end.settings {
            self.setting(&exec, setting);
        }
        if let Some(bridge) = &end.bridge {
            self.line(format_args!("{ip} link set {name} master {bridge}"));
        }
        if end.hairpin {
            self.line(format_args!("bridge link set dev {name} hairpin on"));
        }
        self.line(format_args!("{ip} link set {name} up"));
        if end.source_check {
            self.line(format_args!(
                "# {exec}nft: from {name} only what fib leads back to it"
            ));
        }
        self.rest(&ip, name, &end.neighbours, &end.routes);
    }

    fn rest(&mut self, ip: &str, name: &IfName, neighbours: &[Neighbour], routes: &[Route]) {
        for Neighbour { address, mac } in neighbours {
            self.line(format_args!(
                "{ip} neighbour add {address} lladdr {mac} dev {name} nud permanent protocol {PROTOCOL}"
            ));
        }
        for route in routes {
            self.line(format_args!(
                "{ip} route add {route} dev {name} protocol {PROTOCOL}"
            ));
        }
    }

    fn setting(&mut self, before: &str, setting: &Setting) {
        self.line(format_args!(
            "{before}sysctl -w {}={}",
            setting.key, setting.value
        ));
    }

    fn bridge(&mut self, bridge: &Bridge) {
        let name = &bridge.name;
        let mtu = bridge
            .mtu
            .map_or_else(String::new, |mtu| format!(" mtu {mtu}"));
        self.line(format_args!("ip link add {name}{mtu} type bridge"));
        for setting in &bridge.settings {
            self.setting("", setting);
        }
        if bridge.promisc {
            self.line(format_args!("ip link set {name} promisc on"));
        }
        self.line(format_args!("ip link set {name} up"));
        let add = if bridge.force_address {
            "replace"
        } else {
            "add"
        };
        for address in &bridge.addresses {
            self.line(format_args!("ip address {add} {address} dev {name}"));
        }
    }

    fn table(&mut self) {
        self.line("nft add table inet plexus");
    }

    /// Where rules go; one that is there stays as it is.
    fn chain(&mut self, name: &str, kind: &str, hook: &str) {
        self.line(format_args!(
            "nft add chain inet plexus {name} '{{ type {kind} hook {hook}; }}'"
        ));
    }

    fn masquerade(&mut self, masquerade: &Masquerade) {
        let (ip, multicast) = match Family::of(masquerade.source.addr()) {
            Family::V4 => ("ip", "224.0.0.0/4"),
            Family::V6 => ("ip6", "ff00::/8"),
        };
        let Masquerade {
            network,
            source,
            except,
        } = masquerade;
        let family = Family::of(source.addr());
        let except = except.iter().filter(|net| Family::of(net.addr()) == family);
        let except: String = except.map(|net| format!(", {net}")).collect();
        self.line(format_args!(
            "nft add rule inet plexus postrouting {ip} saddr {source} {ip} daddr != {{ {source}, {multicast}{except} }} masquerade comment '{network}'"
        ));
    }
}

/// The command that acts where a host end is.
fn ip_of(end: &HostEnd) -> String {
    match &end.router {
        Some(router) => format!("ip -n {router}"),
        None => "ip".to_owned(),
    }
}

/// MAC, MTU and group of a link, as arguments of `ip link add`.
struct Shape(Option<String>, Option<u32>, Option<u32>);

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        option(f, "address", self.0.as_ref())?;
        option(f, "mtu", self.1)?;
        option(f, "group", self.2)
    }
}

fn option(f: &mut Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name} {value}"))
}
