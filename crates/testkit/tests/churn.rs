//! Kills at random under churn: containers come and go through the shim while the agent is
//! killed and started again. Counts the kills that met an ADD that was begun and not done.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, CniOutput, Dump, Node, Pod, Rng, Start, config, eventually};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PODS: usize = 6;
const MIN_MET: usize = 10;
const MIN_KILLS: usize = 25;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Which container has which address, as the answers said.
type Live = Mutex<BTreeMap<String, String>>;

#[test]
fn random_kills_lose_nothing() {
    let (mut rng, seed) = Rng::from_env();
    println!("PLEXUS_TEST_SEED={seed}");
    let node = Node::new();
    let configs = [
        config::standalone(
            "pair",
            &[config::bridge_entry(), config::macvlan_entry(&node)],
        ),
        config::routed(),
        config::standalone(
            "old",
            &[config::macvlan_entry(&node), config::fake_entry(&node)],
        ),
    ];
    let initial = warmed_up(&node, &configs);
    let (stop, live, rounds) = (AtomicBool::new(false), Live::default(), AtomicUsize::new(0));
    let mut met = 0;
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let mut workers = Vec::new();
        for number in 0..PODS {
            let (node, config) = (&node, &configs[number % configs.len()]);
            let (stop, live, rounds) = (&stop, &live, &rounds);
            let rng = Rng::new(seed ^ (number as u64 + 1));
            workers.push(scope.spawn(move || churn(node, number, config, rng, live, stop, rounds)));
        }
        met = kill_at_random(&node, &mut rng);
        stop.store(true, Ordering::SeqCst);
        let _agent = Agent::start(&node);
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    println!(
        "{} rounds; kills that met an open intent: {met}",
        rounds.load(Ordering::SeqCst)
    );
    let _agent = Agent::start(&node);
    eventually("nothing is left", || {
        initial.diff(&node.dump(None)).is_empty() || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }
    });
    initial.assert_same(&node.dump(None), "after the churn");
    assert_eq!(node.journal().records(), Vec::new());
    assert!(
        met >= MIN_MET,
        "only {met} kills met an open intent, at least {MIN_MET} must"
    );
}

/// What the networks keep on the node is made before the dump that is compared with.
fn warmed_up(node: &Node, configs: &[Value]) -> Dump {
    let _agent = Agent::start(node);
    for config in configs {
        let pod = node.pod("warm");
        pod.add(config);
        pod.del(config);
    }
    node.dump(None)
}

/// Kills agents until enough kills met an open intent; says how many did.
fn kill_at_random(node: &Node, rng: &mut Rng) -> usize {
    let start = Instant::now();
    let (mut kills, mut met) = (0, 0);
    while start.elapsed() < TEST_TIMEOUT - Duration::from_secs(15) {
        let agent = Start::on(node).ready();
        std::thread::sleep(Duration::from_millis(5 + rng.below(80)));
        agent.kill();
        kills += 1;
        if node.journal().open_intents().contains_key("intent") {
            met += 1;
        }
        if kills >= MIN_KILLS && met >= 2 * MIN_MET {
            break;
        }
    }
    println!("{kills} kills in {:?}", start.elapsed());
    met
}

fn churn(
    node: &Node,
    number: usize,
    config: &Value,
    mut rng: Rng,
    live: &Live,
    stop: &AtomicBool,
    rounds: &AtomicUsize,
) {
    let container = format!("churn{number}");
    while !stop.load(Ordering::SeqCst) {
        let pod = node.pod(&container);
        let added = pod.call("ADD", config).run();
        if added.success() {
            enter(live, &container, &pod, &added);
            std::thread::sleep(Duration::from_millis(rng.below(10)));
        }
        leave(live, &container);
        let deleted = pod.cni("DEL", config);
        assert!(deleted.success(), "DEL fails: {deleted:?}");
        // Podman reuses container ids at once; others never do.
        rounds.fetch_add(1, Ordering::SeqCst);
    }
}

/// Every address inside the container belongs to no other container that is alive.
fn enter(live: &Live, container: &str, pod: &Pod<'_>, added: &CniOutput) {
    let inside = pod
        .ns()
        .run("ip", &["-j", "address", "show", "scope", "global"]);
    let links: Value = serde_json::from_str(&inside).unwrap();
    let addresses = links
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|link| link["addr_info"].as_array().cloned().unwrap_or_default());
    let addresses: Vec<String> = addresses
        .filter_map(|address| address["local"].as_str().map(str::to_owned))
        .collect();
    for told in added.addresses() {
        assert!(
            addresses.contains(&told),
            "{container} was told {told} and has {addresses:?}"
        );
    }
    let mut live = live.lock().unwrap();
    // The fake plugin gives everyone the same address: it is no allocator.
    for address in addresses
        .into_iter()
        .filter(|address| !address.starts_with("10.77."))
    {
        let other = live.insert(address.clone(), container.to_owned());
        assert_eq!(
            other, None,
            "{address} was given to {container} while another has it"
        );
    }
}

fn leave(live: &Live, container: &str) {
    live.lock().unwrap().retain(|_, owner| owner != container);
}

/// Ends the workers also when the killing thread panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
