//! Network configurations, CNI_ARGS and results.

use super::{failed, sized, target};
use crate::cni::{Args, Body, Ipam, NetConf, Network, NetworkBackend, Outcome, Remains, Version};
use plexus_fuzz::Kind;
use plexus_types::IfName;
use serde_json::Value;

const WORDS: &[&str] = &[
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "provider",
    "plugins",
    "networks",
    "pod",
    "default-gw",
    "ipam",
    "dns",
    "args",
    "cni",
    "labels",
    "runtimeConfig",
    "ips",
    "mac",
    "portMappings",
    "hostPort",
    "containerPort",
    "protocol",
    "hostIP",
    "bandwidth",
    "deviceID",
    "prevResult",
    "interfaces",
    "routes",
    "dst",
    "gw",
    "mtu",
    "priority",
    "scope",
    "table",
    "advmss",
    "address",
    "addresses",
    "gateway",
    "subnets",
    "exclude",
    "subnet",
    "ranges",
    "rangeStart",
    "rangeEnd",
    "dataDir",
    "resolvConf",
    "capabilities",
    "4",
    "6",
    "interface",
    "sandbox",
    "bridge",
    "macvlan",
    "ipvlan",
    "vlan",
    "host-device",
    "routed",
    "overlay",
    "plexus",
    "plexus-cni",
    "contrail-k8s-cni",
    "multi-nic",
    "host-local",
    "static",
    "dhcp",
    "whereabouts",
    "portmap",
    "tuning",
    "1.1.0",
    "1.0.0",
    "0.4.0",
    "0.3.0",
    "10.0.0.0/24",
    "10.0.0.5",
    "::/0",
    "fd00::1",
    "fd00::/64",
    "0.0.0.0/0",
    "02:00:00:00:00:01",
    "master",
    "mode",
    "l2",
    "private",
    "isGateway",
    "isDefaultGateway",
    "ipMasq",
    "vlanId",
    "linkInContainer",
    "device",
    "pciBusID",
    "hwaddr",
    "kernelpath",
    "cni.dev/valid-attachments",
    "cni.dev/attachments",
    "containerID",
    "ifname",
    "agentSocket",
    "sourceRouting",
    "disableCheck",
    "disableGC",
    "loadOnlyInlinedPlugins",
    "io.kubernetes.cri.pod-annotations",
    "k8s.v1.cni.cncf.io/networks",
    "network",
    "domain",
    "project",
    "default-domain",
    "contrail",
];

#[test]
fn configuration() {
    target("configuration", Kind::Json)
        .words(WORDS)
        .inputs(300)
        .run(|input| {
            let asked = Args::parse("IP=10.0.0.5/24;MAC=02:00:00:00:00:01").unwrap();
            let _ = NetConf::parse(input, &asked).map_err(|error| failed(&error));
            let remains = NetConf::parse_lenient(input);
            sized(&format!("{remains:?}"), input);
            match NetConf::parse(input, &Args::default()) {
                Ok(conf) => {
                    sized(&format!("{conf:?}"), input);
                    let again = NetConf::parse(input, &Args::default());
                    assert_eq!(again.as_ref(), Ok(&conf), "read differently");
                    let _ = conf
                        .body
                        .check_names(&IfName::new("eth0").unwrap())
                        .map_err(|error| failed(&error));
                    nothing_is_lost(&conf, &remains);
                    conf.prev_result.as_ref().map(written);
                    outline(&conf)
                }
                Err(error) => failed(&error),
            }
        });
}

/// A DEL that has only what was read leniently does what one with all of it does.
fn nothing_is_lost(conf: &NetConf, remains: &Remains) {
    assert_eq!(remains.version, Some(conf.version));
    assert_eq!(remains.name.as_ref(), Some(&conf.name));
    assert_eq!(remains.prev_result, conf.prev_result);
    let networks = match &conf.body {
        Body::Pod | Body::Named(_) => return,
        Body::One(_) | Body::All { .. } => conf.body.networks(),
    };
    assert_eq!(remains.networks.len(), networks.len());
    for (i, (remains, network)) in remains.networks.iter().zip(networks).enumerate() {
        assert_eq!(
            (remains.index, remains.name.as_ref()),
            (i, Some(&network.name))
        );
        if i > 0 && network.interface.is_some() {
            assert_eq!(remains.interface, network.interface);
        }
        match &network.backend {
            NetworkBackend::Delegate(chain) => {
                let without_args = |plugin: &serde_json::Map<String, Value>| {
                    let mut plugin = plugin.clone();
                    plugin.remove("args");
                    plugin
                };
                let executed: Vec<_> = chain.plugins.iter().map(without_args).collect();
                let remain: Vec<_> = remains.plugins.iter().map(without_args).collect();
                assert_eq!(remain, executed, "a DEL executes something else");
            }
            NetworkBackend::Native(native) => {
                if let Some(Ipam::HostLocal(ipam)) = &native.ipam {
                    assert_eq!(remains.data_dir.as_ref(), Some(&ipam.data_dir));
                }
            }
        }
    }
}

/// What kind of configuration it is, without its values.
fn outline(conf: &NetConf) -> String {
    let network = |network: &Network| match &network.backend {
        NetworkBackend::Native(native) => {
            let ipam = native.ipam.as_ref().map(std::mem::discriminant);
            format!(
                "{} {ipam:?} {}",
                native.provider.kind().name,
                native.ips.len().min(2)
            )
        }
        NetworkBackend::Delegate(chain) => {
            format!(
                "{} plugins for {:?}",
                chain.plugins.len().min(3),
                chain.unsupported_key
            )
        }
    };
    let networks: Vec<String> = conf.body.networks().iter().take(4).map(network).collect();
    let (before, list) = (conf.prev_result.is_some(), conf.valid_attachments.is_some());
    format!(
        "{:?} {networks:?} {before} {list} {}",
        conf.version,
        conf.warnings.len()
    )
    .replace('"', "'")
}

#[test]
fn result() {
    target("result", Kind::Json)
        .words(WORDS)
        .inputs(300)
        .run(|input| {
            let Ok(value) = serde_json::from_slice::<Value>(input) else {
                return String::new();
            };
            match Outcome::from_value(&value) {
                Ok(outcome) => {
                    sized(&format!("{outcome:?}"), input);
                    written(&outcome);
                    let Outcome {
                        interfaces,
                        ips,
                        routes,
                        dns,
                    } = &outcome;
                    let some = |count: usize| ["none", "one", "many"][count.min(2)];
                    let lists = [interfaces.len(), ips.len(), routes.len()].map(some);
                    format!("{lists:?} {}", dns.is_empty()).replace('"', "'")
                }
                Err(error) => failed(&error),
            }
        });
}

/// In each version the result can be written and read; in the newest nothing is lost.
fn written(outcome: &Outcome) {
    for version in Version::ALL {
        let text = outcome.to_json(version);
        let value: Value = serde_json::from_str(&text).unwrap();
        let read = Outcome::from_value(&value).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read.to_json(version), text, "written differently");
        if version == Version::V1_1_0 {
            assert_eq!(&read, outcome);
        }
    }
}

#[test]
fn arguments() {
    const KEYS: &[&str] = &[
        "IP=",
        "MAC=",
        "GATEWAY=",
        "IgnoreUnknown=",
        "K8S_POD_NAME=",
        "K8S_POD_UID=",
        "K8S_POD_NAMESPACE=",
        ";",
        "=",
        ",",
        "10.0.0.5/24",
        "fd00::5",
        "02:00:00:00:00:01",
        "1",
        "true",
    ];
    target("arguments", Kind::Bytes)
        .words(KEYS)
        .inputs(800)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            match Args::parse(&text) {
                Ok(args) => {
                    sized(&format!("{args:?}"), input);
                    assert!(text.is_empty() || text.contains('='));
                    let Args {
                        ips,
                        gateways,
                        mac,
                        others,
                        ..
                    } = args;
                    format!(
                        "{} {} {} {}",
                        !ips.is_empty(),
                        !gateways.is_empty(),
                        mac.is_some(),
                        others.len().min(2)
                    )
                }
                Err(error) => failed(&error),
            }
        });
}
