//! The delegate runner with the real reference plugins, in a network namespace. Runs if
//! `PLEXUS_REF_PLUGINS` names their directory.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::Dir;
use plexus_api::cni::{Chain, Executable, Version};
use plexus_cni::delegate::{Call, Options, Runner};
use plexus_types::{ContainerId, IfName, NetworkName};
use serde_json::{Map, json};
use std::process::Command;

/// Two namespaces, the node's and the container's, gone when the test is.
struct Namespaces {
    node: String,
    pod: String,
}

impl Namespaces {
    fn new() -> Self {
        let id = std::process::id();
        let namespaces = Self {
            node: format!("pxcni-n{id}"),
            pod: format!("pxcni-p{id}"),
        };
        for name in [&namespaces.node, &namespaces.pod] {
            assert!(ip(&["netns", "add", name]).0);
        }
        namespaces
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.node, &self.pod] {
            ip(&["netns", "del", name]);
        }
    }
}

fn ip(args: &[&str]) -> (bool, String) {
    let output = Command::new("ip").args(args).output().unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[test]
fn bridge_and_tuning_in_a_chain() {
    let Some(plugins) = std::env::var_os("PLEXUS_REF_PLUGINS") else {
        println!("skipped: PLEXUS_REF_PLUGINS names no directory with the reference plugins");
        return;
    };
    let namespaces = Namespaces::new();
    // The plugins work in the namespace of the thread that starts them: give them a node of their own.
    let node = std::fs::File::open(format!("/run/netns/{}", namespaces.node)).unwrap();
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&node), kind)
                .unwrap();
            attach_and_detach(plugins.into(), &namespaces);
        });
        thread.join().unwrap();
    });
}

fn attach_and_detach(plugins: std::path::PathBuf, namespaces: &Namespaces) {
    let dir = Dir::new();
    let runner = Runner::new(Options::new(vec![plugins], dir.join("spool")));
    let data = dir.join("ipam");
    let chain = json!([
        {"type":"bridge","bridge":"pxref0","isGateway":true,"ipam":{"type":"host-local",
            "subnet":"10.77.0.0/24","dataDir":data}},
        {"type":"tuning","mtu":1400,"capabilities":{"mac":true}}
    ]);
    let plugins = chain
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_object().unwrap().clone());
    let chain = Chain {
        executable: Executable::Type,
        version: Version::V1_0_0,
        plugins: plugins.collect(),
        unsupported_key: None,
    };
    let network = NetworkName::new("ref").unwrap();
    let (container, ifname) = (
        ContainerId::new("pxref").unwrap(),
        IfName::new("net0").unwrap(),
    );
    let netns = format!("/run/netns/{}", namespaces.pod);
    let call = Call {
        container: &container,
        netns: &netns,
        ifname: &ifname,
        args: "",
    };
    let runtime: Map<_, _> = json!({"mac":"02:00:00:00:77:01","ips":[]})
        .as_object()
        .unwrap()
        .clone();
    let steps = runner.steps(&network, &chain, call, &runtime);

    let first = steps.add_step(0, None).unwrap();
    assert_eq!(first.ips[0].address.to_string(), "10.77.0.2/24");
    let last = steps.add_step(1, Some(&first)).unwrap();
    steps.check(&last).unwrap();
    let (_, link) = ip(&["-n", &namespaces.pod, "link", "show", "net0"]);
    assert!(
        link.contains("mtu 1400") && link.contains("02:00:00:00:77:01"),
        "{link}"
    );

    ip(&["-n", &namespaces.pod, "addr", "flush", "dev", "net0"]);
    let error = steps.check(&last).unwrap_err().to_cni();
    assert!(error.msg.contains("bridge"), "{error}");

    let errors = steps.del_chain(2, Some(&last));
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!ip(&["-n", &namespaces.pod, "link", "show", "net0"]).0);
    let left = std::fs::read_dir(data.join("ref")).unwrap();
    let left = left.filter(|file| {
        file.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("10.")
    });
    assert_eq!(left.count(), 0);

    let error = steps.add_step(9, None).unwrap_err();
    assert!(error.to_string().contains("#9"), "{error}");
}
