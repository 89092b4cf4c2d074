//! A NetworkAttachmentDefinition of ours and the Network that stands for it: made, followed and
//! removed with it. What cannot be done is said by an Event on the NAD.

use crate::api::Failure;
use crate::api_multi_nic::KIND as MULTI_NIC;
use crate::cache::{AnyNad, NadView, Name, NetworkView};
use crate::decide::nad::{self, NadMeaning, Reading};
use crate::engine::Engine;
use crate::events::EventSubject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::PartialObjectMeta;
use kube::{Api, Resource, ResourceExt};
use plexus_api::cni::NetworkConfigKind;
use plexus_api::objects::{Network, NetworkSpec};
use plexus_types::chain;
use serde_json::{Value, json};

const API_VERSION: &str = "k8s.cni.cncf.io/v1";
const KIND: &str = "NetworkAttachmentDefinition";

impl Engine {
    /// Makes a NAD's Network what the NAD asks for.
    pub(crate) async fn nad(&mut self, name: &Name) -> Result<(), Failure> {
        let net = self.cache.networks.get(name).cloned();
        let Some(nad) = self.cache.nads.get(name).cloned() else {
            return match net {
                Some(net) => self.nad_gone(name, &net).await,
                None => Ok(()),
            };
        };
        if nad.id.deleting {
            return Ok(());
        }
        let Reading { meaning, warnings } = read(&nad);
        match (meaning, net) {
            (NadMeaning::Unclear(why), _) => self.warn(name, &nad, "InvalidConfig", &why).await?,
            (NadMeaning::Nothing, None) => {}
            (NadMeaning::Nothing, Some(net)) => self.nad_asks_no_more(name, &nad, &net).await?,
            (NadMeaning::Network(spec), None) => self.create_for(name, &nad, &spec).await?,
            (NadMeaning::Network(spec), Some(net)) => self.follow(name, &nad, &net, &spec).await?,
        }
        for warning in warnings {
            self.warn(name, &nad, "ConfigWarning", &warning).await?;
        }
        let config = nad.config.as_ref().ok().and_then(Option::as_deref);
        // Of one that was made from a multi-NIC network, that says it.
        let made = nad
            .owner
            .as_ref()
            .is_some_and(|(kind, _)| kind == MULTI_NIC);
        if let Some(text) = config.filter(|_| !made).and_then(waits) {
            self.warn(name, &nad, "Waiting", text).await?;
        }
        Ok(())
    }

    /// What a network is, and what the NAD that it was made from asks for.
    pub(crate) fn nad_spec(
        &self,
        name: &Name,
        net: &NetworkView,
    ) -> Option<(NetworkSpec, NetworkSpec)> {
        let nad = self
            .cache
            .nads
            .get(name)
            .filter(|nad| is_made_from(net, &nad.id.uid))?;
        match (read(nad).meaning, &net.spec) {
            (NadMeaning::Network(wanted), Ok(now)) => Some((now.clone(), *wanted)),
            _ => None,
        }
    }

    /// Whether pods are on a network, or nodes have blocks of it.
    pub(crate) fn is_in_use(&self, net: &NetworkView) -> bool {
        self.cache.users(net.uuid()).count > 0 || self.cache.blocks_of(&net.id.uid).next().is_some()
    }

    /// The NAD of a network is not in the cache: if it is gone indeed, so goes the network.
    async fn nad_gone(&mut self, name: &Name, net: &NetworkView) -> Result<(), Failure> {
        let Some((_, uid)) = net.owner.as_ref().filter(|(kind, _)| kind == KIND) else {
            return Ok(());
        };
        if net.id.deleting {
            return Ok(());
        }
        let api: Api<PartialObjectMeta<AnyNad>> =
            Api::namespaced(self.cluster.client.clone(), &name.namespace);
        let there = self.cluster.uid_of(api, KIND, &name.name).await?;
        if there.and_then(|nad| nad.uid()).as_deref() == Some(uid.as_str()) {
            return Ok(());
        }
        tracing::info!(network = %name, "its NetworkAttachmentDefinition is gone: deleting it");
        self.cluster.delete_network(name, &net.id.uid).await
    }

    /// The NAD is there and asks for no network (any more).
    async fn nad_asks_no_more(
        &mut self,
        name: &Name,
        nad: &NadView,
        net: &NetworkView,
    ) -> Result<(), Failure> {
        if !is_made_from(net, &nad.id.uid) {
            return Ok(());
        }
        if self.is_in_use(net) {
            let message = "the Network that was made from this is deleted, because this no longer asks for one; \
                           it stays until no pod uses it";
            self.warn(name, nad, "NetworkInUse", message).await?;
        }
        if net.id.deleting {
            return Ok(());
        }
        self.cluster.delete_network(name, &net.id.uid).await
    }

    async fn create_for(
        &mut self,
        name: &Name,
        nad: &NadView,
        spec: &NetworkSpec,
    ) -> Result<(), Failure> {
        let mut network = Network::new(&name.name, spec.clone());
        network.meta_mut().owner_references = Some(vec![OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            name: name.name.clone(),
            uid: nad.id.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        }]);
        match self.cluster.create_network(name, &network).await {
            Ok(Some(net)) => {
                tracing::info!(network = %name, provider = spec.provider_name(), "made from its NetworkAttachmentDefinition");
                self.cache_network(name, net);
                Ok(())
            }
            // Another was faster; its news are on their way.
            Ok(None) => Ok(()),
            Err(failure @ Failure::Refused { .. }) => {
                self.warn(name, nad, "InvalidConfig", &chain(&failure))
                    .await
            }
            Err(failure) => Err(failure),
        }
    }

    async fn follow(
        &mut self,
        name: &Name,
        nad: &NadView,
        net: &NetworkView,
        wanted: &NetworkSpec,
    ) -> Result<(), Failure> {
        if !is_made_from(net, &nad.id.uid) {
            return self.name_taken(name, nad, net).await;
        }
        if net.id.deleting {
            if !self.is_in_use(net) {
                return Ok(());
            }
            let message = "the Network that was made from this was deleted: it is made again once \
                           no pod uses it";
            return self.warn(name, nad, "NetworkDeleted", message).await;
        }
        let Ok(now) = &net.spec else {
            return Ok(());
        };
        let following = nad::follow(now, wanted, self.is_in_use(net));
        if following.recreate {
            tracing::info!(network = %name, "its NetworkAttachmentDefinition asks for another provider: made anew");
            return self.cluster.delete_network(name, &net.id.uid).await;
        }
        if let Some(next) = following.spec {
            let patch = difference(now, &next);
            self.write_spec(name, nad, net, patch).await?;
        }
        if following.stays.is_empty() {
            return Ok(());
        }
        self.warn(name, nad, "NetworkInUse", &nad::describe(&following.stays))
            .await
    }

    /// There is a network of the NAD's name that is not the NAD's.
    async fn name_taken(
        &mut self,
        name: &Name,
        nad: &NadView,
        net: &NetworkView,
    ) -> Result<(), Failure> {
        let of_predecessor = net.owner.as_ref().is_some_and(|(kind, _)| kind == KIND);
        if of_predecessor && !net.id.deleting {
            self.cluster.delete_network(name, &net.id.uid).await?;
        }
        let message = if of_predecessor {
            "waits until the Network that was made from an earlier NetworkAttachmentDefinition of \
             this name is gone: see its status"
        } else {
            "there is a Network of this name that was not made from this: rename one of them; \
             until then this refers to nothing"
        };
        self.warn(name, nad, "NameTaken", message).await
    }

    async fn write_spec(
        &mut self,
        name: &Name,
        nad: &NadView,
        net: &NetworkView,
        spec: Value,
    ) -> Result<(), Failure> {
        match self
            .cluster
            .patch_network(name, &net.id, None, Some(spec))
            .await
        {
            Ok(net) => {
                tracing::info!(network = %name, "follows its NetworkAttachmentDefinition");
                self.cache_network(name, net);
                Ok(())
            }
            Err(failure @ Failure::Refused { .. }) => {
                self.warn(name, nad, "CannotFollow", &chain(&failure)).await
            }
            Err(failure) => Err(failure),
        }
    }

    async fn warn(
        &mut self,
        name: &Name,
        nad: &NadView,
        reason: &str,
        message: &str,
    ) -> Result<(), Failure> {
        let about = EventSubject {
            api_version: API_VERSION,
            kind: KIND,
            name,
            id: &nad.id,
        };
        self.events
            .warn(&self.cluster, about, reason, message)
            .await
    }
}

fn read(nad: &NadView) -> Reading {
    let config = nad
        .config
        .as_ref()
        .map(Option::as_deref)
        .map_err(String::as_str);
    nad::read(&nad.annotations, config)
}

/// What a NAD waits for, if one of its plugins, or what gives it addresses, is served by a later version.
fn waits(config: &str) -> Option<&'static str> {
    match NetworkConfigKind::of(config) {
        NetworkConfigKind::Waits(_, text) => Some(text),
        _ => None,
    }
}

fn is_made_from(net: &NetworkView, uid: &str) -> bool {
    net.owner
        .as_ref()
        .is_some_and(|(kind, owner)| kind == KIND && owner == uid)
}

/// The merge patch between two specs, in the fields that follow a NAD.
fn difference(now: &NetworkSpec, next: &NetworkSpec) -> Value {
    let mut subnets = json!(next.subnets);
    for key in now
        .subnets
        .keys()
        .filter(|key| !next.subnets.contains_key(*key))
    {
        subnets[key] = Value::Null;
    }
    for key in next.subnets.keys() {
        // A subnet is replaced as a whole: what the old one has besides must not linger.
        for part in ["gateway", "exclude"] {
            if subnets[key].get(part).is_none() {
                subnets[key][part] = Value::Null;
            }
        }
    }
    json!({"snat": next.snat, "subnets": subnets})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plugin_and_its_ipam_is_looked_at() {
        let waits = |config: &str| waits(config).is_some();
        assert!(!waits(r#"{"type":"multi-nic"}"#));
        assert!(waits(r#"{"type":"multus-multivpc-cni"}"#));
        assert!(waits(
            r#"{"type":"ipvlan","master":"eth0","ipam":{"type":"multi-nic-ipam"}}"#
        ));
        assert!(waits(
            r#"{"plugins":[{"type":"bridge"},{"type":"multus-multivpc-cni"}]}"#
        ));
        assert!(!waits(
            r#"{"plugins":[{"type":"bridge","ipam":{"type":"static"}},{"type":"tuning"}]}"#
        ));
        assert!(!waits("{"));
    }
}
