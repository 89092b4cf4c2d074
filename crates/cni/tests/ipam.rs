//! The delegate runner with an IPAM plugin alone: whose binary is executed, what it gets, and which answers it may
//! give.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::bench::{ALL, Bench, FAIL, chain, plugin};
use plexus_api::cni::{Chain, Code, Executable, ValidAttachment, Version};
use serde_json::{Value, json};

const ADDRESS: &str = r#"[ $CNI_COMMAND = ADD ] && echo '{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24","gateway":"10.1.2.1"}],"routes":[{"dst":"10.9.0.0/16"}],"dns":{"nameservers":["10.1.2.2"]}}'; exit 0"#;

fn ipam(version: Version, config: Value) -> Chain {
    Chain {
        executable: Executable::IpamType,
        ..chain(version, json!([config]))
    }
}

fn below_macvlan(name: &str) -> Chain {
    let config = json!({"type": "macvlan", "master": "eth1", "ipam": {"type": name, "range": "10.1.2.0/24"},
        "args": {"cni": {"x": 1}}, "capabilities": {"ips": true}});
    ipam(Version::V1_1_0, config)
}

#[test]
fn only_its_binary_is_executed_with_the_whole_configuration() {
    let mut bench = Bench::new();
    bench.plugin("wide", ADDRESS);
    bench.runtime = json!({"ips": ["10.1.2.3/24"], "mac": "02:00:00:00:00:01"})
        .as_object()
        .unwrap()
        .clone();
    let chain = below_macvlan("wide");
    bench.runner.can_run(&bench.network, &chain).unwrap();
    let outcome = bench.add(&chain, 0, None).unwrap();
    assert_eq!(outcome.ips[0].address.to_string(), "10.1.2.3/24");
    assert_eq!(outcome.routes.len(), 1);
    assert_eq!(outcome.dns.nameservers, ["10.1.2.2"]);
    let expected = json!({"cniVersion": "1.1.0", "name": "blue", "type": "macvlan", "master": "eth1",
        "ipam": {"type": "wide", "range": "10.1.2.0/24"}, "args": {"cni": {"x": 1}},
        "runtimeConfig": {"ips": ["10.1.2.3/24"]}});
    assert_eq!(bench.stdin("ADD.wide"), expected);
    for line in ["CNI_ARGS=A=b", "CNI_IFNAME=eth0", "CNI_NETNS=/run/netns/x"] {
        let env = bench.read("ADD.wide.env");
        assert!(env.lines().any(|l| l == line), "{line} in {env}");
    }

    let steps = bench
        .runner
        .steps(&bench.network, &chain, bench.call(), &bench.runtime);
    assert_eq!(chain.executables().next(), Some("wide"));
    steps.check(&outcome).unwrap();
    assert!(bench.del(&chain, 1, Some(&outcome)).is_empty());
    assert_eq!(bench.status(&chain).unwrap(), Vec::<String>::new());
    let valid = [ValidAttachment {
        container: bench.container.clone(),
        ifname: bench.ifname.clone(),
    }];
    assert!(bench.runner.gc(&bench.network, &chain, &valid).is_empty());
    let order = ["ADD", "CHECK", "DEL", "STATUS", "GC"].map(|verb| format!("{verb}.wide"));
    assert_eq!(bench.order(), order);
    assert_eq!(
        bench.stdin("GC.wide")["cni.dev/valid-attachments"],
        json!([{"containerID": "c1", "ifname": "eth0"}])
    );
}

#[test]
fn its_answer_has_no_interfaces_in_any_version() {
    for version in Version::ALL {
        let bench = Bench::new();
        let family = match version < Version::V1_0_0 {
            true => r#""version":"4","#,
            false => "",
        };
        // The second says what it cannot know.
        for more in [
            "",
            r#","interface":0"#,
            r#","interface":0}],"interfaces":[{"name":"x"}],"y":[{"z":0"#,
        ] {
            let text = format!(
                r#"echo '{{"cniVersion":"{version}","ips":[{{{family}"address":"10.1.2.3/24"{more}}}]}}'"#
            );
            bench.plugin("wide", &text);
            let chain = ipam(version, json!({"type": "x", "ipam": {"type": "wide"}}));
            let outcome = bench.add(&chain, 0, None).unwrap();
            assert_eq!(outcome.ips[0].address.to_string(), "10.1.2.3/24");
            assert_eq!(outcome.ips[0].interface, None, "{version} {more}");
            assert!(outcome.interfaces.is_empty());
        }
    }
}

#[test]
fn an_older_plugin_is_spoken_to_in_its_version() {
    let bench = Bench::new();
    plugin(&bench.dir, "old", r#""0.3.1","0.4.0""#, ADDRESS);
    let outcome = bench.add(&below_macvlan("old"), 0, None).unwrap();
    assert_eq!(outcome.ips.len(), 1);
    assert_eq!(bench.stdin("ADD.old")["cniVersion"], "0.4.0");
    plugin(&bench.dir, "newer", ALL, ADDRESS);
    bench.add(&below_macvlan("newer"), 0, None).unwrap();
    assert_eq!(bench.stdin("ADD.newer")["cniVersion"], "1.1.0");
}

#[test]
fn errors_name_the_ipam_plugin() {
    let bench = Bench::new();
    bench.plugin("macvlan", ADDRESS);
    bench.plugin("wide", FAIL);
    let error = bench.fail(&below_macvlan("wide"));
    assert_eq!(error.code, Code::Delegate(107));
    assert!(
        error
            .msg
            .contains(r#"ADD by IPAM plugin "wide": no such link"#),
        "{error}"
    );
    let missing = below_macvlan("absent");
    let error = bench.runner.can_run(&bench.network, &missing).unwrap_err();
    let error = error.to_cni();
    assert!(
        error
            .msg
            .contains(r#"IPAM plugin "absent": no executable file "absent""#),
        "{error}"
    );
    let error = bench.status(&missing).unwrap_err().to_cni();
    assert!(error.msg.contains("IPAM plugin"), "{error}");
    assert!(!bench.order().iter().any(|line| line.ends_with("macvlan")));
}

#[test]
fn a_name_is_never_a_path_nor_ours() {
    let bench = Bench::new();
    for name in [
        "../bin/wide",
        "/bin/sh",
        "a/b",
        "",
        ".",
        "plexus-cni",
        "multi-nic-ipam",
    ] {
        bench.plugin("wide", ADDRESS);
        bench.plugin("plexus-cni", ADDRESS);
        bench.plugin("multi-nic-ipam", ADDRESS);
        let error = bench.fail(&below_macvlan(name));
        assert_eq!(error.code, Code::InvalidConfig, "{name}: {error}");
    }
    for config in [json!({"type": "macvlan"}), json!({"ipam": {"type": 7}})] {
        let error = bench.fail(&ipam(Version::V1_0_0, config));
        assert!(error.msg.contains("\"ipam.type\""), "{error}");
    }
    assert!(bench.order().is_empty());
}
