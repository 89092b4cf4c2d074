//! This node's HostInterface, on a stand-in of the API.

use super::fake_api::FakeApi;
use super::fake_hooks::FakeHooks;
use crate::cluster::host_interface::publish;
use crate::cluster::report::{ClusterOptions, Hooks, Published};
use crate::cluster::shared::Shared;
use plexus_api::objects::HostNic;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

const OBJECTS: &str = "/apis/net.cogadvisor.io/v1/hostinterfaces";

struct Fixture {
    runtime: tokio::runtime::Runtime,
    shared: Arc<Shared>,
    api: FakeApi,
    directory: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let name = format!("plexus-nics-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let api = FakeApi::start();
        let client = {
            let _inside = runtime.enter();
            let uri = format!("http://{}", api.address).parse().unwrap();
            kube::Client::try_from(kube::Config::new(uri)).unwrap()
        };
        let options = ClusterOptions {
            server: plexus_client::Server::Account,
            node: "n1".to_owned(),
            state_dir: directory.clone(),
            cni_conf_dir: directory.clone(),
            host_root: None,
            pod_cidrs: false,
            containers: false,
        };
        let hooks: Arc<dyn Hooks> = Arc::new(FakeHooks::default());
        Self {
            runtime,
            shared: Arc::new(Shared::new(options, client, hooks)),
            api,
            directory,
        }
    }

    fn publish(&self, nics: &[&str]) -> Published {
        let nics = nics.iter().map(|name| HostNic {
            interface_name: (*name).to_owned(),
            addresses: vec!["10.0.1.1/24".parse().unwrap()],
            mtu: Some(1500),
            ..HostNic::default()
        });
        let publish = publish(
            Arc::clone(&self.shared),
            "uid-n1".to_owned(),
            nics.collect(),
        );
        self.runtime.block_on(publish).unwrap()
    }

    fn object(&self) -> Value {
        let object = self.api.store.get(&format!("{OBJECTS}/n1"));
        object.expect("the object is there")
    }

    fn names(&self) -> Vec<String> {
        let spec = &self.object()["spec"]["interfaces"];
        let names = spec.as_array().unwrap().iter();
        names
            .map(|nic| nic["interfaceName"].as_str().unwrap().to_owned())
            .collect()
    }

    fn writes(&self) -> Vec<String> {
        let calls = self.api.store.calls.lock().unwrap();
        let writes = calls.iter().filter(|call| !call.starts_with("GET"));
        writes.cloned().collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn it_is_made_and_written_only_when_something_is_another() {
    let fixture = Fixture::new("changes");
    assert_eq!(fixture.publish(&["eth1", "eth2"]), Published::Written);
    let object = fixture.object();
    assert_eq!(object["kind"], "HostInterface");
    assert_eq!(object["spec"]["hostName"], "n1");
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["uid"]),
        (&json!("Node"), &json!("uid-n1"))
    );
    assert_eq!(fixture.publish(&["eth1", "eth2"]), Published::Unchanged);
    assert_eq!(fixture.writes().len(), 1, "{:?}", fixture.writes());
    // A NIC that vanishes disappears.
    assert_eq!(fixture.publish(&["eth1"]), Published::Written);
    assert_eq!(fixture.names(), ["eth1"]);
    assert_eq!(fixture.writes().len(), 2, "{:?}", fixture.writes());
    // What somebody edits or removes is put right.
    fixture.api.store.remove(&format!("{OBJECTS}/n1"));
    assert_eq!(fixture.publish(&["eth1"]), Published::Written);
    assert_eq!(fixture.names(), ["eth1"]);
}

#[test]
fn one_that_a_user_keeps_is_left_alone() {
    let fixture = Fixture::new("unmanaged");
    let of_user = |label: &str| {
        json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "HostInterface",
            "metadata": {"name": "n1", "labels": {"multi-nic-unmanaged": label}},
            "spec": {"hostName": "n1", "interfaces": [{"interfaceName": "eth9"}]}})
    };
    fixture.api.store.put(OBJECTS, of_user("true"));
    assert_eq!(fixture.publish(&["eth1"]), Published::Unmanaged);
    assert_eq!(fixture.names(), ["eth9"]);
    assert_eq!(fixture.writes(), [""; 0]);
    fixture.api.store.put(OBJECTS, of_user("false"));
    assert_eq!(fixture.publish(&["eth1"]), Published::Written);
    assert_eq!(fixture.names(), ["eth1"]);
}
