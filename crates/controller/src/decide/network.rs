//! The status of a Network: its phase, and the conditions that say why.

use super::conditions::Conditions;
use super::conflict::{self, Rival};
use super::usage::{AddressesInUse, Users};
use ipnet::IpNet;
use plexus_api::objects::{NetworkSpec, NetworkStatus, Phase, Usage};

/// The facts that decide the status of a Network.
#[derive(Debug)]
pub(crate) struct NetworkFacts<'a> {
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
    /// The spec, or why it cannot be read.
    pub(crate) spec: Result<&'a NetworkSpec, &'a str>,
    pub(crate) number: VniState,
    pub(crate) rivals: Vec<Rival>,
    /// Why it may not have its subnets in the nodes' routing tables, if so.
    pub(crate) not_allowed: Option<String>,
    pub(crate) users: Users,
    pub(crate) in_use_addresses: AddressesInUse,
    pub(crate) usage: Option<Usage>,
    /// All its blocks.
    pub(crate) blocks: Vec<IpNet>,
    /// Another, older network with the same `spec.uuid`.
    pub(crate) same_uuid: Option<String>,
    pub(crate) nad: NadAgreement,
}

/// Whether an overlay network has a VNI of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VniState {
    /// It needs none.
    None,
    /// Its own.
    Own(u32),
    /// Somebody older has it too.
    Shared(u32, String),
    /// There is none left.
    Exhausted,
}

/// Whether a Network matches the NAD that it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NadAgreement {
    /// It was not.
    None,
    /// It is as the NAD says.
    Same,
    /// It is not, and cannot become so.
    Differs(String),
}

/// Its subnets are outside of what the administrator allows: a condition, and a reason for Pending.
const NOT_ALLOWED: &str = "SubnetNotAllowed";

/// Whether pods use it already, so that nobody else may have its addresses: also while it must wait,
/// or goes.
pub(crate) fn is_settled(status: &NetworkStatus, users: usize, blocks: usize) -> bool {
    use Phase::{Active, Pending, Terminating};
    let phase = matches!(status.phase, Some(Active | Pending | Terminating));
    phase && (users > 0 || blocks > 0)
}

/// All that is wrong with a spec by itself; none if it can be made.
pub(crate) fn problems(spec: Result<&NetworkSpec, &str>) -> Option<String> {
    match spec {
        Err(error) => Some(format!("the object cannot be read: {error}")),
        Ok(spec) => {
            let problems = spec.problems();
            (!problems.0.is_empty()).then(|| problems.to_string())
        }
    }
}

/// What the status should be. `now` is RFC 3339 and used only where something changes.
pub(crate) fn status(facts: &NetworkFacts<'_>, before: &NetworkStatus, now: &str) -> NetworkStatus {
    let (phase, reason, message) = verdict(facts);
    let mut conditions = Conditions::new(&before.conditions, now, facts.generation);
    conditions.set("Ready", phase == Phase::Active, reason, message);
    if facts.rivals.is_empty() {
        conditions.over("SubnetConflict", "NoConflict", "no other subnet overlaps");
    } else {
        conditions.set(
            "SubnetConflict",
            true,
            "Overlap",
            conflict::describe(&facts.rivals),
        );
    }
    match &facts.not_allowed {
        Some(why) => conditions.set(NOT_ALLOWED, true, "OutsideOfRanges", why),
        None => conditions.over(NOT_ALLOWED, "Allowed", "its subnets are allowed"),
    }
    if facts.deleting && facts.users.count > 0 {
        conditions.set("InUse", true, "PodsAttached", facts.users.describe());
    } else if facts.deleting && facts.in_use_addresses.any() {
        conditions.set(
            "InUse",
            true,
            "AddressesHeld",
            facts.in_use_addresses.describe(),
        );
    } else {
        conditions.over("InUse", "NoPods", "no pod uses it");
    }
    match &facts.nad {
        NadAgreement::Differs(what) => conditions.set("FollowsNad", false, "InUse", what),
        NadAgreement::Same => conditions.set(
            "FollowsNad",
            true,
            "Same",
            "as its NetworkAttachmentDefinition says",
        ),
        NadAgreement::None => conditions.over(
            "FollowsNad",
            "NoNad",
            "not made from a NetworkAttachmentDefinition",
        ),
    }
    NetworkStatus {
        phase: Some(phase),
        observed_generation: facts.generation,
        vni: match facts.number {
            VniState::Own(number) | VniState::Shared(number, _) => Some(number),
            VniState::None | VniState::Exhausted => before.vni,
        },
        subnets: subnets(facts, &before.subnets),
        usage: facts.usage.clone().or_else(|| before.usage.clone()),
        conditions: conditions.into_list(),
    }
}

/// The reasons and messages of its Events. The Event about pods that use a deleted network does not name the
/// pods: their names change, and each message would be another Event.
pub(crate) fn complaints(status: &NetworkStatus) -> Vec<(String, String)> {
    let found = status.conditions.iter().filter_map(|condition| {
        let waits = matches!(status.phase, Some(Phase::Failed | Phase::Pending));
        let text = match (condition.kind.as_str(), condition.status.as_str()) {
            ("Ready", "False") if waits => condition.message.clone(),
            // It waits for that, and has said so.
            ("SubnetConflict", "True") if !waits => condition.message.clone(),
            ("InUse", "True") => {
                "deleted while pods use it: it goes when they have, and no new pod can use it; \
                 the status says which they are"
                    .to_owned()
            }
            _ => return None,
        };
        let reason = match condition.kind.as_str() {
            "Ready" => &condition.reason,
            kind => kind,
        };
        Some((reason.to_owned(), text))
    });
    found.collect()
}

/// Agents take no block for the network's that is elsewhere: a subnet that was taken out of the spec
/// stays as long as somebody has a block of it.
fn subnets(facts: &NetworkFacts<'_>, before: &[IpNet]) -> Vec<IpNet> {
    let valid = facts.spec.ok().filter(|_| problems(facts.spec).is_none());
    let now = valid.into_iter().flat_map(|spec| spec.subnets.values());
    let mut all: Vec<IpNet> = now.map(|subnet| subnet.cidr.trunc()).collect();
    for previous_subnet in before {
        let left = facts
            .blocks
            .iter()
            .any(|block| previous_subnet.contains(block));
        if !all.contains(previous_subnet) && (left || valid.is_none()) {
            all.push(*previous_subnet);
        }
    }
    all.sort();
    all.dedup();
    all
}

fn verdict(facts: &NetworkFacts<'_>) -> (Phase, &'static str, String) {
    if facts.deleting {
        let message = match (facts.users.count, facts.in_use_addresses.any()) {
            (0, false) => "deleted; no pod uses it any more".to_owned(),
            (0, _) => format!("deleted, but {}", facts.in_use_addresses.describe()),
            _ => format!("deleted, but still {}", facts.users.describe()),
        };
        return (Phase::Terminating, "Terminating", message);
    }
    if let Some(problems) = problems(facts.spec) {
        return (Phase::Failed, "InvalidSpec", problems);
    }
    if let Some(other) = &facts.same_uuid {
        let message =
            format!("spec.uuid is that of Network {other}, which is older: give another, or none");
        return (Phase::Failed, "UuidConflict", message);
    }
    if let Some(provider) = facts.spec.ok().filter(|spec| is_external(spec)) {
        let name = provider.provider_name();
        let message =
            format!("waits for the external provider {name:?}: none of that name has registered");
        return (Phase::Pending, "WaitingForProvider", message);
    }
    match &facts.number {
        VniState::Shared(number, other) => {
            let message = format!(
                "VNI {number} is that of Network {other}, which is older: delete this one and create it again"
            );
            return (Phase::Failed, "VniConflict", message);
        }
        VniState::Exhausted => {
            let message = "no VNI is free: delete overlay networks that are not used".to_owned();
            return (Phase::Pending, "NoVni", message);
        }
        VniState::None | VniState::Own(_) => {}
    }
    if let Some(why) = &facts.not_allowed {
        return (Phase::Pending, NOT_ALLOWED, format!("spec: {why}"));
    }
    if conflict::must_wait(&facts.rivals) {
        let message = format!(
            "spec.subnets: {}: give it other addresses; no new pod can use it until then, or until that is gone",
            conflict::describe(&facts.rivals)
        );
        return (Phase::Pending, "SubnetConflict", message);
    }
    (Phase::Active, "Active", "pods can use it".to_owned())
}

fn is_external(spec: &NetworkSpec) -> bool {
    spec.provider_name().contains('/')
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
