//! What a NetworkAttachmentDefinition asks of us: a Network of its own, or nothing; and what of a
//! changed one can be followed.

use plexus_api::objects::{NetworkSpec, Subnet};
pub(crate) use plexus_core::nad_meaning::{NadMeaning, Reading, read};

/// How the controller changes an existing Network so that it matches its NAD.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpecUpdate {
    /// The spec to write; none if there is nothing to change.
    pub(crate) spec: Option<NetworkSpec>,
    /// What stays although the NAD says otherwise; empty if nothing does.
    pub(crate) stays: Vec<String>,
    /// The controller must delete the Network and create it again: the provider or the addresses of a subnet are others.
    pub(crate) recreate: bool,
}

/// `in_use`: pods are on it, or nodes have blocks of it. Then subnets may be added, not changed.
pub(crate) fn follow(now: &NetworkSpec, wanted: &NetworkSpec, in_use: bool) -> SpecUpdate {
    let mut next = now.clone();
    let mut stays = Vec::new();
    let other_provider = now.provider_name() != wanted.provider_name();
    let readdressed = now.subnets.iter().any(|(key, subnet)| {
        let wanted = wanted.subnets.get(key);
        wanted.is_some_and(|wanted| wanted.cidr != subnet.cidr)
    });
    let recreate = !in_use && (other_provider || readdressed);
    if !other_provider {
        next.snat = wanted.snat;
    } else if in_use {
        stays.push(format!("provider stays {}", now.provider_name()));
    }
    let subnets_match = now.subnets.iter().all(|(key, subnet)| {
        wanted
            .subnets
            .get(key)
            .is_some_and(|wanted| wanted.cidr == subnet.cidr)
    });
    if subnets_match || !in_use {
        // What somebody added to a subnet of ours (a gateway, excludes) stays with it.
        let same = |key: &String, wanted: &Subnet| {
            now.subnets
                .get(key)
                .filter(|now| now.cidr == wanted.cidr)
                .cloned()
        };
        next.subnets = wanted
            .subnets
            .iter()
            .map(|(key, wanted)| {
                (
                    key.clone(),
                    same(key, wanted).unwrap_or_else(|| wanted.clone()),
                )
            })
            .collect();
    } else {
        let cidrs = now.subnets.values().map(|subnet| subnet.cidr.to_string());
        stays.push(format!(
            "subnets stay {}",
            cidrs.collect::<Vec<_>>().join(", ")
        ));
    }
    SpecUpdate {
        spec: (next != *now).then_some(next).filter(|_| !recreate),
        recreate,
        stays,
    }
}

/// For people: what stays, why, and what to do.
pub(crate) fn describe(stays: &[String]) -> String {
    format!(
        "{} because the network is in use: for the new values delete the pods that use it, then this \
         NetworkAttachmentDefinition, and create it again",
        stays.join("; ")
    )
}

#[cfg(test)]
#[path = "nad_tests.rs"]
mod tests;
