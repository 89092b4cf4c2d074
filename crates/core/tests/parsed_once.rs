//! An object is read when a pod first refers to it; later pods take what was read then.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]
#![allow(dead_code, reason = "the cluster has more than is asked here")]

mod cluster;

use cluster::{Case, answered};
use plexus_api::cni::{Error, Ipam, NetworkBackend};
use plexus_core::resolve::{
    MultiNicObject, NadObject, NetworkObject, Objects, PodFacts, PodNetworks, pod_networks,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cluster of one NAD and one Network, the same at every look.
struct Cluster {
    nad: Arc<NadObject>,
    network: Arc<NetworkObject>,
}

impl Cluster {
    fn new() -> Self {
        let case = Case(json!({
            "nads": {"default/red": {"config": {"type": "macvlan", "master": "eth1",
                "capabilities": {"ips": true}, "ipam": {"type": "host-local", "subnet": "10.1.0.0/16"}}}},
            "networks": {"default/blue": {"vni": 4097, "spec": {"subnets": {"a": {"cidr": "10.2.0.0/16"}}}}},
        }));
        Self {
            nad: case.nad("default", "red").unwrap(),
            network: case.network("default", "blue").unwrap(),
        }
    }

    fn resolve(&self, annotation: &str, text: &str) -> Result<PodNetworks, Error> {
        let case = Case(json!({}));
        let pod = PodFacts {
            annotations: BTreeMap::from([(annotation.to_owned(), text.to_owned())]),
            ..case.pod()
        };
        let first = case.first();
        pod_networks(&pod, first, &Default::default(), &case.settings(), self)
            .map_err(|error| answered(&error))
    }

    fn on_red(&self, keys: &str) -> Result<PodNetworks, Error> {
        let text = format!("[{{\"name\": \"red\"{keys}}}]");
        self.resolve("k8s.v1.cni.cncf.io/networks", &text)
    }

    fn on_blue(&self) -> Result<PodNetworks, Error> {
        self.resolve("plexus.dev/networks", "blue")
    }
}

impl Objects for Cluster {
    fn network(&self, _: &str, name: &str) -> Option<Arc<NetworkObject>> {
        Some(&self.network).filter(|one| one.name == name).cloned()
    }
    fn nad(&self, _: &str, name: &str) -> Option<Arc<NadObject>> {
        Some(&self.nad).filter(|one| one.name == name).cloned()
    }
    fn namespace(&self, _: &str) -> Option<BTreeMap<String, String>> {
        None
    }
    fn on_disk(&self, _: &str) -> Option<String> {
        None
    }
    fn multi_nic(&self, _: &str) -> Option<Arc<MultiNicObject>> {
        None
    }
}

/// The object that the Arc holds, which nobody else has.
fn only<T>(shared: &mut Arc<T>) -> &mut T {
    Arc::get_mut(shared).unwrap()
}

#[test]
fn the_text_of_a_nad_is_read_once() {
    let mut cluster = Cluster::new();
    let plain = cluster.on_red("").unwrap();
    let text = only(&mut cluster.nad).config.replace("{".to_owned());
    // What was read stands for the text, whatever pods ask of the network.
    assert_eq!(cluster.on_red("").unwrap(), plain);
    let asked = cluster.on_red(r#", "ips": ["10.1.0.7"]"#).unwrap();
    let NetworkBackend::Native(native) = &asked.references[1].networks.all()[0].backend else {
        panic!("{asked:?}");
    };
    assert_eq!(native.ips, [("10.1.0.7".parse().unwrap(), None)]);
    assert!(matches!(native.ipam, Some(Ipam::HostLocal(_))));
    // But `cni-args` stand in the text, and what is refused says everything that is wrong.
    for keys in [
        r#", "cni-args": {"ips": ["10.1.0.7"]}"#,
        r#", "deviceID": "x""#,
    ] {
        let error = cluster.on_red(keys).unwrap_err();
        assert!(error.msg.contains("not valid JSON"), "{keys}: {error}");
    }
    // Another NAD is another text.
    cluster.nad = Arc::new(NadObject::clone(&cluster.nad));
    assert!(
        cluster
            .on_red("")
            .unwrap_err()
            .msg
            .contains("not valid JSON")
    );
    only(&mut cluster.nad).config = text;
    cluster.nad = Arc::new(NadObject::clone(&cluster.nad));
    assert_eq!(cluster.on_red("").unwrap(), plain);
}

#[test]
fn the_spec_of_a_network_is_read_once() {
    let mut cluster = Cluster::new();
    let plain = cluster.on_blue().unwrap();
    let wrong = json!({"provider": "macvlan", "config": {"mode": "wrong"}, "subnets": {"a": {"cidr": "10.2.0.0/16"}}});
    only(&mut cluster.network).spec = serde_json::from_value(wrong).unwrap();
    assert_eq!(cluster.on_blue().unwrap(), plain);
    // Whether it can be used now is another matter.
    only(&mut cluster.network).unusable = Some("Pending".to_owned());
    assert!(cluster.on_blue().unwrap_err().msg.contains("Pending"));
    only(&mut cluster.network).unusable = None;
    cluster.network = Arc::new(NetworkObject::clone(&cluster.network));
    assert!(cluster.on_blue().unwrap_err().msg.contains("mode"));
}
