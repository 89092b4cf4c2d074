//! The kinds that a manifest may have: which are read how, where their objects are, and which
//! versions are gone.

use crate::cni::parse::choice;
use crate::later;
use crate::objects::{Block, BlockRequest, GROUP, PodAttachments, VERSION};
use crate::text::quoted;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate};
use k8s_openapi::api::resource::v1beta1;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In none.
    Cluster,
}

/// Through the type of a kind and back: what does not come back is unknown.
pub(super) type RoundTrip = fn(&Value) -> Result<Value, serde_json::Error>;

/// A kind.
pub(super) struct Kind {
    group: &'static str,
    version: &'static str,
    pub(super) kind: &'static str,
    pub(super) scope: Scope,
    pub(super) reading: Reading,
}

/// How an object is looked at.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// Field by field.
    Network,
    /// By its definition's schema.
    Own(RoundTrip),
    /// Its annotations and its configuration.
    Nad,
    /// Its annotations, its containers and its type.
    Pod(RoundTrip),
    /// The same at a path in there, and its type.
    Template(&'static str, RoundTrip),
    /// Its type alone.
    Typed(RoundTrip),
    /// Its metadata alone.
    Plain,
}

const KINDS: [Kind; 24] = [
    own("Network", Scope::Namespaced, Reading::Network),
    own("Block", Scope::Cluster, Reading::Own(round_trip::<Block>)),
    own(
        "BlockRequest",
        Scope::Cluster,
        Reading::Own(round_trip::<BlockRequest>),
    ),
    own(
        "PodAttachments",
        Scope::Namespaced,
        Reading::Own(round_trip::<PodAttachments>),
    ),
    kind(
        "k8s.cni.cncf.io",
        "NetworkAttachmentDefinition",
        Scope::Namespaced,
        Reading::Nad,
    ),
    kind(
        "",
        "Pod",
        Scope::Namespaced,
        Reading::Pod(round_trip::<Pod>),
    ),
    kind("", "Namespace", Scope::Cluster, typed::<Namespace>()),
    kind("", "Node", Scope::Cluster, typed::<Node>()),
    kind("", "ConfigMap", Scope::Namespaced, typed::<ConfigMap>()),
    kind("", "Event", Scope::Namespaced, typed::<Event>()),
    kind(
        "coordination.k8s.io",
        "Lease",
        Scope::Namespaced,
        typed::<Lease>(),
    ),
    workload("apps", "Deployment", template::<Deployment>()),
    workload("apps", "ReplicaSet", template::<ReplicaSet>()),
    workload("apps", "DaemonSet", template::<DaemonSet>()),
    workload("apps", "StatefulSet", template::<StatefulSet>()),
    workload("batch", "Job", template::<Job>()),
    workload(
        "batch",
        "CronJob",
        Reading::Template("spec.jobTemplate.spec.template", round_trip::<CronJob>),
    ),
    kind(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        Scope::Cluster,
        typed::<CustomResourceDefinition>(),
    ),
    kind(
        "resource.k8s.io",
        "ResourceClaim",
        Scope::Namespaced,
        typed::<ResourceClaim>(),
    ),
    kind(
        "resource.k8s.io",
        "ResourceClaimTemplate",
        Scope::Namespaced,
        typed::<ResourceClaimTemplate>(),
    ),
    kind(
        "resource.k8s.io",
        "DeviceClass",
        Scope::Cluster,
        typed::<DeviceClass>(),
    ),
    Kind {
        version: "v1alpha1",
        ..kind(
            "cni.networking.x-k8s.io",
            "CNIConfig",
            Scope::Cluster,
            Reading::Plain,
        )
    },
    kind(
        "net.cogadvisor.io",
        "MultiNicNetwork",
        Scope::Cluster,
        Reading::Plain,
    ),
    kind(
        "net.cogadvisor.io",
        "HostInterface",
        Scope::Cluster,
        Reading::Plain,
    ),
];

/// A version that was served once, or is served by few.
struct Gone {
    group: &'static str,
    version: &'static str,
    /// What to write.
    text: &'static str,
    /// The group that has its kinds now.
    now: &'static str,
}

const GONE: [Gone; 3] = [
    Gone {
        group: "apiextensions.k8s.io",
        version: "v1beta1",
        text: "is no longer served: write apiextensions.k8s.io/v1, where the version is an element of \
               `versions`, with `served`, `storage` and `schema`",
        now: "apiextensions.k8s.io",
    },
    Gone {
        group: "resource.k8s.io",
        version: "v1beta1",
        text: "is served only where the API server is told to (--runtime-config): write \
               resource.k8s.io/v1, where what is asked of a request stands under `exactly`",
        now: "resource.k8s.io",
    },
    Gone {
        group: "extensions",
        version: "v1beta1",
        text: "is no longer served: write apps/v1",
        now: "apps",
    },
];

/// Kinds whose objects an API server may still take in their old form.
const OLD: [Kind; 3] = [
    old(
        "ResourceClaim",
        Scope::Namespaced,
        typed::<v1beta1::ResourceClaim>(),
    ),
    old(
        "ResourceClaimTemplate",
        Scope::Namespaced,
        typed::<v1beta1::ResourceClaimTemplate>(),
    ),
    old(
        "DeviceClass",
        Scope::Cluster,
        typed::<v1beta1::DeviceClass>(),
    ),
];

const fn old(name: &'static str, scope: Scope, reading: Reading) -> Kind {
    Kind {
        version: "v1beta1",
        ..kind("resource.k8s.io", name, scope, reading)
    }
}

const fn kind(group: &'static str, kind: &'static str, scope: Scope, reading: Reading) -> Kind {
    Kind {
        group,
        version: "v1",
        kind,
        scope,
        reading,
    }
}

const fn own(kind: &'static str, scope: Scope, reading: Reading) -> Kind {
    Kind {
        group: GROUP,
        version: VERSION,
        kind,
        scope,
        reading,
    }
}

const fn workload(group: &'static str, name: &'static str, reading: Reading) -> Kind {
    kind(group, name, Scope::Namespaced, reading)
}

const fn typed<T: DeserializeOwned + Serialize>() -> Reading {
    Reading::Typed(round_trip::<T>)
}

const fn template<T: DeserializeOwned + Serialize>() -> Reading {
    Reading::Template("spec.template", round_trip::<T>)
}

pub(super) fn round_trip<T: DeserializeOwned + Serialize>(
    object: &Value,
) -> Result<Value, serde_json::Error> {
    serde_json::to_value(T::deserialize(object)?)
}

/// What is known of a group, a version and a kind.
pub(super) enum Known {
    /// It is one of ours to read.
    Kind(&'static Kind),
    /// The kind is known, the version is not: what is wrong with it, and the kind that its objects are looked at as.
    Version(String, &'static Kind),
    /// Neither.
    No,
}

/// Looks a kind up.
pub(super) fn find(api_version: &str, name: &str) -> Known {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let named = |group: &str| {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.kind == name)
    };
    let gone = GONE
        .iter()
        .find(|gone| (gone.group, gone.version) == (group, version));
    if let Some(gone) = gone {
        let old = OLD
            .iter()
            .find(|kind| (kind.group, kind.version, kind.kind) == (group, version, name));
        return match old.or_else(|| named(gone.now)) {
            Some(kind) => Known::Version(gone.text.to_owned(), kind),
            None => Known::No,
        };
    }
    match named(group) {
        Some(kind) if kind.version == version => Known::Kind(kind),
        Some(kind) => {
            let text = format!("is not a version of {name}: write {}", kind.api_version());
            Known::Version(text, kind)
        }
        None => Known::No,
    }
}

/// What is wrong with a kind that our own groups do not have.
pub(super) fn misspelt(api_version: &str, name: &str) -> Option<String> {
    let (group, _) = api_version.split_once('/')?;
    if group != GROUP || later::kind(group, name).is_some() {
        return None;
    }
    let ours: Vec<&str> = KINDS
        .iter()
        .filter(|kind| kind.group == group)
        .map(|kind| kind.kind)
        .collect();
    let meant = choice::meant(name, &ours).map(|meant| format!("did you mean {meant:?}? "));
    Some(format!(
        "{} is no kind of {group}: {}there are {}",
        quoted(name),
        meant.unwrap_or_default(),
        ours.join(", ")
    ))
}

impl Kind {
    pub(super) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// The `apiVersion` of a kind, for who left it out.
pub(super) fn api_version_of(name: &str) -> Option<String> {
    let kind = KINDS.iter().find(|kind| kind.kind == name);
    kind.map(Kind::api_version)
}

/// Where objects of a kind are, as far as it is known here.
pub fn scope_of(api_version: &str, name: &str) -> Option<Scope> {
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    let kind = KINDS
        .iter()
        .find(|kind| kind.kind == name && kind.group == group)
        .map(|kind| kind.scope);
    kind.or_else(|| {
        later::kind(group, name).map(|later| match later.namespaced {
            true => Scope::Namespaced,
            false => Scope::Cluster,
        })
    })
}

/// An object as people call it: `Network team-a/blue`.
pub fn describe_kind(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("");
    let kind = match text("/kind") {
        "" => "object",
        kind => kind,
    };
    let name = match (text("/metadata/name"), text("/metadata/generateName")) {
        ("", "") => return kind.to_owned(),
        ("", generated) => format!("{generated}…"),
        (name, _) => name.to_owned(),
    };
    match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}
