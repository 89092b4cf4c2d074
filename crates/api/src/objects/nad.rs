//! The NetworkAttachmentDefinition of the Network Plumbing Working Group.

use serde::{Deserialize, Serialize};

/// Its only field.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "k8s.cni.cncf.io",
        version = "v1",
        kind = "NetworkAttachmentDefinition",
        plural = "network-attachment-definitions",
        singular = "network-attachment-definition",
        shortname = "net-attach-def",
        namespaced
    )
)]
pub struct NadSpec {
    /// A CNI configuration or configuration list, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}
