//! Packets.

use plexus_testkit::{Agent, Node, Pod, config};
use serde_json::{Value, json};

/// On the uplink, in the subnets that are there.
pub(crate) fn stacked(provider: &str, options: &Value, address: &str) -> Value {
    let mut config = json!({
        "cniVersion": "1.1.0", "name": "blue", "type": "plexus-cni", "provider": provider,
        "master": "eth1",
        "ipam": {"type": "static", "addresses": [
            {"address": format!("192.0.2.{address}/24")},
            {"address": format!("2001:db8::{address}/64")}]},
    });
    for (key, value) in options.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

pub(crate) fn ipvlan() {
    for mode in ["l2", "l3", "l3s"] {
        let node = Node::new();
        let _agent = Agent::start(&node);
        let (one, two) = (node.pod("c1"), node.pod("c2"));
        let options = json!({"mode": mode});
        let mut checked = stacked("ipvlan", &options, "11");
        checked["prevResult"] = one.add(&stacked("ipvlan", &options, "11"));
        two.add(&stacked("ipvlan", &options, "12"));
        let shown = one.ns().sh("ip -d link show eth0");
        assert!(shown.contains(&format!("mode {mode}")), "{shown}");
        pings(&one, mode, &["192.0.2.12", "2001:db8::12"]);
        pings(&two, mode, &["192.0.2.11", "2001:db8::11"]);
        if mode == "l2" {
            // The wire; in the other modes the outside would need a route.
            pings(&one, mode, &["192.0.2.1", "2001:db8::1"]);
        }
        one.cni("CHECK", &checked).done();
        for (pod, address) in [(&one, "11"), (&two, "12")] {
            pod.del(&stacked("ipvlan", &options, address));
        }
    }
}

/// The other end of the wire has the VLAN too. Two pods of one node cannot share it.
pub(crate) fn vlan() {
    let node = Node::new();
    node.outside()
        .sh("ip link add link out0 name v5 type vlan id 5; \
                       ip address add 10.10.0.1/24 dev v5; ip link set v5 up");
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let mut config = config::macvlan(&node);
    config["provider"] = "vlan".into();
    config["vlanId"] = 5.into();
    config.as_object_mut().unwrap().remove("mode");
    pod.add(&config);
    pings(&pod, "vlan 5", &["10.10.0.1"]);
    pod.del(&config);
}

fn pings(pod: &Pod<'_>, what: &str, addresses: &[&str]) {
    for address in addresses {
        assert!(pod.ns().pings(address), "{what}: {address} does not answer");
    }
}
