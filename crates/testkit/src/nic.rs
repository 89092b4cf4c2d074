//! Network cards for tests of devices that are moved into pods: those of the virtual machine (`tools/vm/run`), where the
//! variable `PLEXUS_TEST_NICS` says so. Elsewhere the two ends of a veth pair stand in: the kernel deletes them with the
//! namespace that they are in, and they are no hardware.

use crate::process::{run, within};
use crate::{NetNs, Node};
use serde_json::Value;
use std::time::Duration;

/// How long the kernel may take to give back what a namespace had that is gone.
const RETURN_TIMEOUT: Duration = Duration::from_secs(20);

/// Whether there is hardware.
pub fn has_nics() -> bool {
    std::env::var_os("PLEXUS_TEST_NICS").is_some()
}

impl Node {
    /// Gives the node the cards `nic1` and `nic2`, down, without addresses and further names; they reach each other.
    pub fn take_nics(&self) {
        if !has_nics() {
            self.ns().ip("link add nic1 address 52:54:00:50:58:01 type veth peer name nic2 address 52:54:00:50:58:02\n");
            return;
        }
        for number in [1, 2] {
            let mut found = None;
            let back = within(RETURN_TIMEOUT, || {
                found = of_machine(number);
                found.is_some()
            });
            assert!(back, "card {number} is not in the machine's own namespace");
            let link = found.expect("is there");
            let name = link["ifname"].as_str().expect("has a name");
            run("ip", &["link", "set", name, "down"]);
            for other in link["altnames"].as_array().into_iter().flatten() {
                let other = other.as_str().expect("is a name");
                run(
                    "ip",
                    &["link", "property", "del", "dev", name, "altname", other],
                );
            }
            let (mac, new) = (mac(number), format!("nic{number}"));
            let set = [
                "link", "set", name, "address", &mac, "mtu", "1500", "alias", "", "promisc", "off",
            ];
            run("ip", &set);
            // Into the namespace that it is in already it does not go.
            if name != new {
                run("ip", &["link", "set", name, "name", &new]);
            }
            run("ip", &["link", "set", &new, "netns", self.ns().name()]);
        }
    }
}

fn mac(number: u8) -> String {
    format!("52:54:00:50:58:0{number}")
}

/// A card of the machine that is in the test's own namespace.
fn of_machine(number: u8) -> Option<Value> {
    let all: Value = serde_json::from_str(&run("ip", &["-d", "-j", "link"])).ok()?;
    let mac = mac(number);
    let is_it = |link: &&Value| {
        link["parentbus"].is_string() && (link["permaddr"] == *mac || link["address"] == *mac)
    };
    all.as_array()?.iter().find(is_it).cloned()
}

/// What there is of a link in a namespace, by one of its names; none if it is not there.
pub fn link(ns: &NetNs, name: &str) -> Option<Value> {
    let all: Value = serde_json::from_str(&ns.run("ip", &["-d", "-j", "link"])).ok()?;
    let mut all = all.as_array()?.iter();
    all.find(|link| link["ifname"] == name).cloned()
}
