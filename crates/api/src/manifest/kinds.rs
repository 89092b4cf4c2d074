//! The kinds that a manifest may have: which are read how, where their objects are, and which
//! versions are gone.

use crate::cni::parse::choice;
use crate::later;
use crate::objects::{
    Block, BlockRequest, Cidr, GROUP, HostInterface, IpPool, MULTI_NIC_GROUP, MULTI_NIC_SUCCESSOR,
    MULTI_NIC_VERSION, MultiNicNetwork, Network, PodAttachments, VERSION,
};
use crate::text::quoted;
use Scope::{Cluster, Namespaced};
use k8s_openapi::Resource;
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
    /// The same, and what it means.
    MultiNic(RoundTrip),
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

const KINDS: [Kind; 27] = [
    Kind {
        reading: Reading::Network,
        ..own::<Network>("Network", Namespaced)
    },
    own::<Block>("Block", Cluster),
    own::<BlockRequest>("BlockRequest", Cluster),
    own::<PodAttachments>("PodAttachments", Namespaced),
    Kind {
        group: "k8s.cni.cncf.io",
        version: "v1",
        kind: "NetworkAttachmentDefinition",
        scope: Namespaced,
        reading: Reading::Nad,
    },
    of::<Pod>(Namespaced, Reading::Pod(round_trip::<Pod>)),
    typed::<Namespace>(Cluster),
    typed::<Node>(Cluster),
    typed::<ConfigMap>(Namespaced),
    typed::<Event>(Namespaced),
    typed::<Lease>(Namespaced),
    workload::<Deployment>("spec.template"),
    workload::<ReplicaSet>("spec.template"),
    workload::<DaemonSet>("spec.template"),
    workload::<StatefulSet>("spec.template"),
    workload::<Job>("spec.template"),
    workload::<CronJob>("spec.jobTemplate.spec.template"),
    typed::<CustomResourceDefinition>(Cluster),
    typed::<ResourceClaim>(Namespaced),
    typed::<ResourceClaimTemplate>(Namespaced),
    typed::<DeviceClass>(Cluster),
    plain("cni.networking.x-k8s.io", "v1alpha1", "CNIConfig"),
    Kind {
        reading: Reading::MultiNic(round_trip::<MultiNicNetwork>),
        ..multi_nic::<MultiNicNetwork>(MULTI_NIC_GROUP, "MultiNicNetwork")
    },
    Kind {
        reading: Reading::MultiNic(round_trip::<MultiNicNetwork>),
        ..multi_nic::<MultiNicNetwork>(MULTI_NIC_SUCCESSOR, "MultiNicNetwork")
    },
    multi_nic::<Cidr>(MULTI_NIC_GROUP, "CIDR"),
    multi_nic::<HostInterface>(MULTI_NIC_GROUP, "HostInterface"),
    multi_nic::<IpPool>(MULTI_NIC_GROUP, "IPPool"),
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
    typed::<v1beta1::ResourceClaim>(Namespaced),
    typed::<v1beta1::ResourceClaimTemplate>(Namespaced),
    typed::<v1beta1::DeviceClass>(Cluster),
];

const fn own<T: DeserializeOwned + Serialize>(kind: &'static str, scope: Scope) -> Kind {
    Kind {
        group: GROUP,
        version: VERSION,
        kind,
        scope,
        reading: Reading::Own(round_trip::<T>),
    }
}

const fn multi_nic<T: DeserializeOwned + Serialize>(
    group: &'static str,
    kind: &'static str,
) -> Kind {
    Kind {
        group,
        version: MULTI_NIC_VERSION,
        kind,
        scope: Cluster,
        reading: Reading::Own(round_trip::<T>),
    }
}

const fn of<T: Resource>(scope: Scope, reading: Reading) -> Kind {
    Kind {
        group: T::GROUP,
        version: T::VERSION,
        kind: T::KIND,
        scope,
        reading,
    }
}

const fn typed<T: Resource + DeserializeOwned + Serialize>(scope: Scope) -> Kind {
    of::<T>(scope, Reading::Typed(round_trip::<T>))
}

const fn workload<T: Resource + DeserializeOwned + Serialize>(path: &'static str) -> Kind {
    of::<T>(Namespaced, Reading::Template(path, round_trip::<T>))
}

const fn plain(group: &'static str, version: &'static str, kind: &'static str) -> Kind {
    Kind {
        group,
        version,
        kind,
        scope: Cluster,
        reading: Reading::Plain,
    }
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
        let mut kinds = KINDS.iter();
        kinds.find(|kind| (kind.group, kind.kind) == (group, name))
    };
    let mut gone = GONE.iter();
    if let Some(gone) = gone.find(|gone| (gone.group, gone.version) == (group, version)) {
        let mut old = OLD.iter();
        let old = old.find(|old| (old.group, old.version, old.kind) == (group, version, name));
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
    let ours = KINDS.iter().filter(|kind| kind.group == group);
    let ours: Vec<&str> = ours.map(|kind| kind.kind).collect();
    Some(format!(
        "{} is no kind of {group}: {}there are {}",
        quoted(name),
        choice::did_you_mean(name, &ours),
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
    let mut kinds = KINDS.iter();
    let known = kinds.find(|kind| (kind.group, kind.kind) == (group, name));
    known.map(|kind| kind.scope).or_else(|| {
        let later = later::kind(group, name)?;
        Some(if later.namespaced {
            Namespaced
        } else {
            Cluster
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
