//! What a node makes of blocks and parts, of those that others merely say they have, and of an API server
//! that answers late or not at all.

use super::fake_api::FakeApi;
use super::fake_hooks::FakeHooks;
use crate::cluster::cached;
use crate::cluster::claim::{self, ClaimRequest, network_ref};
use crate::cluster::donations::{Donor, publish_donations};
use crate::cluster::error::ClaimError;
use crate::cluster::kinds::{Blocks, Requests};
use crate::cluster::report::{BlockUse, ClusterOptions, Hooks, NodeFacts, RecordOutcome};
use crate::cluster::restore;
use crate::cluster::shared::Shared;
use crate::cluster::{ask, donations, watch};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, Ipam};
use plexus_api::objects::{BlockRequestSpec, BlockSpec, DonatedPart, NetworkRef};
use plexus_core::ipam::{Donation, PoolKey};
use plexus_core::resolve::NetworkObject;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";
const REQUESTS: &str = "/apis/plexus.dev/v1alpha1/blockrequests";

/// Node `n1`, with the network `a/blue` (UID `u`, 10.1.0.0/16, blocks of 64), others, and a server.
struct Fixture {
    runtime: tokio::runtime::Runtime,
    shared: Arc<Shared>,
    hooks: Arc<FakeHooks>,
    api: FakeApi,
    network: NetworkObject,
    directory: PathBuf,
}

impl Fixture {
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
        let network = cached::network(&serde_json::from_value(network).unwrap()).unwrap();
        let shared = shared(&runtime, &directory, &api, &hooks);
        let fixture = Self {
            runtime,
            shared: Arc::new(shared),
            hooks,
            api,
            network,
            directory,
        };
        fixture.knows();
        fixture
    }

    /// What does not change.
    fn knows(&self) {
        let mut state = self.shared.state_mut();
        state.networks.put("a/blue", Arc::new(self.network.clone()));
        for name in ["n1", "n2", "n3", "m"] {
            let node = NodeFacts {
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
        let donated = |(cidr, node): &(&str, &str)| json!({"cidr": cidr, "node": node});
        let given: Vec<Value> = given.iter().map(donated).collect();
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

    fn donated_parts(&self, cidr: &str) -> Value {
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
        let say = publish_donations(&self.shared, "u", &block);
        self.runtime.block_on(say)
    }

    fn holds(&self, address: &str) {
        let subnets = self.network.spec.block_subnets();
        let config = Ipam::Blocks(BlockIpam {
            uid: "u".to_owned(),
            subnets,
            routes: Vec::new(),
            assigned: false,
        });
        let key = PoolKey::of(&config, &"a.blue".parse().unwrap(), true).unwrap();
        let mut pools = self.hooks.pools.lock().unwrap();
        pools
            .reserve(&key, address.parse().unwrap(), "pod")
            .unwrap();
    }

    fn block_claim(&self, ask: bool) -> ClaimRequest {
        ClaimRequest {
            network: network_ref(&self.network),
            subnet: self.network.spec.block_subnets()[0].clone(),
            containing: None,
            have: Vec::new(),
            ask,
            until: Instant::now() + Duration::from_secs(60),
        }
    }

    fn claim(&self) -> Result<IpNet, ClaimError> {
        let claim = claim::claim(Arc::clone(&self.shared), self.block_claim(false));
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
        let given = Donation {
            network: "u".to_owned(),
            block: net(block),
            part: net(part),
            node: node.to_owned(),
        };
        let recorded = self.hooks.record_donation(&given, &[]);
        assert_eq!(recorded, RecordOutcome::OnDisk);
    }

    fn journaled(&self) -> Vec<String> {
        let given = self.hooks.donations.lock().unwrap();
        given
            .iter()
            .map(|g| format!("{} {}", g.part, g.node))
            .collect()
    }
}

impl Drop for Fixture {
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
        allowed_subnets: Default::default(),
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
        nic: None,
    }
}

#[test]
fn a_block_that_is_larger_than_all_stops_nobody() {
    let fixture = Fixture::new("larger");
    fixture.block("10.1.0.0/16", "m", &[]);
    fixture.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n1")]);
    fixture.block("10.1.0.8/29", "n1", &[]);
    fixture.see();
    assert!(fixture.settled("10.1.0.8/29"), "{:?}", fixture.issues());
    let claimed = fixture.claim().unwrap();
    assert_eq!((claimed.prefix_len(), fixture.calls("POST")), (26, 1));
    assert!(fixture.issues().contains(&claimed.to_string()));
}

#[test]
fn a_part_in_which_pods_here_have_addresses_is_not_given_by_making_its_block_again() {
    let fixture = Fixture::new("again");
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.see();
    assert!(fixture.settled("10.1.0.0/26"));
    fixture.holds("10.1.0.9");
    // Others made parts with old caches; then somebody deletes the block.
    fixture.block("10.1.0.8/29", "n2", &[]);
    fixture.block("10.1.0.16/29", "n3", &[]);
    let name = BlockSpec::name("u", &net("10.1.0.0/26"));
    fixture.api.store.remove(&format!("{BLOCKS}/{name}"));
    fixture.see();
    assert!(fixture.issues().is_empty());
    fixture.runtime.block_on(restore::restore(&fixture.shared));
    assert_eq!(fixture.issues(), ["10.1.0.0/26"]);
    assert_eq!(fixture.journaled(), ["10.1.0.16/29 n3"]);
    assert!(fixture.says("10.1.0.0/26"));
    let expected = json!([{"cidr": "10.1.0.16/29", "node": "n3"}]);
    assert_eq!(fixture.donated_parts("10.1.0.0/26"), expected);
    // Nor by saying so in its status.
    fixture.block("10.1.0.0/26", "n1", &[("10.1.0.8/29", "n2")]);
    fixture.see();
    assert!(fixture.says("10.1.0.0/26"));
    assert_eq!(fixture.donated_parts("10.1.0.0/26"), expected);
}

#[test]
fn a_claim_that_was_cut_short_is_settled_before_it_is_used() {
    let mut fixture = Fixture::new("cut");
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.block("10.1.0.8/29", "n2", &[]);
    fixture.see();
    assert!(fixture.issues().is_empty(), "nobody has looked yet");
    fixture.restart();
    assert!(fixture.issues().is_empty());
    assert!(fixture.settled("10.1.0.0/26"));
    assert_eq!(fixture.journaled(), ["10.1.0.8/29 n2"]);
    let lists = fixture.calls("GET");
    fixture.restart();
    assert_eq!(fixture.issues(), ["10.1.0.0/26"], "known from the disk");
    assert!(fixture.settled("10.1.0.0/26") && fixture.calls("GET") == lists);
    // Another object of that name is another block.
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.see();
    assert!(fixture.issues().is_empty() && fixture.settled("10.1.0.0/26"));
}

#[test]
fn a_part_is_used_only_if_it_was_seen_to_be_given() {
    let fixture = Fixture::new("given");
    fixture.block("10.1.0.8/29", "n1", &[]);
    fixture.see();
    assert!(!fixture.settled("10.1.0.8/29"), "nobody gave it");
    fixture.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n3")]);
    fixture.see();
    assert!(!fixture.settled("10.1.0.8/29"));
    fixture.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n1")]);
    fixture.see();
    assert!(fixture.settled("10.1.0.8/29"));
    // The giver is gone and its block returned: it stays what it was.
    let name = BlockSpec::name("u", &net("10.1.0.0/26"));
    fixture.api.store.remove(&format!("{BLOCKS}/{name}"));
    fixture.see();
    assert_eq!(fixture.issues(), ["10.1.0.8/29"]);
    // And whoever claims that block gives it, or it is used no more.
    fixture.block("10.1.0.0/26", "n3", &[]);
    fixture.see();
    assert!(fixture.issues().is_empty());
}

#[test]
fn what_is_said_late_of_a_block_is_not_said_of_the_next_one() {
    let fixture = Fixture::new("late");
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.see();
    assert!(fixture.settled("10.1.0.0/26"));
    fixture.journal("10.1.0.0/26", "10.1.0.8/29", "n2");
    fixture.holds("10.1.0.1");
    // Meanwhile it is another object.
    fixture.block("10.1.0.0/26", "n3", &[]);
    assert!(!fixture.says("10.1.0.0/26"));
    assert_eq!(fixture.donated_parts("10.1.0.0/26"), json!([]));
    fixture
        .runtime
        .block_on(restore::write_usage(&fixture.shared));
    let name = BlockSpec::name("u", &net("10.1.0.0/26"));
    let object = fixture.api.store.get(&format!("{BLOCKS}/{name}")).unwrap();
    assert_eq!(object["status"]["allocated"], Value::Null);
    assert_eq!(fixture.calls("PATCH"), 2);
}

/// The journal has donations of an earlier Block of the same addresses, which its next owner did not know of.
#[test]
fn a_donation_of_an_earlier_block_gives_way_to_the_part_that_another_has() {
    let fixture = Fixture::new("superseded");
    for (part, node) in [
        ("10.1.0.4/31", "n2"),
        ("10.1.0.16/30", "n2"),
        ("10.1.0.40/31", "n2"),
        ("10.1.0.48/31", "n2"),
    ] {
        fixture.journal("10.1.0.0/26", part, node);
    }
    fixture.block("10.1.0.0/26", "n1", &[("10.1.0.48/31", "n2")]);
    fixture.block("10.1.0.40/31", "n2", &[]);
    for around in ["10.1.0.4/30", "10.1.0.40/30", "10.1.0.48/30"] {
        fixture.block(around, "n3", &[]);
    }
    fixture.see();
    assert!(fixture.settled("10.1.0.0/26"));
    let mut journaled = fixture.journaled();
    journaled.sort();
    // Those that somebody took, or that the Block's status has, stay; so does one that is in nobody's way.
    assert_eq!(
        journaled,
        [
            "10.1.0.16/30 n2",
            "10.1.0.4/30 n3",
            "10.1.0.40/31 n2",
            "10.1.0.48/31 n2"
        ]
    );
}

#[test]
fn one_node_s_word_takes_nothing_from_others() {
    let fixture = Fixture::new("forged");
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.block("10.1.0.64/26", "n2", &[]);
    // Two that cover all that is this node's; donations out of what is not theirs, or not anybody's.
    fixture.block("10.1.0.0/27", "m", &[("10.1.0.4/30", "n3")]);
    fixture.block("10.1.0.32/27", "m", &[]);
    fixture.block("10.1.0.72/29", "m", &[("10.1.0.72/30", "n1")]);
    let outside = [
        ("0.0.0.0/32", "n3"),
        ("10.1.0.64/29", "n1"),
        ("10.1.0.128/26", "n1"),
    ];
    fixture.block("10.1.0.128/26", "m", &outside);
    fixture.see();
    let state = fixture.shared.state();
    assert!(fixture.shared.blocks.apart(&state, "u").is_empty());
    for node in ["n1", "n2", "n3"] {
        assert!(state.offers(node).is_empty(), "{node}");
    }
    drop(state);
    fixture
        .runtime
        .block_on(donations::receive(&fixture.shared));
    assert_eq!(fixture.calls("POST"), 0);
    // What is right is taken.
    fixture.block(
        "10.1.0.64/26",
        "n2",
        &[("10.1.0.96/29", "n1"), ("10.1.0.72/29", "m")],
    );
    fixture.see();
    fixture
        .runtime
        .block_on(donations::receive(&fixture.shared));
    let issues = fixture.issues();
    assert_eq!(issues, ["10.1.0.72/30", "10.1.0.96/29"]);
}

#[test]
fn one_asker_does_not_get_all_there_is() {
    let fixture = Fixture::new("greedy");
    let mut donor = Donor::default();
    let request = |uid: &str, node: &str| cached::CachedRequest {
        spec: BlockRequestSpec {
            network: spec("10.1.0.0/26", "n1").network,
            node: node.to_owned(),
            family: "ipv4".to_owned(),
            addresses: u32::MAX,
        },
        uid: uid.to_owned(),
    };
    for number in 0..16 {
        fixture.block(&format!("10.1.{number}.0/26"), "n1", &[]);
    }
    fixture.see();
    fixture.runtime.block_on(restore::restore(&fixture.shared));
    assert_eq!(fixture.issues().len(), 16);
    let mut given = 0;
    for number in 0..200 {
        let request = request(&format!("r{number}"), "m");
        let donating = donations::donate(&fixture.shared, &mut donor, &request);
        if fixture.runtime.block_on(donating) == donations::DonateOutcome::Nothing {
            break;
        }
        given += 1;
    }
    let size = |given: &Donation| 1_usize << (32 - given.part.prefix_len());
    let all = || {
        fixture
            .hooks
            .donations
            .lock()
            .unwrap()
            .iter()
            .map(size)
            .sum::<usize>()
    };
    assert!(given > 1 && all() <= 256, "{given}: {}", all());
    // Others are none the worse for it.
    let other = request("other", "n2");
    let donating = donations::donate(&fixture.shared, &mut donor, &other);
    assert_ne!(
        fixture.runtime.block_on(donating),
        donations::DonateOutcome::Nothing
    );
}

#[test]
fn a_server_that_swallows_a_request_stops_nobody_for_long() {
    let fixture = Fixture::new("swallowed");
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.see();
    assert!(fixture.settled("10.1.0.0/26"));
    fixture.journal("10.1.0.0/26", "10.1.0.8/29", "n2");
    fixture.swallow("PATCH");
    let begun = Instant::now();
    let block = net("10.1.0.0/26");
    let say = publish_donations(&fixture.shared, "u", &block);
    let bound = async { tokio::time::timeout(Duration::from_secs(60), say).await };
    let error_text = fixture.runtime.block_on(bound);
    assert_eq!(error_text.ok(), Some(false), "after {:?}", begun.elapsed());
    assert!(fixture.says("10.1.0.0/26"));
    assert_ne!(fixture.donated_parts("10.1.0.0/26"), json!([]));
}

#[test]
fn nothing_is_claimed_or_taken_of_a_network_that_goes() {
    let fixture = Fixture::new("closing");
    fixture.block("10.1.0.0/26", "n2", &[("10.1.0.8/29", "n1")]);
    fixture.see();
    let going = json!({"metadata": {"namespace": "a", "name": "blue", "uid": "u",
        "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}}, "status": {"phase": "Active"}});
    let going = cached::network(&serde_json::from_value(going).unwrap()).unwrap();
    fixture
        .shared
        .state_mut()
        .networks
        .put("a/blue", Arc::new(going));
    let claimed = fixture.claim();
    assert!(
        matches!(claimed, Err(ClaimError::Closing(_))),
        "{claimed:?}"
    );
    fixture
        .runtime
        .block_on(donations::receive(&fixture.shared));
    // Whoever waits for a part does not get it any more, and does not wait on.
    let block_claim = fixture.block_claim(true);
    let none = ClaimError::NoNode("n1".to_owned());
    let answer = fixture
        .runtime
        .block_on(ask::ask(&fixture.shared, &block_claim, none));
    assert!(matches!(answer, Err(ClaimError::Closing(_))), "{answer:?}");
    assert!(fixture.issues().is_empty());
    assert_eq!(
        fixture.calls(&format!("POST {BLOCKS}")),
        fixture.calls(&format!("POST {REQUESTS}")) - 1
    );
}

#[test]
fn a_late_withdrawal_leaves_the_next_request() {
    let fixture = Fixture::new("withdrawn");
    let name = BlockRequestSpec::name("u", "n1");
    let network = json!({"namespace": "a", "name": "blue", "uid": "u"});
    let object = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
        "metadata": {"name": name},
        "spec": {"network": network, "node": "n1", "family": "ipv4", "addresses": 8}});
    let old = fixture.api.store.put(REQUESTS, object.clone());
    let new = fixture.api.store.put(REQUESTS, object);
    let there = || {
        fixture
            .api
            .store
            .get(&format!("{REQUESTS}/{name}"))
            .is_some()
    };
    fixture
        .runtime
        .block_on(ask::withdraw(&fixture.shared, &name, &old));
    assert!(there());
    fixture
        .runtime
        .block_on(ask::withdraw(&fixture.shared, &name, &new));
    assert!(!there());
}

#[test]
fn a_free_block_is_claimed_around_a_part_that_is_another_s() {
    let fixture = Fixture::new("around");
    // Of 10.1.0.0/25 one block is taken, and of the other a part: its giver is gone.
    fixture.block("10.1.0.0/26", "n2", &[]);
    fixture.block("10.1.0.72/29", "n3", &[]);
    fixture.see();
    let mut block_claim = fixture.block_claim(false);
    block_claim.subnet.cidr = net("10.1.0.0/25");
    let claim = claim::claim(Arc::clone(&fixture.shared), block_claim);
    let claimed = fixture.runtime.block_on(claim).unwrap();
    assert_eq!(claimed, net("10.1.0.64/26"));
    assert_eq!(fixture.journaled(), ["10.1.0.72/29 n3"]);
    let donated = DonatedPart {
        cidr: net("10.1.0.72/29"),
        node: "n3".to_owned(),
    };
    assert!(fixture.says("10.1.0.64/26"));
    assert_eq!(fixture.donated_parts("10.1.0.64/26"), json!([donated]));
}

#[test]
fn who_sees_that_another_gave_waits_though_the_asker_has_taken_it() {
    let fixture = Fixture::new("content");
    let mut donor = Donor::default();
    fixture.block("10.1.0.0/26", "n1", &[]);
    fixture.block("10.1.0.64/26", "n2", &[]);
    fixture.block("10.1.0.128/26", "n2", &[]);
    let network = json!({"namespace": "a", "name": "blue", "uid": "u"});
    fixture.api.store.put(
        REQUESTS,
        json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
            "metadata": {"name": BlockRequestSpec::name("u", "n3")},
            "spec": {"network": network, "node": "n3", "family": "ipv4", "addresses": 8}}),
    );
    fixture.see();
    assert!(fixture.settled("10.1.0.0/26"));
    let mut answer = || {
        let answer = donations::answer(&fixture.shared, &mut donor);
        fixture.runtime.block_on(answer)
    };
    let wait = answer();
    assert!(wait.is_some() && fixture.journaled().is_empty(), "{wait:?}");
    // The other gives so much that it has less than this one, and that is taken at once.
    let given = [("10.1.0.64/27", "n3"), ("10.1.0.96/28", "n3")];
    fixture.block("10.1.0.64/26", "n2", &given);
    fixture.block("10.1.0.128/26", "n2", &[("10.1.0.128/27", "n3")]);
    for (part, node) in given.into_iter().chain([("10.1.0.128/27", "n3")]) {
        fixture.block(part, node, &[]);
    }
    fixture.see();
    let wait = answer();
    assert!(wait.is_some() && fixture.journaled().is_empty(), "{wait:?}");
    // If it still asks after a while it needs more.
    let begun = Instant::now();
    while fixture.journaled().is_empty() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        answer();
    }
    assert_eq!(fixture.journaled().len(), 1);
}
