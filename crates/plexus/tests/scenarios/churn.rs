//! Pods come and go while server, controller and every agent are killed at random. Nobody ever has an address that another
//! one has, and in the end everybody tells the same story.

use crate::machine::Lab;
use crate::objects::{READY_TIMEOUT, within};
use plexus_testkit::Rng;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Seven of eight are attached and detached for certain: more than 500 operations.
const PODS: usize = 288;
/// An ADD and a DEL of each pod that was seen to be ready.
const OPERATIONS: usize = 500;
/// Of every eight pods this one is not waited for: it goes while it comes.
const HASTY: usize = 7;
/// One pod in so many has a port of its node.
const WITH_PORT: usize = 4;
/// Of these so many stay until everything was compared.
const STAY: usize = 12;
const CONCURRENT_PODS: usize = 6;
const PARTS: [&str; 5] = [
    "/server/pid",
    "/controller/pid",
    "/nodes/n1/pid",
    "/nodes/n2/pid",
    "/nodes/n3/pid",
];
/// One part is killed whenever so many more pods have begun, and at most so many milliseconds later.
const PODS_PER_KILL: usize = 6;
const MAX_DELAY_MS: u64 = 1_000;

/// Their addresses are nobody else's: what is seen twice is a duplicate. Small blocks, so that many are claimed.
const NETWORKS: &str = "
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: blue, namespace: default}
spec:
  subnets: {a: {cidr: 10.61.0.0/22}, b: {cidr: 'fd00:61::/112'}}
  blockSize: {ipv4: 29, ipv6: 125}
---
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: green, namespace: default}
spec:
  provider: routed
  snat: true
  subnets: {a: {cidr: 10.62.0.0/22}}
  blockSize: {ipv4: 28}
";
const NETWORK_ANNOTATIONS: [&str; 4] = ["", "blue", "green", "blue,green"];

struct Churn<'a> {
    lab: &'a Lab,
    seed: u64,
    next: AtomicUsize,
    over: AtomicBool,
    /// Pods that were ready, pods that were deleted then.
    attached: AtomicUsize,
    detached: AtomicUsize,
    doubles: Mutex<Vec<String>>,
    kills: Mutex<BTreeMap<&'static str, usize>>,
}

#[test]
fn pods_come_and_go_while_everybody_is_killed() {
    let (_, seed) = Rng::from_env();
    println!(
        "the seed is {seed}: PLEXUS_TEST_SEED={seed} repeats who is where, and who is killed next"
    );
    let lab = Lab::up('x', 3);
    lab.apply(NETWORKS);
    let churn = Churn {
        lab: &lab,
        seed,
        next: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        attached: AtomicUsize::new(0),
        detached: AtomicUsize::new(0),
        doubles: Mutex::default(),
        kills: Mutex::default(),
    };
    churn.run();
    let (attached, detached) = (churn.attached.load(SeqCst), churn.detached.load(SeqCst));
    let kills = churn.kills.into_inner().unwrap();
    println!("killed: {kills:?}");
    for part in PARTS {
        let hits = kills.get(part).copied().unwrap_or_default();
        assert!(
            hits >= 4,
            "{part} was killed {hits} times: not much of a trial"
        );
    }
    let doubles = churn.doubles.into_inner().unwrap();
    assert_eq!(doubles, Vec::<String>::new(), "seed {seed}");

    let stay: Vec<String> = (PODS - STAY..PODS).map(name).collect();
    gone_but(&lab, &stay);
    lab.all_is_true();
    lab.all_reach();
    for name in &stay {
        lab.end_pod(name, 30);
    }
    gone_but(&lab, &[]);
    let operations = attached + detached + stay.len();
    println!("{operations} operations");
    assert!(operations >= OPERATIONS, "only {operations} operations");
    lab.all_is_true();
    assert_eq!(lab.spaces().len(), 0);
}

impl Churn<'_> {
    fn run(&self) {
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| self.kill());
            let looker = scope.spawn(|| self.look());
            let workers: Vec<_> = (0..CONCURRENT_PODS)
                .map(|_| scope.spawn(|| self.work()))
                .collect();
            let ends: Vec<_> = workers.into_iter().map(|one| one.join()).collect();
            self.over.store(true, SeqCst);
            killer.join().unwrap();
            looker.join().unwrap();
            assert!(
                ends.iter().all(Result::is_ok),
                "a pod failed; seed {}",
                self.seed
            );
        });
    }

    fn work(&self) {
        loop {
            let number = self.next.fetch_add(1, SeqCst);
            if number >= PODS || self.over.load(SeqCst) {
                return;
            }
            let failed = catch_unwind(AssertUnwindSafe(|| self.one(number)));
            if let Err(panic) = failed {
                self.over.store(true, SeqCst);
                std::panic::resume_unwind(panic);
            }
        }
    }

    fn one(&self, number: usize) {
        let mut rng = Rng::new(self.seed.wrapping_add(number as u64 * 0x9e37_79b9));
        // The first numbers of neighbours are alike.
        rng.next_u64();
        let node = format!("n{}", 1 + rng.below(3));
        let networks = NETWORK_ANNOTATIONS[rng.below(4) as usize];
        let name = name(number);
        // No two pods want the same port, whoever of them is still going.
        let port = number
            .is_multiple_of(WITH_PORT)
            .then(|| 20_000 + u16::try_from(number).unwrap());
        self.lab.make_pod_with_port(&name, &node, networks, port);
        let stays = number >= PODS - STAY;
        let waited = number % 8 != HASTY || stays;
        if waited {
            self.lab.ready_pod(&name);
            self.attached.fetch_add(1, SeqCst);
        }
        if !stays {
            let grace = if rng.below(4) == 0 { 0 } else { 30 };
            self.lab.end_pod(&name, grace);
            self.detached.fetch_add(usize::from(waited), SeqCst);
        }
    }

    /// All parts in turn, in another order every time: each is killed several times, however fast pods come and go.
    fn kill(&self) {
        let mut rng = Rng::new(self.seed);
        let mut turn = Vec::new();
        let mut pods = 0;
        while !self.over.load(SeqCst) {
            if self.next.load(SeqCst) < pods {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            pods += PODS_PER_KILL;
            std::thread::sleep(Duration::from_millis(rng.below(MAX_DELAY_MS)));
            if turn.is_empty() {
                turn.extend(PARTS);
            }
            let part = turn.swap_remove(rng.below(turn.len() as u64) as usize);
            // It may be dead already, or not there yet.
            let hit = within(READY_TIMEOUT, || {
                self.lab.shoot(part) || self.over.load(SeqCst)
            });
            assert!(hit, "{part} does not come back");
            *self.kills.lock().unwrap().entry(part).or_default() += 1;
        }
    }

    fn look(&self) {
        while !self.over.load(SeqCst) {
            let doubles = self.lab.duplicates();
            self.doubles.lock().unwrap().extend(doubles);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn name(number: usize) -> String {
    format!("p{number}")
}

#[track_caller]
fn gone_but(lab: &Lab, stay: &[String]) {
    let mut left = Vec::new();
    let gone = within(READY_TIMEOUT, || {
        let pods = lab.objects("/api/v1/pods");
        let names = pods
            .iter()
            .filter_map(|pod| pod["metadata"]["name"].as_str());
        left = names.map(str::to_owned).collect();
        left.len() == stay.len() && left.iter().all(|name| stay.contains(name))
    });
    assert!(gone, "there are {left:?}, not {stay:?}");
}
