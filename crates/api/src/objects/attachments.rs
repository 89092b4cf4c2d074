//! `PodAttachments`: what a pod has, written by its node's agent after the fact.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// Whose record it is. In the pod's namespace, named by the pod's UID; with the node behind it if another node has taken that name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "plexus.dev",
        version = "v1alpha1",
        kind = "PodAttachments",
        plural = "podattachments",
        namespaced,
        status = "PodAttachmentsStatus",
        shortname = "patt"
    ),
    schemars(extend("x-kubernetes-validations" = super::rules::ATTACHMENTS))
)]
pub struct PodAttachmentsSpec {
    /// The pod.
    pub pod: PodIdentity,
    /// The node that made them.
    pub node: String,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct PodIdentity {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// A network, by name and by identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct NetworkRef {
    /// Its namespace; empty for the cluster-wide default network.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity: `spec.uuid`, else the object's UID.
    #[serde(default)]
    pub uuid: String,
}

/// What the pod has. Written with `interfaces`, their names in one text, which is what a table of
/// records can show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct PodAttachmentsStatus {
    /// The sandbox that has them.
    #[serde(default)]
    pub sandbox: String,
    /// In order.
    #[serde(default)]
    pub attachments: Vec<AttachmentStatus>,
}

impl Serialize for PodAttachmentsStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let attachments = self.attachments.iter();
        let names: Vec<&str> = attachments.map(|one| one.interface.as_str()).collect();
        let mut status = to.serialize_struct("PodAttachmentsStatus", 3)?;
        status.serialize_field("sandbox", &self.sandbox)?;
        status.serialize_field("interfaces", &names.join(","))?;
        status.serialize_field("attachments", &self.attachments)?;
        status.end()
    }
}

/// One attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct AttachmentStatus {
    /// Which of the pod's references, from 0.
    pub index: u32,
    /// How many references there are.
    pub total: u32,
    /// Which of the interfaces of that reference.
    pub ordinal: u32,
    /// Its own identity.
    pub id: String,
    /// Its network.
    pub network: NetworkRef,
    /// Its name in the pod.
    pub interface: String,
    /// Its MAC address.
    #[serde(default)]
    pub mac: String,
    /// Its addresses with prefix length.
    #[serde(default)]
    pub ips: Vec<String>,
    /// Gateways of its subnets.
    #[serde(default)]
    pub gateways: Vec<String>,
    /// The families whose default route is here: `ipv4`, `ipv6`.
    #[serde(default)]
    pub default_route: Vec<String>,
    /// The routes that it was given, as `ip route add` takes them.
    #[serde(default)]
    pub routes: Vec<String>,
    /// How many routes there are beside those in `routes`: a record has only so many.
    #[serde(default, skip_serializing_if = "is_none")]
    pub routes_left_out: u32,
    /// Rules that lead to tables of its own, as `ip rule add` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// How many rules there are beside those in `rules`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub rules_left_out: u32,
    /// Whether plugins made it: then its routes are those that they told, and there may be more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delegated: bool,
    /// What became of it.
    pub state: AttachmentState,
    /// More about that; empty of one that is attached.
    #[serde(default)]
    pub message: String,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What became of an attachment. All of a pod's interfaces are there or none is: what could not be made is said
/// by Events on the pod, and never recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub enum AttachmentState {
    /// It is there.
    Attached,
}
