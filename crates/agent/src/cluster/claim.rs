//! Claims a block by creating it: a name that is taken is a block that is taken, so no lock is needed
//! between nodes. If none is free, other nodes may be asked for a part of theirs. Within the node one
//! claim per network and family goes on at a time, and whoever asks meanwhile for the same gets its
//! answer.

use super::api::error_text;
use super::ask;
use super::create::{self, Created};
use super::error::ClaimError;
use super::shared::Shared;
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
const MOST: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct ClaimRequest {
    pub(crate) network: NetworkRef,
    pub(crate) subnet: BlockSubnet,
    /// The one with this address.
    pub(crate) containing: Option<IpAddr>,
    /// What the caller has tried: a block of this node that is not among them is as good as a new
    /// one.
    pub(crate) have: Vec<IpNet>,
    /// If none is free, other nodes are asked for a part of theirs.
    pub(crate) ask: bool,
    pub(crate) until: Instant,
}

/// How blocks and requests name a network.
pub(crate) fn network_ref(network: &NetworkObject) -> NetworkRef {
    NetworkRef {
        namespace: network.namespace.clone(),
        name: network.name.clone(),
        uuid: network.uid.clone(),
    }
}

impl ClaimRequest {
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

    fn elsewhere(&self, cidr: IpNet, owner: &str, wanted: IpAddr) -> ClaimError {
        ClaimError::Elsewhere {
            network: self.network(),
            cidr,
            owner: owner.to_owned(),
            wanted,
        }
    }

    /// A block that is ours and would do.
    pub(super) fn among(&self, own: &[IpNet]) -> Option<IpNet> {
        let fits = |block: &&IpNet| {
            let wanted = self
                .containing
                .is_none_or(|address| block.contains(&address));
            self.subnet.cidr.contains(*block) && !self.have.contains(block) && wanted
        };
        own.iter().find(fits).copied()
    }
}

type Answer = Result<IpNet, ClaimError>;

#[derive(Default)]
pub(super) struct Claims {
    open_claim: Mutex<BTreeMap<(String, Family), Arc<OpenClaim>>>,
}

struct OpenClaim {
    request: ClaimRequest,
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
        request: &ClaimRequest,
        ours: impl Fn() -> Option<IpNet>,
        run: impl FnOnce() -> Answer,
    ) -> Answer {
        let end = request.until.min(Instant::now() + CLAIM_TIMEOUT);
        let key = (request.network.uuid.clone(), request.family());
        loop {
            if let Some(block) = ours() {
                return Ok(block);
            }
            if Instant::now() >= request.until {
                return Err(late(request));
            }
            let (open_claim, first) = self.join(&key, request);
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
                Outcome::Open => return Err(late(request)),
                Outcome::Answered(answer) if open_claim.is_for(request) => return answer,
                Outcome::Answered(_) | Outcome::Abandoned => {}
            }
        }
    }

    fn join(&self, key: &(String, Family), request: &ClaimRequest) -> (Arc<OpenClaim>, bool) {
        let mut all = self.lock();
        if let Some(open_claim) = all.get(key) {
            return (Arc::clone(open_claim), false);
        }
        let open_claim = Arc::new(OpenClaim {
            request: request.clone(),
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
    fn is_for(&self, request: &ClaimRequest) -> bool {
        let sought = |one: &ClaimRequest| (one.subnet.cidr, one.containing, one.ask);
        sought(&self.request) == sought(request)
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
pub(super) async fn claim(shared: Arc<Shared>, request: ClaimRequest) -> Answer {
    let claimed = tokio::time::timeout(WHOLE_BLOCK_TIMEOUT, claim_whole(&shared, &request)).await;
    match claimed.unwrap_or_else(|_| Err(late(&request))) {
        Err(none @ ClaimError::Exhausted { .. }) if request.ask => {
            ask::ask(&shared, &request, none).await
        }
        answer => answer,
    }
}

/// Tries one block after the other. A call that failed is an error, and says nothing of the block.
async fn claim_whole(shared: &Shared, request: &ClaimRequest) -> Answer {
    if request.subnet.block_length.is_none() {
        return Err(ClaimError::NotDivided(request.subnet.cidr));
    }
    let node = &shared.options.node;
    let here = shared.state().nodes.get(node);
    let here = here.ok_or_else(|| ClaimError::NoNode(node.clone()))?;
    if let Some(elsewhere) = elsewhere(shared, request) {
        return Err(elsewhere);
    }
    let mut taken = known(shared, request);
    let mut tried = 0;
    loop {
        let list: Vec<IpNet> = taken.keys().copied().collect();
        let candidates = blocks_to_try(&request.subnet, &list, node, request.containing);
        if candidates.is_empty() || tried >= MOST {
            return Err(none_free(request, &taken, tried));
        }
        for cidr in candidates {
            tried += 1;
            if shared.state().is_closing(&request.network.uuid) {
                return Err(ClaimError::Closing(request.network()));
            }
            let spec = BlockSpec {
                network: request.network.clone(),
                cidr,
                node: node.clone(),
                node_uid: here.uid.clone(),
                nic: None,
            };
            let created = create::create(shared, &spec).await;
            let refused = |error| ClaimError::Api {
                network: request.network(),
                cidr,
                cause: error_text(&error),
            };
            match created.map_err(refused)? {
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
                Created::Unclear => return Err(late(request)),
            }
            if tried >= MOST {
                break;
            }
        }
    }
}

pub(super) fn late(request: &ClaimRequest) -> ClaimError {
    ClaimError::Late {
        network: request.network(),
        seconds: WHOLE_BLOCK_TIMEOUT.as_secs(),
    }
}

/// Whether the wanted address is in a part that is another node's, though its block may be free.
fn elsewhere(shared: &Shared, request: &ClaimRequest) -> Option<ClaimError> {
    let (address, state) = (request.containing?, shared.state());
    let uid = &request.network.uuid;
    let single = IpNet::from(address);
    let itself = state.block(uid, &single).map(|block| &block.spec);
    let (cidr, owner) = match itself.filter(|spec| state.is_legal(spec)) {
        Some(spec) => (spec.cidr, spec.node.as_str()),
        None => {
            let enclosing_block = state.enclosing_block(uid, &single)?;
            (enclosing_block.cidr, enclosing_block.node)
        }
    };
    (owner != shared.options.node).then(|| request.elsewhere(cidr, owner, address))
}

/// All whole blocks of the network, with their owners; our own count too. One of ours that is missing in
/// the API does not: to claim it is to make it again.
fn known(shared: &Shared, request: &ClaimRequest) -> BTreeMap<IpNet, String> {
    let state = shared.state();
    let blocks = state.blocks.objects.values();
    let of_it = blocks.filter(|block| block.spec.network.uuid == request.network.uuid);
    of_it
        .filter(|block| request.may_be(&block.spec.cidr))
        .map(|block| (block.spec.cidr, block.spec.node.clone()))
        .collect()
}

fn none_free(request: &ClaimRequest, taken: &BTreeMap<IpNet, String>, tried: usize) -> ClaimError {
    let holder = request.containing.and_then(|address| {
        let around = taken.iter().filter(|(cidr, _)| cidr.contains(&address));
        let (cidr, owner) = around.max_by_key(|(cidr, _)| cidr.prefix_len())?;
        Some(request.elsewhere(*cidr, owner, address))
    });
    holder.unwrap_or_else(|| ClaimError::Exhausted {
        network: request.network(),
        subnet: request.subnet.cidr,
        taken: taken.len(),
        tried,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn request(subnet: &str, containing: Option<&str>) -> ClaimRequest {
        let cidr: IpNet = subnet.parse().unwrap();
        ClaimRequest {
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
                    &request("10.0.0.0/16", None),
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
                    &request("10.0.0.0/16", None),
                    || None,
                    || {
                        std::thread::sleep(Duration::from_millis(150));
                        Ok("10.0.0.0/26".parse().unwrap())
                    },
                )
            });
            std::thread::sleep(Duration::from_millis(50));
            let other = claims.share(
                &request("10.0.0.0/16", Some("10.0.9.1")),
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
            &request("10.0.0.0/16", None),
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
        let want = || request("10.0.0.0/16", None);
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
        let known = |request: &ClaimRequest, have: &[IpNet]| ClaimRequest {
            have: have.to_vec(),
            ..request.clone()
        };
        let any = request("10.0.0.0/16", None);
        assert_eq!(known(&any, &own[..1]).among(&own), Some(own[1]));
        assert_eq!(known(&any, &own[..2]).among(&own), None);
        let one = request("10.0.0.0/16", Some("10.0.0.3"));
        assert_eq!(one.among(&own), Some(own[0]));
        assert_eq!(known(&one, &own[..1]).among(&own), None);
    }

    #[test]
    fn nobody_waits_longer_than_the_caller_has_time() {
        let claims = Claims::default();
        let mut want = request("10.0.0.0/16", None);
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
                claims.share(&request("10.0.0.0/16", None), || None, run)
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
