//! Two nodes and an outside on one wire, with routers of overlay networks on both.

use crate::lab::{Pod, ifname, net, plan, routed};
use plexus_core::fabric::{Remote, vtep_mac};
use plexus_core::plan::{LinkKind, NodePlan, PodPlan, Router, diff_host_ends, diff_pod};
use plexus_kernel::{Netns, NodeSide, nft, node, pod, router};
use plexus_testkit::NetNs;
use plexus_types::RouterName;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A wire with an outside (192.0.2.1, 2001:db8::1) and nodes.
pub(crate) struct Fabric {
    pub(crate) outside: NetNs,
    pub(crate) nodes: Vec<FabricNode>,
}

pub(crate) struct FabricNode {
    pub(crate) name: String,
    pub(crate) ns: NetNs,
    pub(crate) side: NodeSide,
    pub(crate) address: &'static str,
    pub(crate) addresses: [IpAddr; 2],
    pub(crate) dir: PathBuf,
}

impl Fabric {
    pub(crate) fn new() -> Self {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let prefix = format!("px-test-{}-f{number}", std::process::id());
        let outside = NetNs::create(&format!("{prefix}-out"));
        outside.ip(
            "link set lo up\nlink add wire type bridge\naddress add 192.0.2.1/24 dev wire\n\
             address add 2001:db8::1/64 dev wire nodad\nlink set wire up\n",
        );
        let addresses = [
            ("192.0.2.11", "2001:db8::11"),
            ("192.0.2.12", "2001:db8::12"),
        ];
        let nodes = addresses
            .into_iter()
            .enumerate()
            .map(|(i, (v4, v6))| FabricNode::new(&prefix, i, &outside, v4, v6))
            .collect();
        let fabric = Self { outside, nodes };
        for node in &fabric.nodes {
            nft::guard::ensure_tunnels(&node.side).unwrap();
            nft::guard::set_peers(&node.side, &fabric.peers()).unwrap();
        }
        fabric
    }

    /// The addresses of the nodes.
    pub(crate) fn peers(&self) -> Vec<IpAddr> {
        self.nodes.iter().flat_map(|node| node.addresses).collect()
    }

    /// Makes a router of the network on every node, each knowing the others' blocks.
    pub(crate) fn network(&self, network: &Network) {
        for node in &self.nodes {
            let router = network.router(node);
            node.ensure(&router);
            let remotes = network.remotes(self, node);
            router::set_remotes(&node.side, &router, &remotes, &[]).unwrap();
        }
    }
}

impl FabricNode {
    fn new(prefix: &str, i: usize, outside: &NetNs, v4: &'static str, v6: &str) -> Self {
        let name = format!("{prefix}-n{i}");
        let ns = NetNs::create(&name);
        ns.ip(&format!(
            "link set lo up\nlink add eth0 type veth peer name w{i} netns {}\n\
             address add {v4}/24 dev eth0\naddress add {v6}/64 dev eth0 nodad\nlink set eth0 up\n\
             route add default via 192.0.2.1\n",
            outside.name()
        ));
        ns.sh("ip -6 route add default via 2001:db8::1 dev eth0");
        ns.sh("cd /proc/sys/net; echo 0 >ipv4/ip_forward; echo 0 >ipv6/conf/all/forwarding");
        outside.ip(&format!("link set w{i} master wire\nlink set w{i} up\n"));
        let dir = std::env::temp_dir().join(&name).join("routers");
        let side = NodeSide::new(Netns::open(ns.path()).unwrap()).with_routers(&dir);
        Self {
            name,
            ns,
            side,
            address: v4,
            addresses: [v4, v6].map(|address| address.parse().unwrap()),
            dir,
        }
    }

    pub(crate) fn ensure(&self, router: &Router) -> Vec<String> {
        let wanted = NodePlan {
            routers: vec![router.clone()],
            ..NodePlan::default()
        };
        node::ensure(&wanted, &self.side)
            .unwrap_or_else(|error| panic!("{}", chain(&error)))
            .changes
    }

    pub(crate) fn pod(&self, name: &str) -> Pod {
        let ns = NetNs::create(&format!("{}-{name}", self.name));
        let netns = Netns::open(ns.path()).unwrap();
        Pod { ns, netns }
    }

    /// A pod of the network with these addresses.
    pub(crate) fn pod_of(
        &self,
        network: &Network,
        name: &str,
        addresses: &[&str],
    ) -> (Pod, PodPlan) {
        let pod = self.pod(name);
        let plan = network.plan(name, addresses);
        let applied = pod::apply(&plan, &pod.netns, &self.side)
            .unwrap_or_else(|error| panic!("{}", chain(&error)));
        assert_eq!(diff_pod(&plan, &applied.pod), []);
        assert_eq!(diff_host_ends(&plan, &applied.node), []);
        (pod, plan)
    }

    /// Runs a script in a router.
    pub(crate) fn in_router(&self, network: &Network, script: &str) -> String {
        let path = self.dir.join(network.name().as_str());
        let path = path.display();
        self.ns
            .sh(&format!("nsenter --net={path} sh -ec '{script}'"))
    }
}

impl Drop for FabricNode {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("PLEXUS_TEST_KEEP").is_some() {
            println!(
                "the routers of {}: nsenter --net={}/…",
                self.name,
                self.dir.display()
            );
            return;
        }
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            unmount(&entry.path());
        }
        let _ = std::fs::remove_dir_all(self.dir.parent().unwrap_or(&self.dir));
    }
}

/// An overlay network: 10.7.0.0/16 and fd00:7::/48 unless changed, a /24 and a /64 per node.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) uid: String,
    pub(crate) vni: u32,
    pub(crate) snat: bool,
    pub(crate) source_check: bool,
    pub(crate) mtu: u32,
}

impl Network {
    pub(crate) fn new(uid: &str, vni: u32) -> Self {
        Self {
            uid: uid.into(),
            vni,
            snat: false,
            source_check: true,
            mtu: 1430,
        }
    }

    pub(crate) fn name(&self) -> RouterName {
        RouterName::of(&self.uid)
    }

    pub(crate) fn router(&self, node: &FabricNode) -> Router {
        self.router_at(node.address, &node.name)
    }

    pub(crate) fn router_at(&self, address: &str, node: &str) -> Router {
        Router {
            name: self.name(),
            uid: self.uid.clone(),
            vni: self.vni,
            local: address.parse().unwrap(),
            mac: vtep_mac(&self.uid, node),
            mtu: self.mtu,
            subnets: vec![net("10.7.0.0/16"), net("fd00:7::/48")],
            gateways: vec![
                "10.7.255.254".parse().unwrap(),
                "fd00:7:0:ffff::fffe".parse().unwrap(),
            ],
            snat: self.snat,
            source_check: self.source_check,
        }
    }

    pub(crate) fn remotes(&self, fabric: &Fabric, here: &FabricNode) -> Vec<Remote> {
        let others = fabric.nodes.iter().enumerate();
        others
            .filter(|(_, node)| node.name != here.name)
            .map(|(i, node)| Remote {
                node: node.name.clone(),
                underlay: node.address.parse().unwrap(),
                mac: vtep_mac(&self.uid, &node.name),
                blocks: vec![
                    net(&format!("10.7.{i}.0/24")),
                    net(&format!("fd00:7:0:{i}::/64")),
                ],
            })
            .collect()
    }

    pub(crate) fn plan(&self, name: &str, addresses: &[&str]) -> PodPlan {
        let container = format!("{name}-{}", self.uid);
        let mut link = routed(&container, "eth0", addresses);
        link.mtu = Some(self.mtu);
        let LinkKind::Veth(end) = &mut link.kind else {
            panic!("routed has a host end")
        };
        end.router = Some(self.name());
        end.mtu = Some(self.mtu);
        end.source_check = self.source_check;
        assert_eq!(link.name, ifname("eth0"));
        let group = 100 + self.vni % 7 + container.bytes().map(u32::from).sum::<u32>();
        plan(group, vec![link])
    }
}

/// Unmounts the routers of test runs that are no more: their directories can be removed then.
fn sweep() {
    let prefix = std::env::temp_dir().join("px-test-");
    let prefix = prefix.to_string_lossy().into_owned();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for path in mounts.lines().filter_map(|line| line.split(' ').nth(4)) {
        let pid = path
            .strip_prefix(&prefix)
            .and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists()) {
            unmount(path.as_ref());
        }
    }
}

fn unmount(path: &std::path::Path) {
    let _ = std::process::Command::new("umount")
        .arg("-l")
        .arg(path)
        .stderr(std::process::Stdio::null())
        .status();
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
