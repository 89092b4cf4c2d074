//! What a NetworkAttachmentDefinition asks of us: a Network of its own, or nothing; and what of a
//! changed one can be followed.

use plexus_api::nad::{self, Contrail};
use plexus_api::objects::{NetworkSpec, Subnet};
use std::collections::BTreeMap;

/// What a NAD asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wish {
    /// A Network of its namespace and name.
    Network(Box<NetworkSpec>),
    /// Nothing: another plugin's, a reference to a network that is there, or no configuration.
    Nothing,
    /// It cannot be understood, and why.
    Unclear(String),
}

/// A NAD, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) wish: Wish,
    /// What its author should know all the same.
    pub(crate) warnings: Vec<String>,
}

/// Reads `spec.config` and the annotations.
pub(crate) fn read(
    annotations: &BTreeMap<String, String>,
    config: Result<Option<&str>, &str>,
) -> Reading {
    let just = |wish| Reading {
        wish,
        warnings: Vec::new(),
    };
    let text = match config {
        Ok(Some(text)) => text,
        Ok(None) => return just(Wish::Nothing),
        Err(error) => return just(Wish::Unclear(error.to_owned())),
    };
    let (config, mut warnings) = match nad::config(text) {
        Ok(read) => read,
        Err(problems) => return just(Wish::Unclear(problems.to_string())),
    };
    if !nad::is_named(&config) {
        return Reading {
            wish: Wish::Nothing,
            warnings,
        };
    }
    let wish = match (nad::named(&config), Contrail::read(annotations)) {
        (Ok(named), Ok(mut contrail)) => {
            warnings.append(&mut contrail.warnings);
            wish(named.is_some(), contrail)
        }
        (named, contrail) => {
            let problems = [named.err(), contrail.err()].into_iter().flatten();
            Wish::Unclear(
                problems
                    .map(|p| p.to_string())
                    .collect::<Vec<_>>()
                    .join("; "),
            )
        }
    };
    Reading { wish, warnings }
}

fn wish(refers: bool, contrail: Contrail) -> Wish {
    if refers || contrail.network.is_some() {
        return if contrail.cidrs.is_empty() {
            Wish::Nothing
        } else {
            Wish::Unclear(format!(
                "it both refers to a network that is there ({}) and asks for one of its own ({}): remove one",
                "opencontrail.org/network",
                nad::CIDR
            ))
        };
    }
    if contrail.cidrs.is_empty() && !contrail.snat && !contrail.forwarding {
        return Wish::Nothing;
    }
    Wish::Network(Box::new(contrail.spec()))
}

/// How an existing Network becomes what its NAD asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Following {
    /// The spec to write; none if there is nothing to change.
    pub(crate) spec: Option<NetworkSpec>,
    /// What stays although the NAD says otherwise; empty if nothing does.
    pub(crate) stays: Vec<String>,
    /// It cannot be changed but made anew: the provider or the addresses of a subnet are others.
    pub(crate) anew: bool,
}

/// `in_use`: pods are on it, or nodes have blocks of it. Then subnets may be added, not changed.
pub(crate) fn follow(now: &NetworkSpec, wish: &NetworkSpec, in_use: bool) -> Following {
    let mut next = now.clone();
    let mut stays = Vec::new();
    let other_provider = now.provider_name() != wish.provider_name();
    let readdressed = now.subnets.iter().any(|(key, subnet)| {
        let wish = wish.subnets.get(key);
        wish.is_some_and(|wish| wish.cidr != subnet.cidr)
    });
    let anew = !in_use && (other_provider || readdressed);
    if !other_provider {
        next.snat = wish.snat;
    } else if in_use {
        stays.push(format!("provider stays {}", now.provider_name()));
    }
    let kept = now.subnets.iter().all(|(key, subnet)| {
        wish.subnets
            .get(key)
            .is_some_and(|wish| wish.cidr == subnet.cidr)
    });
    if kept || !in_use {
        // What somebody added to a subnet of ours (a gateway, excludes) stays with it.
        let same = |key: &String, wish: &Subnet| {
            now.subnets
                .get(key)
                .filter(|now| now.cidr == wish.cidr)
                .cloned()
        };
        next.subnets = wish
            .subnets
            .iter()
            .map(|(key, wish)| (key.clone(), same(key, wish).unwrap_or_else(|| wish.clone())))
            .collect();
    } else {
        let cidrs = now.subnets.values().map(|subnet| subnet.cidr.to_string());
        stays.push(format!(
            "subnets stay {}",
            cidrs.collect::<Vec<_>>().join(", ")
        ));
    }
    Following {
        spec: (next != *now).then_some(next).filter(|_| !anew),
        anew,
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
