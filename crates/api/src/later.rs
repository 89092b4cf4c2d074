//! What is accepted and kept, but served only by later versions: kinds, plugin types and
//! annotations. Owns the one text that everybody says about each: the controller in its Events, the
//! command line, and the checks of manifests.

use serde_json::Value;

/// The driver that requests of our device class are for.
pub const DRA_DRIVER: &str = "cni.dra.networking.x-k8s.io";
/// The device class of such requests.
pub const DEVICE_CLASS: &str = "cni.networking.x-k8s.io";
/// The profile of a NIC in another VPC, on pods and on NADs.
pub const PROFILE: &str = "cni.soracom.io/multus-multivpc-profile";

const CLAIMS: &str = "it is kept, and waits: the DRA driver cni.dra.networking.x-k8s.io is not part \
    of this version, so that no node can prepare the claim; until then name the network in an \
    annotation of the pod (k8s.v1.cni.cncf.io/networks or plexus.dev/networks)";
const CNI_CONFIG: &str = "it is kept, and waits: claims that refer to it need the DRA driver, which \
    is not part of this version; until then write the configuration into a \
    NetworkAttachmentDefinition";
const MULTI_NIC: &str = "it is kept, and waits: the provider multi-nic is not part of this version, \
    so that no interface is made from it; until then write one NetworkAttachmentDefinition (macvlan, \
    ipvlan) per NIC";
const MULTI_VPC: &str = "it is kept, and waits: NICs in other VPCs (provider eni) are not part of \
    this version, so that a pod that names it does not start";

/// A kind that is served later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaterKind {
    /// Its API group.
    pub group: &'static str,
    /// The version to write.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// As it is called in paths and on the command line.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether its status says how far it is (`configStatus`).
    pub has_phase: bool,
    /// What is said about its objects.
    pub text: &'static str,
}

/// All of them.
pub const KINDS: [LaterKind; 8] = [
    resource("ResourceClaim", "resourceclaims", true),
    resource("ResourceClaimTemplate", "resourceclaimtemplates", true),
    resource("DeviceClass", "deviceclasses", false),
    LaterKind {
        group: "cni.networking.x-k8s.io",
        version: "v1alpha1",
        kind: "CNIConfig",
        plural: "cniconfigs",
        namespaced: false,
        has_phase: false,
        text: CNI_CONFIG,
    },
    multi_nic("MultiNicNetwork", "multinicnetworks", true),
    multi_nic("CIDR", "cidrs", false),
    multi_nic("HostInterface", "hostinterfaces", false),
    multi_nic("IPPool", "ippools", false),
];

const fn resource(kind: &'static str, plural: &'static str, namespaced: bool) -> LaterKind {
    LaterKind {
        group: "resource.k8s.io",
        version: "v1",
        kind,
        plural,
        namespaced,
        has_phase: false,
        text: CLAIMS,
    }
}

const fn multi_nic(kind: &'static str, plural: &'static str, has_phase: bool) -> LaterKind {
    LaterKind {
        group: "net.cogadvisor.io",
        version: "v1",
        kind,
        plural,
        namespaced: false,
        has_phase,
        text: MULTI_NIC,
    }
}

/// The later kind of that group and name, whatever its version.
pub fn kind(group: &str, kind: &str) -> Option<&'static LaterKind> {
    KINDS
        .iter()
        .find(|later| later.group == group && later.kind == kind)
}

/// What an object waits for, if it does. A claim that only other drivers serve is none of ours.
pub fn waits(object: &Value) -> Option<&'static str> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
    let later = kind(group, text("kind"))?;
    let ours = match later.kind {
        "ResourceClaim" => object.pointer("/spec/devices").is_some_and(is_ours),
        "ResourceClaimTemplate" => object.pointer("/spec/spec/devices").is_some_and(is_ours),
        "DeviceClass" => mentions(object, DRA_DRIVER) || mentions(object, DEVICE_CLASS),
        _ => true,
    };
    ours.then_some(later.text)
}

/// What a NAD of that plugin type waits for, if it does.
pub fn plugin_waits(plugin: &str) -> Option<&'static str> {
    match plugin {
        "multi-nic" | "multi-nic-ipam" => Some(MULTI_NIC),
        "multus-multivpc-cni" => Some(MULTI_VPC),
        _ => None,
    }
}

/// Whether the devices of a claim are asked of our driver.
fn is_ours(devices: &Value) -> bool {
    mentions(devices, DEVICE_CLASS) || mentions(devices, DRA_DRIVER)
}

/// Whether a text anywhere in there has the word.
fn mentions(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => text.contains(word),
        Value::Array(items) => items.iter().any(|item| mentions(item, word)),
        Value::Object(map) => map.values().any(|item| mentions(item, word)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_our_claims_wait() {
        let claim = |class: &str| {
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec":
                {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": class}}]}}})
        };
        assert!(waits(&claim(DEVICE_CLASS)).unwrap().contains("DRA driver"));
        assert_eq!(waits(&claim("gpu.example.com")), None);
        let template = json!({"apiVersion": "resource.k8s.io/v1beta1", "kind":
            "ResourceClaimTemplate", "spec": {"spec": claim(DEVICE_CLASS)["spec"]}});
        assert!(waits(&template).is_some());
        let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": {"name": DEVICE_CLASS}});
        assert!(waits(&class).is_some());
    }

    #[test]
    fn kinds_of_other_projects_wait() {
        let network = json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork"});
        assert!(waits(&network).unwrap().contains("multi-nic"));
        let config = json!({"apiVersion": "cni.networking.x-k8s.io/v1alpha1", "kind": "CNIConfig"});
        assert!(waits(&config).is_some());
        for object in [
            json!({"apiVersion": "v1", "kind": "Pod"}),
            json!({"apiVersion": "other.io/v1", "kind": "CIDR"}),
            json!({}),
            json!([]),
        ] {
            assert_eq!(waits(&object), None, "{object}");
        }
        assert!(plugin_waits("multus-multivpc-cni").is_some());
        assert_eq!(plugin_waits("macvlan"), None);
    }
}
