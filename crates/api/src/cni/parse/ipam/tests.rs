//! The `ipam` section: what is understood, what is refused, and with which words.

use crate::cni::{Args, Code, Ipam, NetConf, NetworkBackend, Range};
use serde_json::{Value, json};

fn parse_with(ipam: &Value, extra: &Value, args: &str) -> Result<Option<Ipam>, String> {
    let mut conf = json!({"cniVersion": "1.1.0", "name": "n", "type": "plexus-cni",
        "provider": "bridge", "ipam": ipam});
    for (key, value) in extra.as_object().unwrap() {
        conf[key] = value.clone();
    }
    let args = Args::parse(args).unwrap();
    let conf = NetConf::parse(conf.to_string().as_bytes(), &args).map_err(|error| {
        assert!(
            matches!(error.code, Code::InvalidConfig | Code::UnsupportedField),
            "{error}"
        );
        error.msg
    })?;
    match &conf.body.networks()[0].backend {
        NetworkBackend::Native(native) => Ok(native.ipam.clone()),
        NetworkBackend::Delegate(chain) => panic!("{chain:?}"),
    }
}

fn parse(ipam: &Value) -> Result<Option<Ipam>, String> {
    parse_with(ipam, &json!({}), "")
}

fn ranges(ipam: &Value) -> Vec<Vec<String>> {
    let Some(Ipam::HostLocal(found)) = parse(ipam).unwrap() else {
        panic!("not host-local")
    };
    let text = |r: &Range| format!("{} {}-{} gw {}", r.subnet, r.start, r.end, r.gateway);
    found
        .ranges
        .iter()
        .map(|set| set.iter().map(text).collect())
        .collect()
}

fn refused(table: &[(Value, &str)]) {
    for (ipam, cause) in table {
        let error = parse(ipam).expect_err(&ipam.to_string());
        assert!(
            error.contains(cause),
            "{ipam}\nwanted {cause:?}\ngot    {error}"
        );
    }
}

#[test]
fn host_local_is_completed_as_the_plugin_does() {
    let hl = |rest: Value| {
        let mut ipam = rest;
        ipam["type"] = json!("host-local");
        ranges(&ipam)
    };
    let v4 = "10.1.2.0/24 10.1.2.1-10.1.2.254 gw 10.1.2.1";
    assert_eq!(hl(json!({"subnet": "10.1.2.0/24"})), [[v4]]);
    assert_eq!(hl(json!({"ranges": [[{"subnet": "10.1.2.0/24"}]]})), [[v4]]);
    let v6 = "fd00:1::/64 fd00:1::1-fd00:1::ffff:ffff:ffff:ffff gw fd00:1::1";
    let both = json!({"subnet": "10.1.2.0/24", "ranges": [[{"subnet": "fd00:1::/64"}]]});
    assert_eq!(hl(both), [[v4], [v6]]);
    let given = json!({"ranges": [[
        {"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.0", "rangeEnd": "10.0.0.9",
         "gateway": "10.9.9.9"},
        {"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.10", "rangeEnd": "10.0.0.255",
         "gateway": ""},
    ]]});
    let expected = [[
        "10.0.0.0/24 10.0.0.0-10.0.0.9 gw 10.9.9.9",
        "10.0.0.0/24 10.0.0.10-10.0.0.255 gw 10.0.0.1",
    ]];
    assert_eq!(hl(given), expected);
    let smallest = json!({"subnet": "10.0.0.0/30"});
    assert_eq!(
        hl(smallest),
        [["10.0.0.0/30 10.0.0.1-10.0.0.2 gw 10.0.0.1"]]
    );
}

#[test]
fn host_local_paths_and_routes() {
    let ipam = json!({"type": "host-local", "subnet": "10.0.0.0/24", "dataDir": "/run/x",
        "resolvConf": "/etc/resolv.conf", "routes": [{"dst": "0.0.0.0/0"},
        {"dst": "10.9.0.0/16", "gw": "10.0.0.254", "mtu": 1400, "advmss": 1300, "priority": 50,
         "table": 100, "scope": 253}, {"dst": "::/0", "gw": "", "mtu": 0}]});
    let Some(Ipam::HostLocal(found)) = parse(&ipam).unwrap() else {
        panic!("not host-local")
    };
    assert_eq!(found.data_dir.to_str(), Some("/run/x"));
    assert_eq!(
        found.resolv_conf.unwrap().to_str(),
        Some("/etc/resolv.conf")
    );
    assert_eq!(found.routes.len(), 3);
    assert_eq!(found.routes[1].table, Some(100));
    assert_eq!((found.routes[2].gw, found.routes[2].mtu), (None, None));
    let plain = json!({"type": "host-local", "subnet": "10.0.0.0/24"});
    let Some(Ipam::HostLocal(found)) = parse(&plain).unwrap() else {
        panic!("not host-local")
    };
    assert_eq!(found.data_dir.to_str(), Some("/var/lib/cni/networks"));
}

#[test]
fn host_local_refuses_what_the_plugin_refuses() {
    let hl = |key: &str, value: Value| json!({"type": "host-local", key: value});
    let set = |ranges: Value| hl("ranges", ranges);
    let route =
        |route: Value| json!({"type": "host-local", "subnet": "10.0.0.0/24", "routes": [route]});
    refused(&[
        (json!({"type": "host-local"}), "ipam.ranges: is missing"),
        (set(json!([])), "ipam.ranges: is empty"),
        (set(json!([[]])), "ipam.ranges[0]: is empty"),
        (set(json!({})), "ipam.ranges: must be a list"),
        (
            set(json!([{"subnet": "10.0.0.0/24"}])),
            "ipam.ranges[0]: must be a list",
        ),
        (
            set(json!([["10.0.0.0/24"]])),
            "ipam.ranges[0][0]: must be an object",
        ),
        (set(json!([[{}]])), "ipam.ranges[0][0].subnet: is missing"),
        (
            set(json!([[{"subnet": "bad"}]])),
            "ipam.ranges[0][0].subnet: \"bad\"",
        ),
        (
            set(json!([[{"subnet": "10.0.0.0/24", "x": 1}]])),
            "ipam.ranges[0][0].x: is not a known",
        ),
        (
            hl("subnet", json!("10.0.0.1/24")),
            "host bits set: write 10.0.0.0/24",
        ),
        (
            hl("subnet", json!("10.0.0.0/31")),
            "10.0.0.0/31 is too small",
        ),
        (hl("subnet", json!("fd00::/127")), "too small"),
        (
            hl("subnet", json!("::ffff:10.0.0.0/120")),
            "write it as IPv4",
        ),
        (
            hl("rangeStart", json!("10.0.0.1")),
            "ipam.rangeStart: has no \"subnet\"",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"}),
            "10.0.1.1 is not in 10.0.0.0/24",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "rangeEnd": "fd00::1"}),
            "ipam.rangeEnd: fd00::1 is not in",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9",
                "rangeEnd": "10.0.0.8"}),
            "ipam.rangeStart: 10.0.0.9 comes after",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "gateway": "fd00::1"}),
            "ipam.gateway: fd00::1 is not of the family",
        ),
        (
            set(json!([[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]])),
            "mixes IPv4 and IPv6",
        ),
        (
            set(json!([[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.0.0/25"}]])),
            "overlap",
        ),
        (
            set(json!([[{"subnet": "10.0.0.0/24"}], [{"subnet": "10.0.0.128/25"}]])),
            "overlap",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "dataDir": "var"}),
            "ipam.dataDir: \"var\" is not a usable path",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "dataDir": "/a/../b"}),
            "ipam.dataDir",
        ),
        (
            json!({"type": "host-local", "subnet": "10.0.0.0/24", "resolvConf": "x"}),
            "ipam.resolvConf",
        ),
        (
            route(json!({"dst": "10.3.4.5"})),
            "ipam.routes[0].dst: \"10.3.4.5\"",
        ),
        (route(json!({"dst": "10.3.4.5/24"})), "write 10.3.4.0/24"),
        (
            route(json!({"gw": "10.0.0.1"})),
            "ipam.routes[0].dst: is missing",
        ),
        (
            route(json!({"dst": "0.0.0.0/0", "gw": "fd00::1"})),
            "ipam.routes[0].gw",
        ),
        (
            route(json!({"dst": "0.0.0.0/0", "scope": 256})),
            "ipam.routes[0].scope: is 256",
        ),
        (
            route(json!({"dst": "0.0.0.0/0", "table": -1})),
            "ipam.routes[0].table",
        ),
        (
            route(json!({"dst": "0.0.0.0/0", "metric": 1})),
            "ipam.routes[0].metric: is not a known",
        ),
    ]);
}

#[test]
fn many_ranges_are_no_attack() {
    let range = |i: usize| json!({"subnet": format!("10.{}.{}.0/24", i / 256 % 256, i % 256)});
    let set: Vec<Value> = (0..20_000).map(range).collect();
    parse(&json!({"type": "host-local", "ranges": [set]})).unwrap();
}

fn statics(ipam: &Value, extra: &Value, args: &str) -> Vec<String> {
    let Some(Ipam::Static(found)) = parse_with(ipam, extra, args).unwrap() else {
        panic!()
    };
    let text = |gateway: std::net::IpAddr| gateway.to_string();
    let each = found.addresses.iter();
    each.map(|a| format!("{} {}", a.address, a.gateway.map_or("-".into(), text)))
        .collect()
}

#[test]
fn static_addresses_come_from_where_the_plugin_takes_them() {
    let ipam = json!({"type": "static", "addresses": [
        {"address": "10.0.0.5/24", "gateway": "10.9.9.9"}, {"address": "fd00::5/64"}],
        "dns": {"nameservers": ["1.1.1.1"]}});
    let none = json!({});
    assert_eq!(
        statics(&ipam, &none, ""),
        ["10.0.0.5/24 10.9.9.9", "fd00::5/64 -"]
    );
    let env = "IP=10.0.1.7/24,10.0.2.7/24;GATEWAY=10.0.1.1";
    let expected = [
        "10.0.0.5/24 10.9.9.9",
        "fd00::5/64 -",
        "10.0.1.7/24 10.0.1.1",
        "10.0.2.7/24 -",
    ];
    assert_eq!(statics(&ipam, &none, env), expected);
    let args = json!({"args": {"cni": {"ips": ["10.0.3.7/24"]}}});
    assert_eq!(statics(&ipam, &args, env), ["10.0.3.7/24 -"]);
    let both = json!({"args": {"cni": {"ips": ["10.0.3.7/24"]}},
        "runtimeConfig": {"IPs": ["10.0.4.7/24"]}});
    assert_eq!(statics(&ipam, &both, env), ["10.0.4.7/24 -"]);
    assert_eq!(
        statics(&json!({"type": "static"}), &none, ""),
        Vec::<String>::new()
    );
}

/// What a delegating plugin passes on from a pod's annotation is no more than what the annotation may ask.
#[test]
fn static_gives_a_pod_only_what_the_network_offers() {
    let ipam = json!({"type": "static", "addresses": [{"address": "10.0.0.5/24"}]});
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web";
    let args = |ip: &str| json!({"args": {"cni": {"ips": [ip]}}});
    let declared =
        |ip: &str| json!({"args": {"cni": {"ips": [ip]}}, "capabilities": {"ips": true}});
    let refused = |extra: Value| parse_with(&ipam, &extra, pod).unwrap_err();
    assert!(refused(args("10.0.0.7/24")).contains("capabilities.ips"));
    let other_case = json!({"args": {"cni": {"IPS": ["10.0.0.7/24"]}}});
    assert!(refused(other_case).contains("capabilities.ips"));
    assert!(refused(declared("10.0.3.7/24")).contains("in the subnet of none"));
    assert_eq!(
        statics(&ipam, &declared("10.0.0.7/24"), pod),
        ["10.0.0.7/24 -"]
    );
    // Whoever is no pod is the machine's administrator.
    for who in ["", "IgnoreUnknown=1;K8S_POD_NAME=web"] {
        assert_eq!(statics(&ipam, &args("10.0.3.7/24"), who), ["10.0.3.7/24 -"]);
    }
}

#[test]
fn static_refuses() {
    let one = |address: Value| json!({"type": "static", "addresses": [address]});
    refused(&[
        (
            one(json!({"address": "10.0.0.5"})),
            "ipam.addresses[0].address: \"10.0.0.5\"",
        ),
        (one(json!({})), "ipam.addresses[0].address: is missing"),
        (
            one(json!({"address": "0.0.0.0/24"})),
            "no address that an interface can have",
        ),
        (
            one(json!({"address": "10.0.0.5/24", "gateway": "zz"})),
            "ipam.addresses[0].gateway",
        ),
        (
            one(json!({"address": "10.0.0.5/24", "gateway": "fd00::1"})),
            "not of the family",
        ),
        (
            one(json!({"address": "10.0.0.5/24", "version": "4"})),
            "ipam.addresses[0].version",
        ),
        (
            json!({"type": "static", "addresses": "10.0.0.5/24"}),
            "ipam.addresses: must be a list",
        ),
        (
            json!({"type": "static",
                "addresses": [{"address": "10.0.0.5/24"}, {"address": "10.0.0.5/16"}]}),
            "10.0.0.5 occurs twice",
        ),
    ]);
    let empty = json!({"type": "static"});
    let error = parse_with(&empty, &json!({"runtimeConfig": {"ips": ["10.0.0.1"]}}), "");
    assert!(error.unwrap_err().contains("needs a prefix length"));
    let error = parse_with(&empty, &json!({}), "IP=10.0.0.7/24;GATEWAY=10.0.9.1");
    assert!(error.unwrap_err().contains("GATEWAY=10.0.9.1"));
}

#[test]
fn plexus_reads() {
    let ipam = json!({"type": "plexus", "subnets": ["10.244.1.0/24", "fd00:244:1::/64"],
        "exclude": ["10.244.1.7", "10.244.1.128/25", "fd00:244:1::/80"], "gateway": ["10.244.1.2"],
        "routes": [{"dst": "0.0.0.0/0"}]});
    let Some(Ipam::Plexus(found)) = parse(&ipam).unwrap() else {
        panic!("not plexus")
    };
    let text = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(text(&found.subnets), ["10.244.1.0/24", "fd00:244:1::/64"]);
    assert_eq!(
        text(&found.exclude),
        ["10.244.1.7/32", "10.244.1.128/25", "fd00:244:1::/80"]
    );
    for subnet in [
        "10.0.0.0/30",
        "10.0.0.0/31",
        "10.0.0.1/32",
        "fd00::/127",
        "::/0",
    ] {
        assert!(
            parse(&json!({"type": "plexus", "subnets": [subnet]})).is_ok(),
            "{subnet}"
        );
    }
}

#[test]
fn plexus_refuses() {
    let plain = |key: &str, value: Value| {
        let mut ipam = json!({"type": "plexus", "subnets": ["10.0.0.0/24"]});
        ipam[key] = value;
        ipam
    };
    let many: Vec<String> = (0..65).map(|i| format!("10.{i}.0.0/16")).collect();
    let excludes: Vec<String> = (0..5000)
        .map(|i| format!("10.0.{}.{}", i / 256, i % 256))
        .collect();
    refused(&[
        (json!({"type": "plexus"}), "ipam.subnets: is missing"),
        (plain("subnets", json!([])), "ipam.subnets: is empty"),
        (
            plain("subnets", json!("10.0.0.0/24")),
            "ipam.subnets: must be a list",
        ),
        (
            plain("subnets", json!(["10.0.0.0"])),
            "ipam.subnets[0]: \"10.0.0.0\"",
        ),
        (
            plain("subnets", json!(["10.0.0.0/24", "x"])),
            "ipam.subnets[1]: \"x\"",
        ),
        (
            plain("subnets", json!(["10.0.0.1/24"])),
            "10.0.0.1/24 has host bits set: write 10.0.0.0",
        ),
        (
            plain("subnets", json!(["10.0.0.0/24", "10.0.0.0/16"])),
            "overlap: keep one",
        ),
        (plain("subnets", json!(many)), "has 65 elements"),
        (
            plain("exclude", json!("10.0.0.1")),
            "ipam.exclude: must be a list",
        ),
        (
            plain("exclude", json!([7])),
            "ipam.exclude[0]: must be a string",
        ),
        (plain("exclude", json!(["10.0.0.0/33"])), "ipam.exclude[0]"),
        (
            plain("exclude", json!(["10.0.1.0/28"])),
            "10.0.1.0/28 is in no subnet",
        ),
        (
            plain("exclude", json!(["10.0.0.0/16"])),
            "10.0.0.0/16 is in no subnet",
        ),
        (
            plain("exclude", json!(["fd00::1"])),
            "fd00::1/128 is in no subnet",
        ),
        (
            plain("exclude", json!(["10.0.0.1/28"])),
            "host bits set: write 10.0.0.0/28",
        ),
        (
            plain("exclude", json!(["10.0.0.0/28", "10.0.0.8/29"])),
            "10.0.0.0/28 and 10.0.0.8/29 overlap",
        ),
        (plain("exclude", json!(["10.0.0.7", "10.0.0.7"])), "overlap"),
        (
            plain("exclude", json!(["10.0.0.0/24"])),
            "no address to hand out",
        ),
        (
            plain(
                "exclude",
                json!([
                    "10.0.0.2/31",
                    "10.0.0.4/30",
                    "10.0.0.8/29",
                    "10.0.0.16/28",
                    "10.0.0.32/27",
                    "10.0.0.64/26",
                    "10.0.0.128/25"
                ]),
            ),
            "no address to hand out",
        ),
        (plain("exclude", json!(excludes)), "has 5000 elements"),
        (
            plain("gateway", json!("10.0.0.1")),
            "ipam.gateway: must be a list",
        ),
        (
            plain("gateway", json!(["10.0.1.1"])),
            "10.0.1.1 is in no subnet",
        ),
        (
            plain("gateway", json!(["10.0.0.0"])),
            "network or broadcast address",
        ),
        (
            plain("gateway", json!(["10.0.0.255"])),
            "network or broadcast address",
        ),
        (
            plain("gateway", json!(["10.0.0.1", "10.0.0.2"])),
            "both in 10.0.0.0/24",
        ),
        (
            plain("subnet", json!("10.0.0.0/24")),
            "did you mean \"subnets\"?",
        ),
        (
            json!({"type": "plexus", "subnets": ["10.0.0.1/32"], "gateway": ["10.0.0.1"]}),
            "no address to hand out",
        ),
    ]);
}

#[test]
fn kinds_of_ipam() {
    assert_eq!(parse(&json!({})).unwrap(), None);
    assert_eq!(parse(&json!({"type": ""})).unwrap(), None);
    assert_eq!(parse(&Value::Null).unwrap(), None);
    refused(&[
        (json!({"subnet": "10.0.0.0/24"}), "ipam.type: is missing"),
        (
            json!({"type": "dhcp"}),
            "ipam.type: \"dhcp\" is not native: write host-local, static or plexus",
        ),
        (
            json!({"type": "hostlocal"}),
            "ipam.type: \"hostlocal\" is not native: did you mean \"host-local\"?",
        ),
        (json!({"type": 5}), "ipam.type: must be a string, not 5"),
        (json!([]), "ipam: must be an object"),
        (json!("host-local"), "ipam: must be an object"),
    ]);
}
