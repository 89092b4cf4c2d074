//! What is accepted and kept, but served only by later versions: kinds, plugin types and
//! annotations. Owns the one text that everybody says about each: the controller in its Events, the
//! command line, and the checks of manifests.

use serde_json::Value;
use std::collections::BTreeSet;
use std::iter::once;

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
const MULTI_NIC_IPAM: &str = "it is kept, and waits: the IPAM multi-nic-ipam below a plugin that is executed is not \
    part of this version; until then write a MultiNicNetwork, whose interfaces Plexus makes itself";
/// What is said of a NIC in another VPC.
pub(crate) const MULTI_VPC: &str = "it is kept, and waits: NICs in other VPCs (provider eni) are \
    not part of this version, so that a pod that names it does not start";

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
    /// What is said about its objects.
    pub text: &'static str,
}

/// All of them.
pub const KINDS: [LaterKind; 4] = [
    resource("ResourceClaim", "resourceclaims", true),
    resource("ResourceClaimTemplate", "resourceclaimtemplates", true),
    resource("DeviceClass", "deviceclasses", false),
    LaterKind {
        group: "cni.networking.x-k8s.io",
        version: "v1alpha1",
        kind: "CNIConfig",
        plural: "cniconfigs",
        namespaced: false,
        text: CNI_CONFIG,
    },
];

const fn resource(kind: &'static str, plural: &'static str, namespaced: bool) -> LaterKind {
    LaterKind {
        group: "resource.k8s.io",
        version: "v1",
        kind,
        plural,
        namespaced,
        text: CLAIMS,
    }
}

/// The later kind of that group and name, whatever its version.
pub fn kind(group: &str, kind: &str) -> Option<&'static LaterKind> {
    KINDS
        .iter()
        .find(|later| later.group == group && later.kind == kind)
}

/// The later kind of an object, if it is of one.
pub fn kind_of(object: &Value) -> Option<&'static LaterKind> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, _) = text("apiVersion").split_once('/')?;
    kind(group, text("kind"))
}

/// What an object waits for, if it does. A claim that only other drivers serve is none of ours.
pub fn waits(object: &Value, classes: &Classes) -> Option<&'static str> {
    let later = kind_of(object)?;
    let ours = Served::of(later, object).is_by_us(classes);
    ours.then_some(later.text)
}

/// The names of the DeviceClasses that lead to our driver. [`DEVICE_CLASS`] does, whether it is there or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes(BTreeSet<String>);

impl Classes {
    /// Those among the objects; of two with one name the last counts.
    pub fn of<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut classes = Self::default();
        for object in objects {
            if let Some(later) = kind_of(object).filter(|later| later.kind == CLASS) {
                let ours = Served::of(later, object) == Served::ByUs;
                classes.set(name(object), ours);
            }
        }
        classes
    }

    /// Says of a class whether it leads to our driver; gives whether it does now and did not before.
    pub fn set(&mut self, name: &str, ours: bool) -> bool {
        let before = self.has(name);
        match ours {
            true => self.0.insert(name.to_owned()),
            false => self.0.remove(name),
        };
        ours && !before
    }

    /// Whether the class of that name leads to our driver.
    pub fn has(&self, name: &str) -> bool {
        name == DEVICE_CLASS || self.0.contains(name)
    }
}

/// By whom an object of a later kind is served, as far as it says so itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// By us.
    ByUs,
    /// By us if one of these DeviceClasses leads to our driver; by others if none does.
    ByClasses(BTreeSet<String>),
}

impl Served {
    /// By what stands in the object.
    pub fn of(later: &LaterKind, object: &Value) -> Self {
        let at = |pointer: &str| object.pointer(pointer).unwrap_or(&Value::Null);
        match later.kind {
            "ResourceClaim" => Self::of_devices(at("/spec/devices")),
            "ResourceClaimTemplate" => Self::of_devices(at("/spec/spec/devices")),
            CLASS if name(object) != DEVICE_CLASS && !names_driver(at("/spec")) => {
                Self::ByClasses(BTreeSet::new())
            }
            _ => Self::ByUs,
        }
    }

    /// Whether that is us, by what is known of the classes.
    pub fn is_by_us(&self, classes: &Classes) -> bool {
        match self {
            Self::ByUs => true,
            Self::ByClasses(named) => named.iter().any(|name| classes.has(name)),
        }
    }

    fn of_devices(devices: &Value) -> Self {
        if names_driver(devices) || device_requests(devices).any(names_driver) {
            return Self::ByUs;
        }
        let named =
            device_requests(devices).filter_map(|request| request.get("deviceClassName")?.as_str());
        Self::ByClasses(named.map(str::to_owned).collect())
    }
}

/// What a NAD of that plugin type waits for, if it does.
pub fn plugin_waits(plugin: &str) -> Option<&'static str> {
    match plugin {
        "multi-nic-ipam" => Some(MULTI_NIC_IPAM),
        "multus-multivpc-cni" => Some(MULTI_VPC),
        _ => None,
    }
}

const CLASS: &str = "DeviceClass";

fn name(object: &Value) -> &str {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// Each thing that a claim asks for: a request as older versions write it, what it wants exactly, its alternatives.
fn device_requests(devices: &Value) -> impl Iterator<Item = &Value> {
    items(devices, "requests").flat_map(|request| {
        let alternatives = items(request, "firstAvailable");
        once(request)
            .chain(request.get("exactly"))
            .chain(alternatives)
    })
}

/// Whether a class, a claim's devices or a request names our driver, in its conditions or its configuration.
fn names_driver(value: &Value) -> bool {
    let conditions = ["selectors", "constraints"].into_iter();
    let mut conditions = conditions.filter_map(|key| value.get(key));
    let is_for_us = |config: &Value| {
        let driver = config.pointer("/opaque/driver");
        driver.and_then(Value::as_str) == Some(DRA_DRIVER)
    };
    conditions.any(|one| mentions(one, DRA_DRIVER)) || items(value, "config").any(is_for_us)
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    let list = value.get(key).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Whether a text anywhere in there has the word, not as a part of a longer name. What an expression says of it is
/// not understood: one that excludes our driver counts as one that asks for it.
fn mentions(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => text
            .match_indices(word)
            .any(|(at, _)| stands_alone(text, at, word)),
        Value::Array(items) => items.iter().any(|item| mentions(item, word)),
        Value::Object(map) => map.values().any(|item| mentions(item, word)),
        _ => false,
    }
}

fn stands_alone(text: &str, at: usize, word: &str) -> bool {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let (before, after) = (text.get(..at), text.get(at + word.len()..));
    let longer = before.is_some_and(|text| text.ends_with(of_a_name))
        || after.is_some_and(|text| text.starts_with(of_a_name));
    !longer
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NONE: Classes = Classes(BTreeSet::new());

    fn claim(request: &Value) -> Value {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "spec": {"devices": {"requests": [{"name": "other"}, request]}}})
    }

    fn exactly(class: &str) -> Value {
        claim(&json!({"name": "a", "exactly": {"deviceClassName": class}}))
    }

    fn class(name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": {"name": name}, "spec": spec})
    }

    fn selectors(driver: &str) -> Value {
        let expression = format!("device.driver == \"{driver}\"");
        json!({"selectors": [{"cel": {"expression": expression}}]})
    }

    #[test]
    fn only_our_claims_wait() {
        assert!(
            waits(&exactly(DEVICE_CLASS), &NONE)
                .unwrap()
                .contains("DRA driver")
        );
        assert_eq!(waits(&exactly("gpu.example.com"), &NONE), None);
        let template = json!({"apiVersion": "resource.k8s.io/v1beta1", "kind":
            "ResourceClaimTemplate", "spec": {"spec": exactly(DEVICE_CLASS)["spec"]}});
        assert!(waits(&template, &NONE).is_some());
        // Who configures our driver, or selects its devices, asks it, whatever the class.
        let configured = |driver: &str| {
            let mut claim = exactly("any");
            claim["spec"]["devices"]["config"] = json!([{"opaque": {"driver": driver}}]);
            claim
        };
        assert!(waits(&configured(DRA_DRIVER), &NONE).is_some());
        assert_eq!(
            waits(&configured(&format!("not-{DRA_DRIVER}")), &NONE),
            None
        );
        let mut selected = exactly("any");
        selected["spec"]["devices"]["requests"][1]["exactly"]["selectors"] =
            selectors(DRA_DRIVER)["selectors"].clone();
        assert!(waits(&selected, &NONE).is_some());
        let mut constrained = exactly("any");
        constrained["spec"]["devices"]["constraints"] =
            json!([{"matchAttribute": format!("{DRA_DRIVER}/nic")}]);
        assert!(waits(&constrained, &NONE).is_some());
    }

    #[test]
    fn a_claim_is_ours_by_its_class() {
        let classes = Classes::of(&[
            class("fast-nic", &selectors(DRA_DRIVER)),
            class("gpu", &selectors("gpu.example.com")),
        ]);
        let alternatives = json!({"name": "a", "firstAvailable": [
            {"name": "x", "deviceClassName": "gpu"}, {"name": "y", "deviceClassName": "fast-nic"}]});
        for ours in [
            exactly("fast-nic"),
            claim(&json!({"name": "a", "deviceClassName": "fast-nic"})),
            claim(&alternatives),
            exactly(DEVICE_CLASS),
        ] {
            assert!(waits(&ours, &classes).is_some(), "{ours}");
            let template = json!({"apiVersion": "resource.k8s.io/v1", "kind":
                "ResourceClaimTemplate", "spec": {"spec": ours["spec"]}});
            assert!(waits(&template, &classes).is_some(), "{template}");
        }
        for others in [
            exactly("gpu"),
            exactly("fast-nic-2"),
            exactly("fast"),
            exactly(&format!("not-{DEVICE_CLASS}")),
            exactly(DRA_DRIVER),
            // A request's own name says nothing.
            claim(&json!({"name": "fast-nic", "exactly": {"deviceClassName": "gpu"}})),
            claim(&json!({"exactly": "fast-nic", "firstAvailable": "fast-nic"})),
        ] {
            assert_eq!(waits(&others, &classes), None, "{others}");
        }
        assert_eq!(waits(&exactly("fast-nic"), &NONE), None);
    }

    #[test]
    fn classes_that_lead_to_our_driver() {
        let configured = json!({"config": [{"opaque": {"driver": DRA_DRIVER}}]});
        for ours in [
            class(DEVICE_CLASS, &json!({})),
            class("a", &selectors(DRA_DRIVER)),
            class("a", &configured),
        ] {
            assert!(waits(&ours, &NONE).is_some(), "{ours}");
        }
        let mut labelled = class("a", &selectors("gpu.example.com"));
        labelled["metadata"]["annotations"] = json!({"instead-of": DRA_DRIVER});
        for others in [
            labelled,
            class(&format!("{DEVICE_CLASS}-2"), &json!({})),
            class("a", &selectors(&format!("not-{DRA_DRIVER}"))),
            class("a", &selectors(&format!("{DRA_DRIVER}.example.com"))),
        ] {
            assert_eq!(waits(&others, &NONE), None, "{others}");
        }
        // The last of a name counts, ours stays, and what is no class is passed over.
        let mut classes = Classes::of(&[
            class("a", &selectors(DRA_DRIVER)),
            class("a", &selectors("gpu.example.com")),
            class(DEVICE_CLASS, &selectors("gpu.example.com")),
            json!({"kind": "DeviceClass", "metadata": {"name": "a"}, "spec": configured}),
            json!(null),
        ]);
        assert!(!classes.has("a") && classes.has(DEVICE_CLASS));
        assert!(classes.set("a", true) && !classes.set("a", true) && classes.has("a"));
        assert!(!classes.set("a", false) && !classes.has("a"));
        assert!(!classes.set(DEVICE_CLASS, true), "nothing new");
    }

    #[test]
    fn kinds_of_other_projects_wait() {
        let config = json!({"apiVersion": "cni.networking.x-k8s.io/v1alpha1", "kind": "CNIConfig"});
        assert!(waits(&config, &NONE).is_some());
        for object in [
            json!({"apiVersion": "v1", "kind": "Pod"}),
            json!({"apiVersion": "other.io/v1", "kind": "CIDR"}),
            json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork"}),
            json!({}),
            json!([]),
        ] {
            assert_eq!(waits(&object, &NONE), None, "{object}");
        }
        assert!(plugin_waits("multus-multivpc-cni").is_some());
        assert_eq!(plugin_waits("macvlan"), None);
    }
}
