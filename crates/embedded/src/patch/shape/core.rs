//! The core kinds, as a table: only what is not a field that belongs to a type, or a list that is whole.
//! Fields that a newer Kubernetes has are not in it, as the types that check core kinds do not have
//! them either.

use super::{Identity, Items, Key, Members, Rest, Shape, Strategy};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// How patches merge the value at a path.
#[derive(Clone, Copy)]
enum MergeRule {
    /// Entries, each of which somebody owns.
    Entries,
    /// One value.
    Atomic,
    /// A set of scalars, united by strategic patches.
    Set,
    /// Items known by these members, merged by the last word in strategic patches.
    Keyed(&'static [&'static str], &'static str),
    /// Whole for server-side apply, merged by this member in strategic patches.
    Merged(&'static str),
}
use MergeRule::{Atomic, Entries, Keyed, Merged, Set};

type Row = (&'static str, MergeRule);

const METADATA: &[Row] = &[
    ("labels", Entries),
    ("annotations", Entries),
    ("finalizers", Set),
    ("ownerReferences", Keyed(&["uid"], "uid")),
    ("ownerReferences[]", Atomic),
];

const NAMESPACE: &[Row] = &[("status.conditions", Keyed(&["type"], "type"))];

const NODE: &[Row] = &[
    ("spec.podCIDRs", Set),
    ("status.addresses", Keyed(&["type"], "type")),
    ("status.allocatable", Entries),
    ("status.capacity", Entries),
    ("status.conditions", Keyed(&["type"], "type")),
];

const CONFIG_MAP: &[Row] = &[("data", Entries), ("binaryData", Entries)];

const CORE_EVENT: &[Row] = &[("involvedObject", Atomic), ("related", Atomic)];

const EVENT: &[Row] = &[("regarding", Atomic), ("related", Atomic)];

const POD: &[Row] = &[
    (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        Atomic,
    ),
    ("spec.containers", Keyed(&["name"], "name")),
    ("spec.initContainers", Keyed(&["name"], "name")),
    ("spec.ephemeralContainers", Keyed(&["name"], "name")),
    ("spec.hostAliases", Keyed(&["ip"], "ip")),
    ("spec.imagePullSecrets", Keyed(&["name"], "name")),
    ("spec.imagePullSecrets[]", Atomic),
    ("spec.nodeSelector", Atomic),
    ("spec.overhead", Entries),
    ("spec.resourceClaims", Keyed(&["name"], "name")),
    ("spec.resources.claims", Keyed(&["name"], "")),
    ("spec.resources.limits", Entries),
    ("spec.resources.requests", Entries),
    ("spec.schedulingGates", Keyed(&["name"], "name")),
    (
        "spec.topologySpreadConstraints",
        Keyed(&["topologyKey", "whenUnsatisfiable"], "topologyKey"),
    ),
    ("spec.topologySpreadConstraints[].labelSelector", Atomic),
    ("spec.volumes", Keyed(&["name"], "name")),
    ("spec.volumes[].cephfs.secretRef", Atomic),
    ("spec.volumes[].cinder.secretRef", Atomic),
    ("spec.volumes[].csi.nodePublishSecretRef", Atomic),
    ("spec.volumes[].csi.volumeAttributes", Entries),
    (
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSource",
        Atomic,
    ),
    (
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.limits",
        Entries,
    ),
    (
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests",
        Entries,
    ),
    (
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.selector",
        Atomic,
    ),
    ("spec.volumes[].flexVolume.options", Entries),
    ("spec.volumes[].flexVolume.secretRef", Atomic),
    ("spec.volumes[].iscsi.secretRef", Atomic),
    ("spec.volumes[].rbd.secretRef", Atomic),
    ("spec.volumes[].scaleIO.secretRef", Atomic),
    ("spec.volumes[].storageos.secretRef", Atomic),
    ("status.conditions", Keyed(&["type"], "type")),
    ("status.hostIPs", Merged("ip")),
    ("status.podIPs", Keyed(&["ip"], "ip")),
    ("status.resourceClaimStatuses", Keyed(&["name"], "name")),
    ("status.resources.claims", Keyed(&["name"], "")),
    ("status.resources.limits", Entries),
    ("status.resources.requests", Entries),
];

const CONTAINER: &[Row] = &[
    ("env", Keyed(&["name"], "name")),
    ("env[].valueFrom.configMapKeyRef", Atomic),
    ("env[].valueFrom.fieldRef", Atomic),
    ("env[].valueFrom.fileKeyRef", Atomic),
    ("env[].valueFrom.resourceFieldRef", Atomic),
    ("env[].valueFrom.secretKeyRef", Atomic),
    (
        "ports",
        Keyed(&["containerPort", "protocol"], "containerPort"),
    ),
    ("resources.claims", Keyed(&["name"], "")),
    ("resources.limits", Entries),
    ("resources.requests", Entries),
    ("volumeDevices", Keyed(&["devicePath"], "devicePath")),
    ("volumeMounts", Keyed(&["mountPath"], "mountPath")),
];

const RESOURCE_CLAIM: &[Row] = &[
    ("status.allocation.nodeSelector", Atomic),
    (
        "status.devices",
        Keyed(&["driver", "device", "pool", "shareID"], ""),
    ),
    ("status.devices[].conditions", Keyed(&["type"], "type")),
    ("status.devices[].data", Atomic),
    ("status.reservedFor", Keyed(&["uid"], "uid")),
];

const DEFINITION: &[Row] = &[("status.conditions", Keyed(&["type"], ""))];

/// Members of a key that count even if they are not written.
const DEFAULTS: &[(&str, &str)] = &[("protocol", "TCP")];

type Table = Vec<((&'static str, &'static str), Shape)>;

static KINDS: LazyLock<Table> = LazyLock::new(|| {
    vec![
        (("", "Namespace"), kind(&[("", NAMESPACE)])),
        (("", "Node"), kind(&[("", NODE)])),
        (("", "ConfigMap"), kind(&[("", CONFIG_MAP)])),
        (("", "Event"), kind(&[("", CORE_EVENT)])),
        (
            ("", "Pod"),
            kind(&[
                ("", POD),
                ("spec.containers[].", CONTAINER),
                ("spec.initContainers[].", CONTAINER),
                ("spec.ephemeralContainers[].", CONTAINER),
                (
                    "spec.volumes[].ephemeral.volumeClaimTemplate.metadata.",
                    METADATA,
                ),
            ]),
        ),
        (("events.k8s.io", "Event"), kind(&[("", EVENT)])),
        (
            ("resource.k8s.io", "ResourceClaim"),
            kind(&[("", RESOURCE_CLAIM)]),
        ),
        (
            ("resource.k8s.io", "ResourceClaimTemplate"),
            kind(&[("spec.metadata.", METADATA)]),
        ),
        (
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            kind(&[("", DEFINITION)]),
        ),
    ]
});

static OTHERS: LazyLock<Shape> = LazyLock::new(|| kind(&[]));

/// That of `metadata`, of whatever kind.
pub(super) fn metadata() -> Shape {
    let mut shape = fields();
    rows(&mut shape, "", METADATA);
    shape
}

/// That of a core kind; kinds that are not in the table have nothing special but their metadata.
pub(in crate::patch) fn shape(group: &str, kind: &str) -> &'static Shape {
    let found = KINDS.iter().find(|(name, _)| *name == (group, kind));
    found.map_or(&*OTHERS, |(_, shape)| shape)
}

fn kind(tables: &[(&str, &[Row])]) -> Shape {
    let mut shape = fields();
    rows(&mut shape, "metadata.", METADATA);
    for (prefix, table) in tables {
        rows(&mut shape, prefix, table);
    }
    shape
}

fn rows(shape: &mut Shape, prefix: &str, table: &[Row]) {
    for (path, rule) in table {
        let path = format!("{prefix}{path}");
        let position = position(shape, &path);
        *position = rule.shape();
    }
}

/// The shape at a path such as `spec.containers[].env`; what is on the way is made.
fn position<'a>(shape: &'a mut Shape, path: &str) -> &'a mut Shape {
    let mut here = shape;
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        here = field(here, name);
        if part.ends_with("[]") {
            here = item(here);
        }
    }
    here
}

fn field<'a>(shape: &'a mut Shape, name: &str) -> &'a mut Shape {
    if !matches!(shape, Shape::Map(_)) {
        *shape = fields();
    }
    match shape {
        Shape::Map(members) => members
            .fields
            .entry(name.to_owned())
            .or_insert(Shape::Typed),
        other => other,
    }
}

fn item(shape: &mut Shape) -> &mut Shape {
    match shape {
        Shape::List(items) => &mut items.item,
        other => other,
    }
}

fn fields() -> Shape {
    Shape::Map(Box::new(Members {
        fields: BTreeMap::new(),
        rest: Rest::Fields,
        nullable: false,
    }))
}

impl MergeRule {
    fn shape(self) -> Shape {
        match self {
            Entries => Shape::Map(Box::new(Members {
                fields: BTreeMap::new(),
                rest: Rest::Entries(Shape::Open),
                nullable: false,
            })),
            Atomic => Shape::Atomic,
            Set => list(Identity::Value, Shape::Open, Strategy::Union),
            Keyed(keys, merge) => {
                let keys = keys.iter().map(|name| key(name)).collect();
                list(Identity::Keys(keys), Shape::Typed, strategy(merge))
            }
            Merged(by) => list(Identity::None, Shape::Typed, strategy(by)),
        }
    }
}

fn key(name: &str) -> Key {
    let default = DEFAULTS.iter().find(|(key, _)| *key == name);
    Key {
        name: name.to_owned(),
        default: default.map(|(_, value)| (*value).into()),
    }
}

fn strategy(by: &str) -> Strategy {
    if by.is_empty() {
        return Strategy::Replace;
    }
    Strategy::Merge(by.to_owned())
}

fn list(identity: Identity, item: Shape, strategy: Strategy) -> Shape {
    Shape::List(Box::new(Items {
        identity,
        item,
        strategy,
    }))
}
