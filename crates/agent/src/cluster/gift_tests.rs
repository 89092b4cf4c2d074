//! What a node makes of blocks and parts, of those that others merely say they have, and of an API server
//! that answers late or not at all.

use super::claim::{self, ClaimRequest, Wanted};
use super::error::ClaimError;
use super::fake_api::FakeApi;
use super::fake_hooks::FakeHooks;
use super::gifts::{Desk, say_given};
use super::kept::{self, NodeSeen};
use super::kinds::{Blocks, Requests};
use super::report::{BlockUse, ClusterOptions, Hooks, Keeping};
use super::restore;
use super::shared::Shared;
use super::{ask, gifts, watch};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, Ipam};
use plexus_api::objects::{BlockRequestSpec, BlockSpec, Gift, NetworkRef};
use plexus_core::ipam::{Given, PoolKey};
use plexus_core::resolve::NetworkObject;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";
const REQUESTS: &str = "/apis/plexus.dev/v1alpha1/blockrequests";

/// Node `n1`, with the network `a/blue` (UID `u`, 10.1.0.0/16, blocks of 64), others, and a server.
struct Place {
    runtime: tokio::runtime::Runtime,
    shared: Arc<Shared>,
    hooks: Arc<FakeHooks>,
    api: FakeApi,
    network: NetworkObject,
    directory: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("plexus-gifts-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // What a test that was killed has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let api = FakeApi::start();
        let hooks = Arc::new(FakeHooks::default());
        hooks.usage.lock().unwrap().push(BlockUse {
            network_uid: "u".to_owned(),
            cidr: net("10.1.0.0/26"),
            allocated: 0,
        });
        let network = json!({"metadata": {"namespace": "a", "name": "blue", "uid": "u"},
            "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}}, "status": {"phase": "Active"}});
        let network = kept::network(&serde_json::from_value(network).unwrap()).unwrap();
        let shared = shared(&runtime, &directory, &api, &hooks);
        let place = Self {
            runtime,
            shared: Arc::new(shared),
            hooks,
            api,
            network,
            directory,
        };
        place.knows();
        place
    }

    /// What does not change.
    fn knows(&self) {
        let mut state = self.shared.state_mut();
        state.networks.put("a/blue", Arc::new(self.network.clone()));
        for name in ["n1", "n2", "n3", "m"] {
            let node = NodeSeen {
                uid: format!("uid-{name}"),
                pod_cidrs: Vec::new(),
                addresses: Vec::new(),
            };
            state.nodes.put(name, Arc::new(node));
        }
        state.networks.live = true;
        state.nodes.live = true;
        state.blocks.live = true;
    }

    /// Another process on the same disk.
    fn restart(&mut self) {
        self.shared.disk.flush();
        self.shared = Arc::new(shared(
            &self.runtime,
            &self.directory,
            &self.api,
            &self.hooks,
        ));
        self.knows();
        self.see();
    }

    /// Makes a Block, as its node would.
    fn block(&self, cidr: &str, node: &str, given: &[(&str, &str)]) -> String {
        let spec = spec(cidr, node);
        let mut labels = json!({"plexus.dev/network": "u", "plexus.dev/node": node});
        if spec.cidr.prefix_len() > 26 {
            labels["plexus.dev/from"] = json!("somebody");
        }
        let gift = |(cidr, node): &(&str, &str)| json!({"cidr": cidr, "node": node});
        let given: Vec<Value> = given.iter().map(gift).collect();
        let name = BlockSpec::name("u", &spec.cidr);
        self.api.store.put(
            BLOCKS,
            json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
                "metadata": {"name": name, "labels": labels}, "spec": spec,
                "status": {"given": given}}),
        )
    }

    /// The watch brings what there is.
    fn see(&self) {
        let known: Vec<String> = self.shared.state().blocks.objects.keys().cloned().collect();
        for name in known {
            if self.api.store.get(&format!("{BLOCKS}/{name}")).is_none() {
                watch::forget::<Blocks>(&self.shared, &name);
            }
        }
        for object in self.api.store.all(BLOCKS) {
            watch::take::<Blocks>(&self.shared, serde_json::from_value(object).unwrap());
        }
        for object in self.api.store.all(REQUESTS) {
            watch::take::<Requests>(&self.shared, serde_json::from_value(object).unwrap());
        }
    }

    fn given(&self, cidr: &str) -> Value {
        let name = BlockSpec::name("u", &net(cidr));
        let object = self.api.store.get(&format!("{BLOCKS}/{name}")).unwrap();
        object["status"]["given"].clone()
    }

    fn issues(&self) -> Vec<String> {
        let of = self.shared.blocks.of(&self.shared.state(), "n1", "u");
        of.iter().map(ToString::to_string).collect()
    }

    fn settled(&self, cidr: &str) -> bool {
        self.runtime.block_on(restore::restore(&self.shared));
        self.issues().contains(&cidr.to_owned())
    }

    fn says(&self, cidr: &str) -> bool {
        let block = net(cidr);
        let say = say_given(&self.shared, "u", &block);
        self.runtime.block_on(say)
    }

    fn holds(&self, address: &str) {
        let subnets = self.network.spec.block_subnets();
        let config = Ipam::Blocks(BlockIpam {
            uid: "u".to_owned(),
            subnets,
            blocks: Vec::new(),
            given: Vec::new(),
            routes: Vec::new(),
        });
        let key = PoolKey::of(&config, &"a.blue".parse().unwrap()).unwrap();
        let mut pools = self.hooks.pools.lock().unwrap();
        pools
            .reserve(&key, address.parse().unwrap(), "pod")
            .unwrap();
    }

    fn wanted(&self, ask: bool) -> Wanted {
        Wanted::of(&ClaimRequest {
            network: &self.network,
            subnet: &self.network.spec.block_subnets()[0],
            containing: None,
            have: &[],
            ask,
            until: Instant::now() + Duration::from_secs(60),
        })
    }

    fn claim(&self) -> Result<IpNet, ClaimError> {
        let claim = claim::claim(Arc::clone(&self.shared), self.wanted(false));
        self.runtime.block_on(claim)
    }

    fn calls(&self, what: &str) -> usize {
        let calls = self.api.store.calls.lock().unwrap();
        calls.iter().filter(|call| call.starts_with(what)).count()
    }

    fn swallow(&self, method: &str) {
        *self.api.store.swallow.lock().unwrap() = Some((method.to_owned(), 1));
    }

    fn journal(&self, block: &str, part: &str, node: &str) {
        let given = Given {
            network: "u".to_owned(),
            block: net(block),
            part: net(part),
            node: node.to_owned(),
        };
        assert_eq!(self.hooks.keep_given(&given), Keeping::OnDisk);
    }

    fn journaled(&self) -> Vec<String> {
        let given = self.hooks.given.lock().unwrap();
        given
            .iter()
            .map(|g| format!("{} {}", g.part, g.node))
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left is in the directory for what is temporary.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn shared(
    runtime: &tokio::runtime::Runtime,
    directory: &std::path::Path,
    api: &FakeApi,
    hooks: &Arc<FakeHooks>,
) -> Shared {
    let _inside = runtime.enter();
    let server = format!("http://{}", api.address);
    let client = kube::Client::try_from(kube::Config::new(server.parse().unwrap())).unwrap();
    let options = ClusterOptions {
        server: plexus_client::Server::Account,
        node: "n1".to_owned(),
        state_dir: directory.to_owned(),
        cni_conf_dir: directory.to_owned(),
        host_root: None,
        pod_cidrs: false,
        containers: false,
    };
    let hooks: Arc<dyn Hooks> = Arc::clone(hooks) as Arc<dyn Hooks>;
    Shared::new(options, client, hooks)
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn spec(cidr: &str, node: &str) -> BlockSpec {
    BlockSpec {
        network: NetworkRef {
            namespace: "a".to_owned(),
            name: "blue".to_owned(),
            uuid: "u".to_owned(),
        },
        cidr: net(cidr),
        node: node.to_owned(),
        node_uid: format!("uid-{node}"),
    }
}

#[test]
fn a_block_that_is_larger_than_all_stops_nobody() {
    let place = Place::new("larger");
    place.block("10.1.0.0/16", "m", &[]);
    place.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n1")]);
    place.block("10.1.0.8/29", "n1", &[]);
    place.see();
    assert!(place.settled("10.1.0.8/29"), "{:?}", place.issues());
    let claimed = place.claim().unwrap();
    assert_eq!((claimed.prefix_len(), place.calls("POST")), (26, 1));
    assert!(place.issues().contains(&claimed.to_string()));
}

#[test]
fn a_part_in_which_pods_here_have_addresses_is_not_given_by_making_its_block_again() {
    let place = Place::new("again");
    place.block("10.1.0.0/26", "n1", &[]);
    place.see();
    assert!(place.settled("10.1.0.0/26"));
    place.holds("10.1.0.9");
    // Others made parts with old caches; then somebody deletes the block.
    place.block("10.1.0.8/29", "n2", &[]);
    place.block("10.1.0.16/29", "n3", &[]);
    let name = BlockSpec::name("u", &net("10.1.0.0/26"));
    place.api.store.remove(&format!("{BLOCKS}/{name}"));
    place.see();
    assert!(place.issues().is_empty());
    place.runtime.block_on(restore::restore(&place.shared));
    assert_eq!(place.issues(), ["10.1.0.0/26"]);
    assert_eq!(place.journaled(), ["10.1.0.16/29 n3"]);
    assert!(place.says("10.1.0.0/26"));
    let expected = json!([{"cidr": "10.1.0.16/29", "node": "n3"}]);
    assert_eq!(place.given("10.1.0.0/26"), expected);
    // Nor by saying so in its status.
    place.block("10.1.0.0/26", "n1", &[("10.1.0.8/29", "n2")]);
    place.see();
    assert!(place.says("10.1.0.0/26"));
    assert_eq!(place.given("10.1.0.0/26"), expected);
}

#[test]
fn a_claim_that_was_cut_short_is_settled_before_it_is_used() {
    let mut place = Place::new("cut");
    place.block("10.1.0.0/26", "n1", &[]);
    place.block("10.1.0.8/29", "n2", &[]);
    place.see();
    assert!(place.issues().is_empty(), "nobody has looked yet");
    place.restart();
    assert!(place.issues().is_empty());
    assert!(place.settled("10.1.0.0/26"));
    assert_eq!(place.journaled(), ["10.1.0.8/29 n2"]);
    let lists = place.calls("GET");
    place.restart();
    assert_eq!(place.issues(), ["10.1.0.0/26"], "known from the disk");
    assert!(place.settled("10.1.0.0/26") && place.calls("GET") == lists);
    // Another object of that name is another block.
    place.block("10.1.0.0/26", "n1", &[]);
    place.see();
    assert!(place.issues().is_empty() && place.settled("10.1.0.0/26"));
}

#[test]
fn a_part_is_used_only_if_it_was_seen_to_be_given() {
    let place = Place::new("given");
    place.block("10.1.0.8/29", "n1", &[]);
    place.see();
    assert!(!place.settled("10.1.0.8/29"), "nobody gave it");
    place.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n3")]);
    place.see();
    assert!(!place.settled("10.1.0.8/29"));
    place.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n1")]);
    place.see();
    assert!(place.settled("10.1.0.8/29"));
    // The giver is gone and its block returned: it stays what it was.
    let name = BlockSpec::name("u", &net("10.1.0.0/26"));
    place.api.store.remove(&format!("{BLOCKS}/{name}"));
    place.see();
    assert_eq!(place.issues(), ["10.1.0.8/29"]);
    // And whoever claims that block gives it, or it is used no more.
    place.block("10.1.0.0/26", "n3", &[]);
    place.see();
    assert!(place.issues().is_empty());
}

#[test]
fn what_is_said_late_of_a_block_is_not_said_of_the_next_one() {
    let place = Place::new("late");
    place.block("10.1.0.0/26", "n1", &[]);
    place.see();
    assert!(place.settled("10.1.0.0/26"));
    place.journal("10.1.0.0/26", "10.1.0.8/29", "n2");
    place.holds("10.1.0.1");
    // Meanwhile it is another object.
    place.block("10.1.0.0/26", "n3", &[]);
    assert!(!place.says("10.1.0.0/26"));
    assert_eq!(place.given("10.1.0.0/26"), json!([]));
    place.runtime.block_on(restore::write_usage(&place.shared));
    let name = BlockSpec::name("u", &net("10.1.0.0/26"));
    let object = place.api.store.get(&format!("{BLOCKS}/{name}")).unwrap();
    assert_eq!(object["status"]["allocated"], Value::Null);
    assert_eq!(place.calls("PATCH"), 2);
}

#[test]
fn one_node_s_word_takes_nothing_from_others() {
    let place = Place::new("forged");
    place.block("10.1.0.0/26", "n1", &[]);
    place.block("10.1.0.64/26", "n2", &[]);
    // Two that cover all that is this node's; gifts out of what is not theirs, or not anybody's.
    place.block("10.1.0.0/27", "m", &[("10.1.0.4/30", "n3")]);
    place.block("10.1.0.32/27", "m", &[]);
    place.block("10.1.0.72/29", "m", &[("10.1.0.72/30", "n1")]);
    let outside = [
        ("0.0.0.0/32", "n3"),
        ("10.1.0.64/29", "n1"),
        ("10.1.0.128/26", "n1"),
    ];
    place.block("10.1.0.128/26", "m", &outside);
    place.see();
    let state = place.shared.state();
    assert!(place.shared.blocks.apart(&state, "u").is_empty());
    for node in ["n1", "n2", "n3"] {
        assert!(state.offers(node).is_empty(), "{node}");
    }
    drop(state);
    place.runtime.block_on(gifts::receive(&place.shared));
    assert_eq!(place.calls("POST"), 0);
    // What is right is taken.
    place.block(
        "10.1.0.64/26",
        "n2",
        &[("10.1.0.96/29", "n1"), ("10.1.0.72/29", "m")],
    );
    place.see();
    place.runtime.block_on(gifts::receive(&place.shared));
    let issues = place.issues();
    assert_eq!(issues, ["10.1.0.72/30", "10.1.0.96/29"]);
}

#[test]
fn one_asker_does_not_get_all_there_is() {
    let place = Place::new("greedy");
    let mut desk = Desk::default();
    let request = |uid: &str, node: &str| kept::RequestSeen {
        spec: BlockRequestSpec {
            network: spec("10.1.0.0/26", "n1").network,
            node: node.to_owned(),
            family: "ipv4".to_owned(),
            addresses: u32::MAX,
        },
        uid: uid.to_owned(),
    };
    for number in 0..16 {
        place.block(&format!("10.1.{number}.0/26"), "n1", &[]);
    }
    place.see();
    place.runtime.block_on(restore::restore(&place.shared));
    assert_eq!(place.issues().len(), 16);
    let mut given = 0;
    for number in 0..200 {
        let request = request(&format!("r{number}"), "m");
        let asked = gifts::give(&place.shared, &mut desk, &request);
        if place.runtime.block_on(asked) == gifts::Gave::Nothing {
            break;
        }
        given += 1;
    }
    let size = |given: &Given| 1_usize << (32 - given.part.prefix_len());
    let all = || {
        place
            .hooks
            .given
            .lock()
            .unwrap()
            .iter()
            .map(size)
            .sum::<usize>()
    };
    assert!(given > 1 && all() <= 256, "{given}: {}", all());
    // Others are none the worse for it.
    let other = request("other", "n2");
    let asked = gifts::give(&place.shared, &mut desk, &other);
    assert_ne!(place.runtime.block_on(asked), gifts::Gave::Nothing);
}

#[test]
fn a_server_that_swallows_a_request_stops_nobody_for_long() {
    let place = Place::new("swallowed");
    place.block("10.1.0.0/26", "n1", &[]);
    place.see();
    assert!(place.settled("10.1.0.0/26"));
    place.journal("10.1.0.0/26", "10.1.0.8/29", "n2");
    place.swallow("PATCH");
    let begun = Instant::now();
    let block = net("10.1.0.0/26");
    let say = say_given(&place.shared, "u", &block);
    let bound = async { tokio::time::timeout(Duration::from_secs(60), say).await };
    let said = place.runtime.block_on(bound);
    assert_eq!(said.ok(), Some(false), "after {:?}", begun.elapsed());
    assert!(place.says("10.1.0.0/26"));
    assert_ne!(place.given("10.1.0.0/26"), json!([]));
}

#[test]
fn nothing_is_claimed_or_taken_of_a_network_that_goes() {
    let place = Place::new("closing");
    place.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n1")]);
    place.see();
    let going = json!({"metadata": {"namespace": "a", "name": "blue", "uid": "u",
        "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}}, "status": {"phase": "Active"}});
    let going = kept::network(&serde_json::from_value(going).unwrap()).unwrap();
    place
        .shared
        .state_mut()
        .networks
        .put("a/blue", Arc::new(going));
    let claimed = place.claim();
    assert!(
        matches!(claimed, Err(ClaimError::Closing(_))),
        "{claimed:?}"
    );
    place.runtime.block_on(gifts::receive(&place.shared));
    // Whoever waits for a part does not get it any more, and does not wait on.
    let wanted = place.wanted(true);
    let none = ClaimError::NoNode("n1".to_owned());
    let asked = place
        .runtime
        .block_on(ask::ask(&place.shared, &wanted, none));
    assert!(matches!(asked, Err(ClaimError::Closing(_))), "{asked:?}");
    assert!(place.issues().is_empty());
    assert_eq!(
        place.calls(&format!("POST {BLOCKS}")),
        place.calls(&format!("POST {REQUESTS}")) - 1
    );
}

#[test]
fn a_late_withdrawal_leaves_the_next_request() {
    let place = Place::new("withdrawn");
    let name = BlockRequestSpec::name("u", "n1");
    let network = json!({"namespace": "a", "name": "blue", "uid": "u"});
    let object = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
        "metadata": {"name": name},
        "spec": {"network": network, "node": "n1", "family": "ipv4", "addresses": 8}});
    let old = place.api.store.put(REQUESTS, object.clone());
    let new = place.api.store.put(REQUESTS, object);
    let there = || place.api.store.get(&format!("{REQUESTS}/{name}")).is_some();
    place
        .runtime
        .block_on(ask::withdraw(&place.shared, &name, &old));
    assert!(there());
    place
        .runtime
        .block_on(ask::withdraw(&place.shared, &name, &new));
    assert!(!there());
}

#[test]
fn a_free_block_is_claimed_around_a_part_that_is_another_s() {
    let place = Place::new("around");
    // Of 10.1.0.0/25 one block is taken, and of the other a part: its giver is gone.
    place.block("10.1.0.0/26", "n2", &[]);
    place.block("10.1.0.72/29", "n3", &[]);
    place.see();
    let mut wanted = place.wanted(false);
    wanted.subnet.cidr = net("10.1.0.0/25");
    let claim = claim::claim(Arc::clone(&place.shared), wanted);
    let claimed = place.runtime.block_on(claim).unwrap();
    assert_eq!(claimed, net("10.1.0.64/26"));
    assert_eq!(place.journaled(), ["10.1.0.72/29 n3"]);
    let gift = Gift {
        cidr: net("10.1.0.72/29"),
        node: "n3".to_owned(),
    };
    assert!(place.says("10.1.0.64/26"));
    assert_eq!(place.given("10.1.0.64/26"), json!([gift]));
}

#[test]
fn who_sees_that_another_gave_waits_though_the_asker_has_taken_it() {
    let place = Place::new("content");
    let mut desk = Desk::default();
    place.block("10.1.0.0/26", "n1", &[]);
    place.block("10.1.0.64/26", "n2", &[]);
    place.block("10.1.0.128/26", "n2", &[]);
    let network = json!({"namespace": "a", "name": "blue", "uid": "u"});
    place.api.store.put(
        REQUESTS,
        json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
            "metadata": {"name": BlockRequestSpec::name("u", "n3")},
            "spec": {"network": network, "node": "n3", "family": "ipv4", "addresses": 8}}),
    );
    place.see();
    assert!(place.settled("10.1.0.0/26"));
    let mut answer = || {
        let answer = gifts::answer(&place.shared, &mut desk);
        place.runtime.block_on(answer)
    };
    let wait = answer();
    assert!(wait.is_some() && place.journaled().is_empty(), "{wait:?}");
    // The other gives so much that it has less than this one, and that is taken at once.
    let given = [("10.1.0.64/27", "n3"), ("10.1.0.96/28", "n3")];
    place.block("10.1.0.64/26", "n2", &given);
    place.block("10.1.0.128/26", "n2", &[("10.1.0.128/27", "n3")]);
    for (part, node) in given.into_iter().chain([("10.1.0.128/27", "n3")]) {
        place.block(part, node, &[]);
    }
    place.see();
    let wait = answer();
    assert!(wait.is_some() && place.journaled().is_empty(), "{wait:?}");
    // If it still asks after a while it needs more.
    let begun = Instant::now();
    while place.journaled().is_empty() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        answer();
    }
    assert_eq!(place.journaled().len(), 1);
}
