//! Claims a block by creating it: a name that is taken is a block that is taken, so no lock is needed
//! between nodes. If none is free, other nodes may be asked for a part of theirs. Within the node one
//! claim per network and family goes on at a time, and whoever asks meanwhile for the same gets its
//! answer.

use super::ask;
use super::create::{self, Created};
use super::error::ClaimError;
use super::shared::{Shared, error_text};
use ipnet::IpNet;
use plexus_api::cni::BlockSubnet;
use plexus_api::objects::{BlockSpec, NetworkRef};
use plexus_core::ipam::blocks_to_try;
use plexus_core::resolve::NetworkObject;
use plexus_types::Family;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Claiming, waiting for another claim included.
const WHOLE_BLOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// All of it, asking included.
pub(super) const CLAIM_TIMEOUT: Duration = WHOLE_BLOCK_TIMEOUT
    .saturating_add(ask::DONATION_TIMEOUT)
    .saturating_add(ask::WITHDRAW_TIMEOUT)
    .saturating_add(Duration::from_secs(1));
/// Blocks that are tried in one claim.
const MOST: usize = 256;

/// A block that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimRequest<'a> {
    /// Of which network.
    pub(crate) network: &'a NetworkObject,
    /// Of which subnet.
    pub(crate) subnet: &'a BlockSubnet,
    /// The one with this address.
    pub(crate) containing: Option<IpAddr>,
    /// What the caller has tried: a block of this node that is not among them is as good as a new
    /// one.
    pub(crate) have: &'a [IpNet],
    /// If none is free, other nodes are asked for a part of theirs.
    pub(crate) ask: bool,
    /// The caller has no more time then.
    pub(crate) until: Instant,
}

/// A request that outlives its caller's patience.
#[derive(Debug, Clone)]
pub(super) struct BlockClaim {
    pub(super) network: NetworkRef,
    pub(super) subnet: BlockSubnet,
    containing: Option<IpAddr>,
    pub(super) have: Vec<IpNet>,
    ask: bool,
    until: Instant,
}

impl BlockClaim {
    pub(super) fn of(request: &ClaimRequest<'_>) -> Self {
        Self {
            network: NetworkRef {
                namespace: request.network.namespace.clone(),
                name: request.network.name.clone(),
                uuid: request.network.uid.clone(),
            },
            subnet: request.subnet.clone(),
            containing: request.containing,
            have: request.have.to_vec(),
            ask: request.ask,
            until: request.until,
        }
    }

    pub(super) fn family(&self) -> Family {
        Family::of(self.subnet.cidr.addr())
    }

    /// Whether a block is one that could be claimed. Parts are not: whoever claims the block that they
    /// are in leaves room for them. Others are nobody's, whatever they say.
    fn may_be(&self, block: &IpNet) -> bool {
        let length = self.subnet.block_length;
        self.subnet.cidr.contains(block) && length.is_none_or(|length| length == block.prefix_len())
    }

    pub(super) fn network(&self) -> String {
        format!("{}/{}", self.network.namespace, self.network.name)
    }

    /// A block that is ours and would do.
    pub(super) fn among(&self, own: &[IpNet], have: &[IpNet]) -> Option<IpNet> {
        let fits = |block: &&IpNet| {
            self.subnet.cidr.contains(*block)
                && !have.contains(block)
                && self
                    .containing
                    .is_none_or(|block_claim| block.contains(&block_claim))
        };
        own.iter().find(fits).copied()
    }
}

type Answer = Result<IpNet, ClaimError>;

/// The claims that are under way, by network and family.
#[derive(Default)]
pub(super) struct Claims {
    open_claim: Mutex<BTreeMap<(String, Family), Arc<OpenClaim>>>,
}

struct OpenClaim {
    subnet: IpNet,
    containing: Option<IpAddr>,
    ask: bool,
    outcome: Mutex<Outcome>,
    ended: Condvar,
}

#[derive(Clone)]
enum Outcome {
    Open,
    Answered(Answer),
    /// Whoever ran it did not come back with an answer.
    Abandoned,
}

/// Ends a claim when whoever runs it goes, also without an answer: nobody may wait for it then.
struct RunningClaim<'a> {
    claims: &'a Claims,
    key: &'a (String, Family),
    open_claim: Arc<OpenClaim>,
    outcome: Outcome,
}

impl Drop for RunningClaim<'_> {
    fn drop(&mut self) {
        self.claims.lock().remove(self.key);
        *self.open_claim.outcome() = std::mem::replace(&mut self.outcome, Outcome::Abandoned);
        self.open_claim.ended.notify_all();
    }
}

impl Claims {
    /// `ours` finds a block that needs no claim; `run` claims one, within a bound.
    pub(super) fn share(
        &self,
        block_claim: &BlockClaim,
        ours: impl Fn() -> Option<IpNet>,
        run: impl FnOnce() -> Answer,
    ) -> Answer {
        let end = block_claim.until.min(Instant::now() + CLAIM_TIMEOUT);
        let key = (block_claim.network.uuid.clone(), block_claim.family());
        loop {
            if let Some(block) = ours() {
                return Ok(block);
            }
            if Instant::now() >= block_claim.until {
                return Err(late(block_claim));
            }
            let (open_claim, first) = self.join(&key, block_claim);
            if first {
                let mut running = RunningClaim {
                    claims: self,
                    key: &key,
                    open_claim,
                    outcome: Outcome::Abandoned,
                };
                let answer = run();
                running.outcome = Outcome::Answered(answer.clone());
                return answer;
            }
            let left = end.saturating_duration_since(Instant::now());
            match open_claim.wait(left) {
                Outcome::Open => return Err(late(block_claim)),
                Outcome::Answered(answer) if open_claim.is_for(block_claim) => return answer,
                Outcome::Answered(_) | Outcome::Abandoned => {}
            }
        }
    }

    fn join(&self, key: &(String, Family), block_claim: &BlockClaim) -> (Arc<OpenClaim>, bool) {
        let mut all = self.lock();
        if let Some(open_claim) = all.get(key) {
            return (Arc::clone(open_claim), false);
        }
        let open_claim = Arc::new(OpenClaim {
            subnet: block_claim.subnet.cidr,
            containing: block_claim.containing,
            ask: block_claim.ask,
            outcome: Mutex::new(Outcome::Open),
            ended: Condvar::new(),
        });
        all.insert(key.clone(), Arc::clone(&open_claim));
        (open_claim, true)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, Family), Arc<OpenClaim>>> {
        self.open_claim
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenClaim {
    fn is_for(&self, block_claim: &BlockClaim) -> bool {
        self.subnet == block_claim.subnet.cidr
            && self.containing == block_claim.containing
            && self.ask == block_claim.ask
    }

    fn wait(&self, timeout: Duration) -> Outcome {
        let open = |outcome: &mut Outcome| matches!(outcome, Outcome::Open);
        let waited = self.ended.wait_timeout_while(self.outcome(), timeout, open);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims a block; asks for a part of one if that is wished for and none is free.
pub(super) async fn claim(shared: Arc<Shared>, block_claim: BlockClaim) -> Answer {
    let claimed =
        tokio::time::timeout(WHOLE_BLOCK_TIMEOUT, claim_whole(&shared, &block_claim)).await;
    match claimed.unwrap_or_else(|_| Err(late(&block_claim))) {
        Err(none @ ClaimError::Exhausted { .. }) if block_claim.ask => {
            ask::ask(&shared, &block_claim, none).await
        }
        answer => answer,
    }
}

/// Tries one block after the other. A call that failed is an error, and says nothing of the block.
async fn claim_whole(shared: &Shared, block_claim: &BlockClaim) -> Answer {
    if block_claim.subnet.block_length.is_none() {
        return Err(ClaimError::NotDivided(block_claim.subnet.cidr));
    }
    let node = &shared.options.node;
    let facts = shared.state().node(node);
    let node_uid = facts.ok_or_else(|| ClaimError::NoNode(node.clone()))?.uid;
    if let Some(elsewhere) = elsewhere(shared, block_claim) {
        return Err(elsewhere);
    }
    let mut taken = known(shared, block_claim);
    let mut tried = 0;
    loop {
        let list: Vec<IpNet> = taken.keys().copied().collect();
        let candidates = blocks_to_try(&block_claim.subnet, &list, node, block_claim.containing);
        if candidates.is_empty() || tried >= MOST {
            return Err(none_free(block_claim, &taken, tried));
        }
        for cidr in candidates {
            tried += 1;
            if shared.state().is_closing(&block_claim.network.uuid) {
                return Err(ClaimError::Closing(block_claim.network()));
            }
            let spec = BlockSpec {
                network: block_claim.network.clone(),
                cidr,
                node: node.clone(),
                node_uid: node_uid.clone(),
            };
            let created = create::create(shared, &spec).await;
            match created.map_err(|error| refused(block_claim, cidr, &error))? {
                Created::Ours => {
                    let name = BlockSpec::name(&spec.network.uuid, &cidr);
                    shared.blocks.claimed(shared, &name, &spec);
                    tracing::info!(%cidr, "a block is this node's");
                    return Ok(cidr);
                }
                Created::Theirs(owner) => {
                    taken.insert(cidr, owner);
                }
                // It is settled later: another one would be one too many.
                Created::Unclear => return Err(late(block_claim)),
            }
            if tried >= MOST {
                break;
            }
        }
    }
}

pub(super) fn late(block_claim: &BlockClaim) -> ClaimError {
    ClaimError::Late {
        network: block_claim.network(),
        seconds: WHOLE_BLOCK_TIMEOUT.as_secs(),
    }
}

/// Whether the wanted address is in a part that is another node's, though its block may be free.
fn elsewhere(shared: &Shared, block_claim: &BlockClaim) -> Option<ClaimError> {
    let (address, state) = (block_claim.containing?, shared.state());
    let uid = &block_claim.network.uuid;
    let single = IpNet::from(address);
    let itself = state.block(uid, &single).map(|block| &block.spec);
    let itself = itself.filter(|spec| state.is_legal(spec));
    let (cidr, owner) = match itself {
        Some(spec) => (spec.cidr, spec.node.as_str()),
        None => {
            let enclosing_block = state.enclosing_block(uid, &single)?;
            (enclosing_block.cidr, enclosing_block.node)
        }
    };
    (owner != shared.options.node).then(|| ClaimError::Elsewhere {
        network: block_claim.network(),
        cidr,
        owner: owner.to_owned(),
        wanted: address,
    })
}

/// All whole blocks of the network, with their owners; our own count too. One of ours that is missing in
/// the API does not: to claim it is to make it again.
fn known(shared: &Shared, block_claim: &BlockClaim) -> BTreeMap<IpNet, String> {
    let state = shared.state();
    let blocks = state.blocks.objects.values();
    let of_it = blocks.filter(|block| block.spec.network.uuid == block_claim.network.uuid);
    of_it
        .filter(|block| block_claim.may_be(&block.spec.cidr))
        .map(|block| (block.spec.cidr, block.spec.node.clone()))
        .collect()
}

fn none_free(
    block_claim: &BlockClaim,
    taken: &BTreeMap<IpNet, String>,
    tried: usize,
) -> ClaimError {
    let holder = block_claim.containing.and_then(|address| {
        let enclosing_block = taken.iter().filter(|(cidr, _)| cidr.contains(&address));
        let (cidr, owner) = enclosing_block.max_by_key(|(cidr, _)| cidr.prefix_len())?;
        Some(ClaimError::Elsewhere {
            network: block_claim.network(),
            cidr: *cidr,
            owner: owner.clone(),
            wanted: address,
        })
    });
    holder.unwrap_or_else(|| ClaimError::Exhausted {
        network: block_claim.network(),
        subnet: block_claim.subnet.cidr,
        taken: taken.len(),
        tried,
    })
}

fn refused(block_claim: &BlockClaim, cidr: IpNet, error: &kube::Error) -> ClaimError {
    ClaimError::Api {
        network: block_claim.network(),
        cidr,
        cause: error_text(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn block_claim(subnet: &str, containing: Option<&str>) -> BlockClaim {
        let cidr: IpNet = subnet.parse().unwrap();
        BlockClaim {
            network: NetworkRef {
                namespace: "a".into(),
                name: "b".into(),
                uuid: "u".into(),
            },
            subnet: BlockSubnet {
                cidr,
                gateway: cidr.hosts().last().unwrap(),
                exclude: Vec::new(),
                block_length: Some(26),
            },
            containing: containing.map(|address| address.parse().unwrap()),
            have: Vec::new(),
            ask: false,
            until: Instant::now() + CLAIM_TIMEOUT * 2,
        }
    }

    #[test]
    fn those_who_ask_for_the_same_share_one_claim() {
        let claims = Claims::default();
        let runs = AtomicUsize::new(0);
        let block: IpNet = "10.0.0.64/26".parse().unwrap();
        std::thread::scope(|scope| {
            let ask = || {
                claims.share(
                    &block_claim("10.0.0.0/16", None),
                    || (runs.load(SeqCst) > 0).then_some(block),
                    || {
                        std::thread::sleep(Duration::from_millis(100));
                        runs.fetch_add(1, SeqCst);
                        Ok(block)
                    },
                )
            };
            let all: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
            for one in all {
                assert_eq!(one.join().unwrap().unwrap(), block);
            }
        });
        assert_eq!(runs.load(SeqCst), 1);
    }

    #[test]
    fn another_address_waits_and_then_claims_for_itself() {
        let claims = Claims::default();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| {
                claims.share(
                    &block_claim("10.0.0.0/16", None),
                    || None,
                    || {
                        std::thread::sleep(Duration::from_millis(150));
                        Ok("10.0.0.0/26".parse().unwrap())
                    },
                )
            });
            std::thread::sleep(Duration::from_millis(50));
            let other = claims.share(
                &block_claim("10.0.0.0/16", Some("10.0.9.1")),
                || None,
                || Ok("10.0.9.0/26".parse().unwrap()),
            );
            assert_eq!(other.unwrap(), "10.0.9.0/26".parse().unwrap());
            assert_eq!(
                slow.join().unwrap().unwrap(),
                "10.0.0.0/26".parse().unwrap()
            );
        });
        assert!(claims.lock().is_empty());
    }

    #[test]
    fn a_failure_is_everybodys_failure_and_says_nothing_of_the_block() {
        let claims = Claims::default();
        let failed = claims.share(
            &block_claim("10.0.0.0/16", None),
            || None,
            || Err(ClaimError::NoNode("n1".into())),
        );
        assert!(matches!(failed, Err(ClaimError::NoNode(_))));
        assert!(claims.lock().is_empty());
    }

    #[test]
    fn a_claim_that_dies_is_over_and_those_who_waited_claim_for_themselves() {
        let claims = Claims::default();
        let block: IpNet = "10.0.0.0/26".parse().unwrap();
        let want = || block_claim("10.0.0.0/16", None);
        std::thread::scope(|scope| {
            let dies = scope.spawn(|| {
                claims.share(
                    &want(),
                    || None,
                    || {
                        std::thread::sleep(Duration::from_millis(150));
                        panic!("on purpose")
                    },
                )
            });
            std::thread::sleep(Duration::from_millis(50));
            let start = Instant::now();
            let other = claims.share(&want(), || None, || Ok(block));
            assert_eq!(other.unwrap(), block);
            assert!(start.elapsed() < CLAIM_TIMEOUT / 2);
            assert!(dies.join().is_err());
        });
        assert!(claims.lock().is_empty());
    }

    #[test]
    fn only_a_block_that_the_caller_does_not_know_will_do() {
        let own: Vec<IpNet> = ["10.0.0.0/26", "10.0.0.64/26", "10.9.0.0/26"]
            .map(|cidr| cidr.parse().unwrap())
            .to_vec();
        let any = block_claim("10.0.0.0/16", None);
        assert_eq!(any.among(&own, &own[..1]), Some(own[1]));
        assert_eq!(any.among(&own, &own[..2]), None);
        let one = block_claim("10.0.0.0/16", Some("10.0.0.3"));
        assert_eq!(one.among(&own, &[]), Some(own[0]));
        assert_eq!(one.among(&own, &own[..1]), None);
    }

    #[test]
    fn nobody_waits_longer_than_the_caller_has_time() {
        let claims = Claims::default();
        let mut want = block_claim("10.0.0.0/16", None);
        want.until = Instant::now();
        let over = claims.share(&want, || None, || panic!("there is no time for it"));
        assert!(matches!(over, Err(ClaimError::Late { .. })));
        std::thread::scope(|scope| {
            let (done, wait) = std::sync::mpsc::channel::<()>();
            let claims = &claims;
            let slow = scope.spawn(move || {
                let run = || {
                    // Ends when the other has been answered.
                    let _ = wait.recv();
                    Err(ClaimError::NoNode("n1".into()))
                };
                claims.share(&block_claim("10.0.0.0/16", None), || None, run)
            });
            while claims.lock().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            want.until = Instant::now() + Duration::from_millis(50);
            let over = claims.share(&want, || None, || panic!("it is another's turn"));
            assert!(matches!(over, Err(ClaimError::Late { .. })));
            drop(done);
            assert!(slow.join().unwrap().is_err());
        });
    }
}
