//! What the embedded API serves here: the kinds that it has by itself, ours with their definitions,
//! and the second name that one of them has. The rules of our kinds are in [`validator`].

mod cidr;
mod known;
mod rules;
mod validator;

pub(crate) use validator::KindValidator;

use anyhow::{Context, anyhow};
use plexus_api::objects::MULTI_NIC_SUCCESSOR;
use plexus_embedded::alias::CORE_NETWORK;
use plexus_embedded::kinds::Kinds;
use serde_json::Value;

/// All kinds.
pub(crate) fn all() -> anyhow::Result<Kinds> {
    let mut kinds = Kinds::builtin().map_err(|why| anyhow!(why))?;
    for definition in definitions()? {
        kinds = kinds.with_crd(&definition).map_err(|why| anyhow!(why))?;
    }
    kinds.with_alias(CORE_NETWORK).map_err(|why| anyhow!(why))
}

/// The definitions of our kinds, and of the NAD. Not of the successor's group: nobody serves its MultiNicNetworks here, and
/// kubectl would take them for what `multinicnetworks` means.
fn definitions() -> anyhow::Result<Vec<Value>> {
    let all = plexus_api::objects::crds();
    let served = all
        .iter()
        .filter(|definition| definition.spec.group != MULTI_NIC_SUCCESSOR);
    let all = served.map(serde_json::to_value);
    all.collect::<Result<_, _>>()
        .context("cannot write the definitions of our own kinds")
}

#[cfg(test)]
mod tests {
    #[test]
    fn our_kinds_and_those_of_later_are_served() {
        let kinds = super::all().unwrap();
        for (group, version, plural) in [
            ("plexus.dev", "v1alpha1", "networks"),
            ("plexus.dev", "v1alpha1", "blocks"),
            ("plexus.dev", "v1alpha1", "blockrequests"),
            ("plexus.dev", "v1alpha1", "podattachments"),
            ("k8s.cni.cncf.io", "v1", "network-attachment-definitions"),
            ("", "v1", "networks"),
            ("", "v1", "pods"),
            ("resource.k8s.io", "v1", "resourceclaims"),
            ("resource.k8s.io", "v1", "resourceclaimtemplates"),
            ("resource.k8s.io", "v1", "deviceclasses"),
            ("cni.networking.x-k8s.io", "v1alpha1", "cniconfigs"),
            ("net.cogadvisor.io", "v1", "multinicnetworks"),
            ("net.cogadvisor.io", "v1", "cidrs"),
            ("net.cogadvisor.io", "v1", "hostinterfaces"),
            ("net.cogadvisor.io", "v1", "ippools"),
        ] {
            let served = kinds.get(group, version, plural);
            assert!(served.is_some(), "{plural}.{group}/{version}");
        }
    }
}
