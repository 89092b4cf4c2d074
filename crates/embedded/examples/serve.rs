//! The embedded API on its own, with the builtin kinds and those of the definitions in a directory:
//! what the conformance suite, kubectl and the benchmark are pointed at.
//!
//! ```sh
//! cargo run -p plexus-embedded --example serve -- DIR deploy/crds [127.0.0.1:PORT]
//! KUBECONFIG=DIR/kubeconfig kubectl get namespaces
//! ```
//! Prints the kubeconfig's path when it answers; ends with its standard input.
#![allow(clippy::print_stdout, reason = "it is what the caller waits for")]

use plexus_embedded::alias::CORE_NETWORK;
use plexus_embedded::kinds::{Kind, Kinds};
use plexus_embedded::status::Cause;
use plexus_embedded::{Options, Server, Validator};
use serde_json::Value;
use std::error::Error;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (dir, crds) = (arguments.next(), arguments.next());
    let (Some(dir), Some(crds)) = (dir, crds) else {
        return Err("usage: serve DIR DIRECTORY-OF-DEFINITIONS [ADDRESS]".into());
    };
    let mut options = Options::new(&dir, kinds(Path::new(&crds))?);
    options.unix = Some(Path::new(&dir).join("api.sock"));
    options.validator = Arc::new(Rules);
    if let Some(listen) = arguments.next() {
        options.listen = listen.parse::<SocketAddr>()?;
    }
    let server = Server::start(options)?;
    println!("{}", server.kubeconfig().display());
    let _ = std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    Ok(())
}

fn kinds(crds: &Path) -> Result<Kinds, Box<dyn Error>> {
    let mut kinds = Kinds::builtin()?;
    for entry in std::fs::read_dir(crds)? {
        let text = std::fs::read_to_string(entry?.path())?;
        let definition: Value = serde_yaml_ng::from_str(&text)?;
        kinds = kinds.with_crd(&definition)?;
    }
    Ok(kinds.with_alias(CORE_NETWORK)?)
}

/// Some of what the definitions say in rules between fields. The product hands in all of it, from the
/// room that knows what a network is.
struct Rules;

impl Validator for Rules {
    fn problems(&self, kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<Cause> {
        if kind.kind != "Network" {
            return Vec::new();
        }
        let spec = &new["spec"];
        let mut found = Vec::new();
        let mut say = |field: &str, value: &Value, why: &str| {
            found.push(Cause::invalid(format!("spec{field}"), value, why));
        };
        let provider = spec["provider"].as_str().unwrap_or("overlay");
        let known = ["overlay", "routed", "bridge", "macvlan", "delegate"].contains(&provider);
        if !known && !provider.contains('/') {
            say(
                "",
                spec,
                "provider is not known: write overlay, routed, bridge, macvlan or delegate",
            );
        }
        if old.is_some_and(|old| old["spec"]["provider"] != spec["provider"]) {
            say("", spec, "provider cannot be changed: make another network");
        }
        let namespaces = &spec["allowedNamespaces"];
        let by_selector = namespaces["from"] == "Selector";
        if namespaces.is_object() && by_selector != namespaces.get("selector").is_some() {
            let why = "selector must be there if, and only if, from is Selector";
            say(".allowedNamespaces", namespaces, why);
        }
        for (key, subnet) in spec["subnets"].as_object().into_iter().flatten() {
            let cidr = subnet["cidr"].as_str().and_then(prefix);
            match (cidr, subnet["gateway"].as_str()) {
                (None, _) => {
                    let why = "cidr must be a prefix without host bits, such as 10.1.0.0/16";
                    say(&format!(".subnets[{key}]"), subnet, why);
                }
                (Some(cidr), Some(gateway))
                    if !gateway.parse().is_ok_and(|ip| inside(cidr, ip)) =>
                {
                    let why = "gateway must be an address of cidr";
                    say(&format!(".subnets[{key}]"), subnet, why);
                }
                _ => {}
            }
        }
        found
    }
}

/// A prefix without host bits.
fn prefix(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?);
    let (bits, width) = bits(address);
    let host = 1_u128
        .checked_shl(width.checked_sub(length)?)
        .map_or(u128::MAX, |all| all - 1);
    (bits & host == 0).then_some((address, length))
}

fn inside((network, length): (IpAddr, u32), address: IpAddr) -> bool {
    let ((network, width), (address, other)) = (bits(network), bits(address));
    width == other && (network ^ address).checked_shr(width - length).unwrap_or(0) == 0
}

fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}
