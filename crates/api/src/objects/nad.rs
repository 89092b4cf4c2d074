//! The NetworkAttachmentDefinition of the Network Plumbing Working Group.

use serde::{Deserialize, Serialize};

/// Its only field.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NadSpec {
    /// A CNI configuration or configuration list, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

#[cfg(feature = "objects")]
pub use object::NetworkAttachmentDefinition;

/// Written by hand: the standard lets the spec be absent, and one such object must not keep us from
/// reading the others.
#[cfg(feature = "objects")]
mod object {
    use super::NadSpec;
    use k8s_openapi::NamespaceResourceScope;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::Resource;
    use serde::{Deserialize, Serialize};
    use std::borrow::Cow;

    const API_VERSION: &str = "k8s.cni.cncf.io/v1";
    const KIND: &str = "NetworkAttachmentDefinition";

    /// The object.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct NetworkAttachmentDefinition {
        #[serde(default = "api_version")]
        api_version: String,
        #[serde(default = "kind")]
        kind: String,
        /// Name, namespace, annotations.
        #[serde(default)]
        pub metadata: ObjectMeta,
        /// The configuration, if there is one.
        #[serde(default)]
        pub spec: NadSpec,
    }

    impl NetworkAttachmentDefinition {
        /// An object of that name.
        pub fn new(name: &str, spec: NadSpec) -> Self {
            Self {
                api_version: api_version(),
                kind: kind(),
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    ..ObjectMeta::default()
                },
                spec,
            }
        }
    }

    impl Resource for NetworkAttachmentDefinition {
        type DynamicType = ();
        type Scope = NamespaceResourceScope;

        fn kind(_: &()) -> Cow<'_, str> {
            KIND.into()
        }

        fn group(_: &()) -> Cow<'_, str> {
            "k8s.cni.cncf.io".into()
        }

        fn version(_: &()) -> Cow<'_, str> {
            "v1".into()
        }

        fn api_version(_: &()) -> Cow<'_, str> {
            API_VERSION.into()
        }

        fn plural(_: &()) -> Cow<'_, str> {
            "network-attachment-definitions".into()
        }

        fn meta(&self) -> &ObjectMeta {
            &self.metadata
        }

        fn meta_mut(&mut self) -> &mut ObjectMeta {
            &mut self.metadata
        }
    }

    fn api_version() -> String {
        API_VERSION.to_owned()
    }

    fn kind() -> String {
        KIND.to_owned()
    }
}
