//! What packets see: a container's way to the outside, to its neighbour on the bridge, and the
//! address that it is seen with.

use crate::interop::{addresses, connect};
use crate::pairs::Pair;
use crate::twins::Twin;
use plexus_testkit::{NetNs, Node, Pod};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

const PORT: u16 = 7007;

/// The outside can be reached: beside a macvlan's master it has the gateway's addresses, behind a
/// bridge it knows the way back, so that only masquerading makes a difference.
pub(crate) fn prepare(node: &Node, pair: &Pair) {
    let script = match pair.plugin {
        "macvlan" => {
            "ip address add 10.1.2.1/24 dev out0; ip address add fd00:1::1/64 dev out0 nodad"
        }
        _ => "ip route add 10.1.2.0/24 via 192.0.2.2; ip route add fd00:1::/64 via 2001:db8::2",
    };
    node.outside().sh(script);
}

/// Every connection that should work, works, and is seen from where it should be, on both nodes.
pub(crate) fn compare(
    pair: &Pair,
    twins: (&Twin, &Twin),
    pods: (&Pod<'_>, &Pod<'_>),
    results: &(Value, Value),
) -> Vec<String> {
    let mut problems = Vec::new();
    for (twin, pod, result) in [(twins.0, pods.0, &results.0), (twins.1, pods.1, &results.1)] {
        for own in addresses(result)
            .into_iter()
            .filter(|own| reachable(pair, *own))
        {
            let (to, seen) = outside(pair, own);
            problems.extend(wrong(pod, twin.node.outside(), to, Some(seen)));
        }
        if pair.bridge().is_some() && pair.options["ipam"]["type"] == "host-local" {
            problems.extend(neighbour(pair, twin, pod, result));
        }
    }
    problems
}

/// Whether the outside knows the way back, and the container the way there.
fn reachable(pair: &Pair, own: IpAddr) -> bool {
    near(own) && (pair.plugin == "macvlan" || pair.options["isDefaultGateway"] == true)
}

/// Where the outside is, and as whom it sees the container.
fn outside(pair: &Pair, own: IpAddr) -> (&'static str, IpAddr) {
    let (to, node) = match (pair.plugin, own.is_ipv4()) {
        ("macvlan", true) => ("10.1.2.1", ""),
        ("macvlan", false) => ("fd00:1::1", ""),
        (_, true) => ("192.0.2.1", "192.0.2.2"),
        (_, false) => ("2001:db8::1", "2001:db8::2"),
    };
    let masqueraded = pair.options["ipMasq"] == true;
    (
        to,
        if masqueraded {
            node.parse().unwrap()
        } else {
            own
        },
    )
}

/// A second container on the same bridge sees the first as itself, unless ports are isolated.
fn neighbour(pair: &Pair, twin: &Twin, pod: &Pod<'_>, result: &Value) -> Vec<String> {
    let second = Pair {
        args: "",
        ..pair.clone()
    };
    let mut config = twin.config.clone();
    for key in ["args", "runtimeConfig"] {
        config.as_object_mut().unwrap().remove(key);
    }
    let other = twin.pod("c2", &second);
    let added = twin.call_with("ADD", &other, &second, &config);
    if !added.success() {
        return vec![format!("ADD of a second container: {added:?}")];
    }
    let isolated = pair.options["portIsolation"] == true;
    let mut problems = Vec::new();
    for to in addresses(&added.json()) {
        let same_subnet = |own: &IpAddr| own.is_ipv4() == to.is_ipv4() && near(*own) && near(to);
        if let Some(own) = addresses(result).into_iter().find(same_subnet) {
            let seen = (!isolated).then_some(own);
            problems.extend(wrong(pod, other.ns(), &to.to_string(), seen));
        }
    }
    let deleted = twin.call_with("DEL", &other, &second, &config);
    if !deleted.success() {
        problems.push(format!("DEL of a second container: {deleted:?}"));
    }
    problems
}

fn near(address: IpAddr) -> bool {
    let text = address.to_string();
    text.starts_with("10.1.2.") || text.starts_with("fd00:1:")
}

fn wrong(pod: &Pod<'_>, to: &NetNs, at: &str, seen: Option<IpAddr>) -> Option<String> {
    let at = SocketAddr::new(at.parse().unwrap(), PORT);
    let found = connect(pod.ns(), to, at, at);
    (found != seen).then(|| {
        let from = pod.ns().name();
        format!("a connection from {from} to {at} is seen as {found:?}, not {seen:?}")
    })
}
