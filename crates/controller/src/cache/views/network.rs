//! Networks and the NetworkAttachmentDefinitions that some are made from.

use super::{Identity, View};
use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::DeserializeGuard;
use plexus_api::objects::{Network, NetworkSpec, NetworkStatus};
use plexus_core::resolve::too_large;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A Network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NetworkView {
    pub(crate) id: Identity,
    /// The owner that made it, if it has one: kind and UID.
    pub(crate) owner: Option<(String, String)>,
    /// What it asks for, or why that cannot be read.
    pub(crate) spec: Result<NetworkSpec, String>,
    pub(crate) status: NetworkStatus,
}

impl NetworkView {
    /// The block that a node claims to have a block of this network; none: that is not this network's.
    pub(crate) fn whole_block(&self, block: &IpNet) -> Option<IpNet> {
        let spec = self.spec.as_ref().ok()?;
        spec.whole_block(&self.status.subnets, block)
    }

    /// How records refer to it.
    pub(crate) fn uuid(&self) -> &str {
        let given = self
            .spec
            .as_ref()
            .ok()
            .and_then(|spec| spec.uuid.as_deref());
        given
            .filter(|uuid| !uuid.is_empty())
            .unwrap_or(&self.id.uid)
    }
}

impl View for NetworkView {
    type Object = DeserializeGuard<Network>;

    fn of(object: Self::Object) -> Self {
        let meta = object.meta();
        let (id, owner) = (Identity::of(meta), controller(meta));
        let (spec, status) = match object.0 {
            Ok(network) => (Ok(network.spec), network.status.unwrap_or_default()),
            Err(invalid) => (Err(invalid.error), NetworkStatus::default()),
        };
        NetworkView {
            id,
            owner,
            spec,
            status,
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A NetworkAttachmentDefinition. Its CRD may be somebody else's, so anything may be in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NadView {
    pub(crate) id: Identity,
    /// The owner that made it, if it has one: kind and UID.
    pub(crate) owner: Option<(String, String)>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// `spec.config`; none if there is none; not one that nodes do not keep.
    pub(crate) config: Result<Option<String>, String>,
}

/// A NAD as loosely as it can be read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AnyNad {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: serde_json::Value,
}

impl Resource for AnyNad {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "NetworkAttachmentDefinition".into()
    }
    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "k8s.cni.cncf.io".into()
    }
    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "network-attachment-definitions".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl View for NadView {
    type Object = AnyNad;

    fn of(object: AnyNad) -> Self {
        use serde_json::Value;
        let config = match object.spec.get("config") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if let Some(why) = too_large(text.len()) => {
                Err(format!("spec.config is too large: {why}"))
            }
            Some(Value::String(text)) => Ok((!text.trim().is_empty()).then(|| text.clone())),
            Some(_) => {
                Err("spec.config is not text: write the CNI configuration as one string".to_owned())
            }
        };
        let ours = |key: &String| key.starts_with("opencontrail.org/");
        let annotations = object.metadata.annotations.iter().flatten();
        NadView {
            id: Identity::of(&object.metadata),
            owner: controller(&object.metadata),
            annotations: annotations
                .filter(|(key, _)| ours(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            config,
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

fn controller(meta: &ObjectMeta) -> Option<(String, String)> {
    let mut owners = meta.owner_references.iter().flatten();
    owners
        .find(|owner: &&OwnerReference| owner.controller == Some(true))
        .map(|owner| (owner.kind.clone(), owner.uid.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_core::resolve::MAX_KEPT_CONFIG;
    use serde_json::json;

    fn nad(object: serde_json::Value) -> NadView {
        NadView::of(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_network_that_cannot_be_read_is_still_a_network() {
        for spec in [
            json!({"cidr": "10.0.0.0/8"}),
            json!("text"),
            json!({"subnets": {"a": {"cidr": "x"}}}),
        ] {
            let object = json!({"metadata": {"name": "x", "namespace": "y", "uid": "u", "finalizers": ["f"]}, "spec": spec});
            let net = NetworkView::of(serde_json::from_value(object).unwrap());
            assert_eq!((net.id.uid.as_str(), net.uuid()), ("u", "u"));
            assert!(net.spec.is_err() && net.status == NetworkStatus::default());
        }
    }

    #[test]
    fn a_nad_may_be_anything() {
        let meta =
            json!({"name": "x", "annotations": {"opencontrail.org/cidr": "c", "other": "o"}});
        for (spec, config) in [
            (json!(null), Ok(None)),
            (json!([1, 2]), Ok(None)),
            (json!({"config": null}), Ok(None)),
            (json!({"config": "  "}), Ok(None)),
            (json!({"config": "{}"}), Ok(Some("{}".to_owned()))),
        ] {
            let nad = nad(json!({"metadata": meta, "spec": spec}));
            assert_eq!(nad.config, config);
            assert_eq!(nad.annotations.len(), 1);
        }
        assert_eq!(nad(json!({"metadata": meta})).config, Ok(None));
        assert!(
            nad(json!({"metadata": meta, "spec": {"config": {"type": "macvlan"}}}))
                .config
                .is_err()
        );
    }

    /// There may be hundreds of a megabyte each.
    #[test]
    fn of_a_nad_no_more_is_kept_than_nodes_keep() {
        let with = |size: usize| {
            nad(json!({"metadata": {"name": "x"}, "spec": {"config": "x".repeat(size)}})).config
        };
        assert!(with(MAX_KEPT_CONFIG).is_ok());
        let why = with(MAX_KEPT_CONFIG + 1).unwrap_err();
        assert!(why.contains("65537 bytes"), "{why}");
    }

    #[test]
    fn a_given_identity_counts_and_another_version_is_no_difference() {
        let object = |version: &str| json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": version}, "spec": {"uuid": "given"}});
        let net = |version: &str| NetworkView::of(serde_json::from_value(object(version)).unwrap());
        assert_eq!(net("1").uuid(), "given");
        assert!(net("1") == net("2"));
    }
}
