//! The configurations, each a pair of calls.

use plexus_testkit::Node;
use serde_json::{Value, json};

pub(crate) const RESOLV_CONF: &str = "# c\nnameserver 192.0.2.53\nnameserver 2001:db8::53\ndomain d.example\nsearch a.example b.example\noptions ndots:2\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Native,
    Delegated,
}

#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) plugin: &'static str,
    pub(crate) options: Value,
    pub(crate) version: &'static str,
    pub(crate) on_node: &'static str,
    pub(crate) in_pod: &'static str,
    pub(crate) args: &'static str,
    pub(crate) mac: bool,
    pub(crate) how: How,
}

impl Pair {
    fn new(name: &'static str, plugin: &'static str, options: Value) -> Self {
        Self {
            name,
            plugin,
            options,
            version: "1.1.0",
            on_node: "",
            in_pod: "",
            args: "",
            mac: false,
            how: How::Native,
        }
    }
    fn delegated(mut self) -> Self {
        self.how = How::Delegated;
        self
    }
    fn mac(mut self) -> Self {
        self.mac = true;
        self
    }
    fn args(mut self, a: &'static str) -> Self {
        self.args = a;
        self
    }
    fn on_node(mut self, a: &'static str) -> Self {
        self.on_node = a;
        self
    }
    fn in_pod(mut self, a: &'static str) -> Self {
        self.in_pod = a;
        self
    }
    fn version(mut self, a: &'static str) -> Self {
        self.version = a;
        self
    }

    pub(crate) fn bridge(&self) -> Option<&str> {
        (self.plugin == "bridge").then(|| self.options["bridge"].as_str().unwrap_or("cni0"))
    }

    pub(crate) fn config(&self, node: &Node) -> Value {
        let mut config = self.options.clone();
        config["cniVersion"] = json!(self.version);
        config["name"] = json!("n1");
        config["type"] = json!(self.plugin);
        let dir = node
            .file("")
            .to_string_lossy()
            .trim_end_matches('/')
            .to_owned();
        serde_json::from_str(&config.to_string().replace("@DIR", &dir)).unwrap()
    }
}

const POOLS: &str = "@DIR/pools";

fn v4() -> Value {
    json!([{"subnet": "10.1.2.0/24"}])
}
fn v6() -> Value {
    json!([{"subnet": "fd00:1::/64"}])
}
fn hl(ranges: Value) -> Value {
    json!({"type": "host-local", "dataDir": POOLS, "ranges": ranges})
}
fn hl_routes(ranges: Value, routes: Value) -> Value {
    json!({"type": "host-local", "dataDir": POOLS, "ranges": ranges, "routes": routes})
}

pub(crate) fn all() -> Vec<Pair> {
    let mut all = macvlan();
    all.extend(bridge());
    all.extend(delegated());
    all
}

fn macvlan() -> Vec<Pair> {
    let p = |name, options| Pair::new(name, "macvlan", options);
    vec![
        p("macvlan v4 routes", json!({"master":"eth1","mode":"bridge","ipam":hl_routes(json!([v4()]), json!([
            {"dst":"0.0.0.0/0"},
            {"dst":"10.5.0.0/16","gw":"10.1.2.254","mtu":1400,"advmss":1300,"priority":50,"table":100},
            {"dst":"10.6.0.0/16","gw":"0.0.0.0","scope":253}]))})),
        p("macvlan dual private", json!({"master":"eth1","mode":"private","mtu":1400,"mac":"02:00:00:00:00:01","bcqueuelen":77,
            "dns":{"nameservers":["192.0.2.54"],"domain":"x.y","search":["x.y"],"options":["ndots:5"]},
            "ipam":hl_routes(json!([v4(),v6()]), json!([{"dst":"0.0.0.0/0"},{"dst":"::/0"},{"dst":"fd00:5::/64","table":300,"priority":30},{"dst":"fd00:6::/64","gw":"::"}]))})).mac(),
        p("macvlan L2 vepa", json!({"master":"eth1","mode":"vepa"})),
        p("macvlan passthru static", json!({"master":"eth1","mode":"passthru","ipam":{"type":"static","addresses":[{"address":"10.1.2.9/24","gateway":"10.1.2.1"},{"address":"fd00:1::9/64","gateway":"fd00:1::1"}],
            "routes":[{"dst":"10.9.0.0/16"}],"dns":{"nameservers":["192.0.2.55"],"domain":"z","search":["z"],"options":["a"]}}})),
        p("macvlan default master, legacy range", json!({"ipam":{"type":"host-local","dataDir":POOLS,"subnet":"10.1.2.0/24","rangeStart":"10.1.2.50","rangeEnd":"10.1.2.60","gateway":"10.1.2.77"}})),
        p("macvlan ranges", json!({"master":"eth1","ipam":{"type":"host-local","dataDir":POOLS,"resolvConf":"@DIR/resolv.conf","ranges":[[{"subnet":"10.1.2.0/24","rangeStart":"10.1.2.50","rangeEnd":"10.1.2.60","gateway":"10.1.2.77"}]]}})),
        p("macvlan runtime mac and ips", json!({"master":"eth1","mac":"02:00:00:00:00:01","capabilities":{"mac":true,"ips":true},"runtimeConfig":{"mac":"02:00:00:00:00:07","ips":["10.1.2.40/24","fd00:1::40/64"]},"ipam":hl(json!([v4(),v6()]))})).mac(),
        p("macvlan CNI_ARGS MAC IP", json!({"master":"eth1","mac":"02:00:00:00:00:01","ipam":hl(json!([v4()]))})).mac().args("IgnoreUnknown=1;MAC=02:00:00:00:00:08;IP=10.1.2.41"),
        p("macvlan args.cni.ips", json!({"master":"eth1","args":{"cni":{"ips":["10.1.2.42"]}},"ipam":hl(json!([v4()]))})),
        p("macvlan static CNI_ARGS", json!({"master":"eth1","ipam":{"type":"static","addresses":[{"address":"10.1.2.9/24","gateway":"10.1.2.1"}]}})).args("IgnoreUnknown=1;IP=10.3.0.4/16;GATEWAY=10.3.0.1"),
        p("macvlan static args", json!({"master":"eth1","args":{"cni":{"ips":["10.3.0.5/16"]}},"ipam":{"type":"static","addresses":[{"address":"10.1.2.9/24","gateway":"10.1.2.1"}]}})),
        p("macvlan static runtime", json!({"master":"eth1","capabilities":{"ips":true},"runtimeConfig":{"ips":["10.3.0.6/16"]},"ipam":{"type":"static"}})),
        p("macvlan 0.3.1", json!({"master":"eth1","ipam":hl(json!([v4()]))})).version("0.3.1"),
        p("macvlan 0.4.0", json!({"master":"eth1","ipam":hl(json!([v4()]))})).version("0.4.0"),
        p("macvlan 1.0.0", json!({"master":"eth1","ipam":hl(json!([v4()]))})).version("1.0.0"),
        p("macvlan 0.3.1 L2", json!({"master":"eth1"})).version("0.3.1"),
    ]
}

fn bridge() -> Vec<Pair> {
    let p = |name, options| Pair::new(name, "bridge", options);
    vec![
        p("bridge gateway mtu", json!({"bridge":"br0","isGateway":true,"mtu":1400,"ipam":hl_routes(json!([v4()]), json!([{"dst":"10.5.0.0/16"}]))})),
        p("bridge default gateway masq hairpin", json!({"bridge":"br0","isDefaultGateway":true,"ipMasq":true,"hairpinMode":true,"ipam":hl(json!([v4()]))})),
        p("bridge dual promisc masq", json!({"bridge":"br0","isDefaultGateway":true,"ipMasq":true,"promiscMode":true,"ipam":hl(json!([v4(),v6()]))})),
        p("bridge cni0", json!({"preserveDefaultVlan":true,"ipam":hl(json!([v4()]))})),
        p("bridge existing forceAddress", json!({"bridge":"br0","isGateway":true,"forceAddress":true,"ipam":hl(json!([v4(),v6()]))}))
            .on_node("ip link add br0 address 02:00:00:00:00:aa type bridge; ip address add 10.8.0.1/24 dev br0; ip address add fd00:8::1/64 dev br0 nodad; ip address add fd00:1::7/64 dev br0 nodad; ip link set br0 up"),
        p("bridge existing same address", json!({"bridge":"br0","isGateway":true,"ipam":hl(json!([v4()]))}))
            .on_node("ip link add br0 address 02:00:00:00:00:aa mtu 1300 type bridge; ip address add 10.1.2.1/24 dev br0; ip link set br0 up"),
        p("bridge existing other address refused", json!({"bridge":"br0","isGateway":true,"ipam":hl(json!([v4()]))}))
            .on_node("ip link add br0 address 02:00:00:00:00:aa type bridge; ip address add 10.8.0.1/24 dev br0; ip link set br0 up"),
        p("bridge L2", json!({"bridge":"br0"})),
        p("bridge args.cni.mac", json!({"bridge":"br0","args":{"cni":{"mac":"02:00:00:00:00:09"}},"ipam":hl(json!([v4()]))})).mac(),
        p("bridge runtime mac", json!({"bridge":"br0","args":{"cni":{"mac":"02:00:00:00:00:09"}},"capabilities":{"mac":true},"runtimeConfig":{"mac":"02:00:00:00:00:0a"},"ipam":hl(json!([v4()]))})).mac(),
        p("bridge CNI_ARGS MAC", json!({"bridge":"br0","ipam":hl(json!([v4()]))})).mac().args("IgnoreUnknown=1;MAC=02:00:00:00:00:0b"),
        p("bridge dns", json!({"bridge":"br0","dns":{"nameservers":["192.0.2.54"]},"ipam":{"type":"host-local","dataDir":POOLS,"resolvConf":"@DIR/resolv.conf","ranges":[v4()]}})),
        p("bridge resolvConf", json!({"bridge":"br0","ipam":{"type":"host-local","dataDir":POOLS,"resolvConf":"@DIR/resolv.conf","ranges":[v4()]}})),
        p("bridge static no gateway", json!({"bridge":"br0","isDefaultGateway":true,"ipam":{"type":"static","addresses":[{"address":"10.1.2.9/24"},{"address":"fd00:1::9/64"}],"dns":{"nameservers":["192.0.2.55"]}}})),
        p("bridge 0.4.0", json!({"bridge":"br0","isGateway":true,"ipam":hl(json!([v4(), v6()]))})).version("0.4.0"),
        p("bridge 0.3.1 L2", json!({"bridge":"br0"})).version("0.3.1"),
        p("bridge 1.0.0 v6 only", json!({"bridge":"br0","isDefaultGateway":true,"ipMasq":true,"ipam":hl(json!([v6()]))})).version("1.0.0"),
    ]
}

fn delegated() -> Vec<Pair> {
    let b = |name, options| Pair::new(name, "bridge", options).delegated();
    vec![
        b("vlan", json!({"bridge":"br0","vlan":100,"ipam":hl(json!([v4()]))})),
        b("vlanTrunk", json!({"bridge":"br0","vlanTrunk":[{"minID":5,"maxID":7},{"id":9}],"ipam":hl(json!([v4()]))})),
        b("ipMasqBackend nft", json!({"bridge":"br0","isDefaultGateway":true,"ipMasq":true,"ipMasqBackend":"nftables","ipam":hl(json!([v4()]))})),
        b("ipMasqBackend ipt", json!({"bridge":"br0","isDefaultGateway":true,"ipMasq":true,"ipMasqBackend":"iptables","ipam":hl(json!([v4()]))})),
        b("macspoofchk", json!({"bridge":"br0","macspoofchk":true,"ipam":hl(json!([v4()]))})),
        b("enabledad", json!({"bridge":"br0","enabledad":true,"ipam":hl(json!([v6()]))})),
        b("disableContainerInterface", json!({"bridge":"br0","disableContainerInterface":true})),
        b("portIsolation", json!({"bridge":"br0","portIsolation":true,"ipam":hl(json!([v4()]))})),
        b("ipRanges", json!({"bridge":"br0","capabilities":{"ipRanges":true},"runtimeConfig":{"ipRanges":[[{"subnet":"10.1.3.0/24"}]]},"ipam":hl(json!([v4()]))})),
        Pair::new("linkInContainer", "macvlan", json!({"master":"inner0","linkInContainer":true,"ipam":hl(json!([v4()]))})).delegated().in_pod("ip link add inner0 type veth peer name inner1; ip link set inner0 up; ip link set inner1 up"),
    ]
}
