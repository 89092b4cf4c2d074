//! Which field has which number: the messages of Kubernetes that clients send as protobuf.

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// A text; an empty one is not there.
    Text,
    /// A number that counts even if it is 0.
    Number,
    /// A number that is not there if it is 0.
    Count,
    /// Yes or no, both of which count.
    Flag,
    /// A `Time`; an empty one is not there.
    Time,
    /// A message with JSON text in its first field.
    Json,
    /// Several texts.
    Texts,
    /// A message.
    One(Table),
    /// Several messages.
    Many(Table),
    /// From text to text.
    TextMap,
    /// From text to bytes.
    BytesMap,
}

/// Number, name and content of each field.
pub(super) type Table = &'static [(u64, &'static str, Of)];

/// The table of a kind.
pub(super) fn of(api_version: &str, kind: &str) -> Option<Table> {
    match (api_version, kind) {
        ("v1", "Namespace") => Some(NAMESPACE),
        ("v1", "ConfigMap") => Some(CONFIG_MAP),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => Some(ACCESS_REVIEW),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => Some(RULES_REVIEW),
        ("authentication.k8s.io/v1", "SelfSubjectReview") => Some(SUBJECT_REVIEW),
        // Every group has its options; they are all the same.
        (_, "DeleteOptions") => Some(DELETE_OPTIONS),
        _ => None,
    }
}

const NAMESPACE: Table = &[
    (1, "metadata", Of::One(OBJECT_META)),
    (2, "spec", Of::One(&[(1, "finalizers", Of::Texts)])),
    (3, "status", Of::One(&[(1, "phase", Of::Text)])),
];

const CONFIG_MAP: Table = &[
    (1, "metadata", Of::One(OBJECT_META)),
    (2, "data", Of::TextMap),
    (3, "binaryData", Of::BytesMap),
    (4, "immutable", Of::Flag),
];

/// Only what is asked: the answer is ours.
const ACCESS_REVIEW: Table = &[
    (1, "metadata", Of::One(OBJECT_META)),
    (
        2,
        "spec",
        Of::One(&[
            (1, "resourceAttributes", Of::One(RESOURCE_ATTRIBUTES)),
            (
                2,
                "nonResourceAttributes",
                Of::One(&[(1, "path", Of::Text), (2, "verb", Of::Text)]),
            ),
        ]),
    ),
];

const RESOURCE_ATTRIBUTES: Table = &[
    (1, "namespace", Of::Text),
    (2, "verb", Of::Text),
    (3, "group", Of::Text),
    (4, "version", Of::Text),
    (5, "resource", Of::Text),
    (6, "subresource", Of::Text),
    (7, "name", Of::Text),
    (8, "fieldSelector", Of::One(SELECTOR_ATTRIBUTES)),
    (9, "labelSelector", Of::One(SELECTOR_ATTRIBUTES)),
];

const SELECTOR_ATTRIBUTES: Table = &[
    (1, "rawSelector", Of::Text),
    (
        2,
        "requirements",
        Of::Many(&[
            (1, "key", Of::Text),
            (2, "operator", Of::Text),
            (3, "values", Of::Texts),
        ]),
    ),
];

const RULES_REVIEW: Table = &[
    (1, "metadata", Of::One(OBJECT_META)),
    (2, "spec", Of::One(&[(1, "namespace", Of::Text)])),
];

const SUBJECT_REVIEW: Table = &[(1, "metadata", Of::One(OBJECT_META))];

const DELETE_OPTIONS: Table = &[
    (1, "gracePeriodSeconds", Of::Number),
    (
        2,
        "preconditions",
        Of::One(&[(1, "uid", Of::Text), (2, "resourceVersion", Of::Text)]),
    ),
    (3, "orphanDependents", Of::Flag),
    (4, "propagationPolicy", Of::Text),
    (5, "dryRun", Of::Texts),
];

const OBJECT_META: Table = &[
    (1, "name", Of::Text),
    (2, "generateName", Of::Text),
    (3, "namespace", Of::Text),
    (4, "selfLink", Of::Text),
    (5, "uid", Of::Text),
    (6, "resourceVersion", Of::Text),
    (7, "generation", Of::Count),
    (8, "creationTimestamp", Of::Time),
    (9, "deletionTimestamp", Of::Time),
    (10, "deletionGracePeriodSeconds", Of::Number),
    (11, "labels", Of::TextMap),
    (12, "annotations", Of::TextMap),
    (13, "ownerReferences", Of::Many(OWNER_REFERENCE)),
    (14, "finalizers", Of::Texts),
    (17, "managedFields", Of::Many(MANAGED_FIELDS)),
];

const OWNER_REFERENCE: Table = &[
    (1, "kind", Of::Text),
    (3, "name", Of::Text),
    (4, "uid", Of::Text),
    (5, "apiVersion", Of::Text),
    (6, "controller", Of::Flag),
    (7, "blockOwnerDeletion", Of::Flag),
];

const MANAGED_FIELDS: Table = &[
    (1, "manager", Of::Text),
    (2, "operation", Of::Text),
    (3, "apiVersion", Of::Text),
    (4, "time", Of::Time),
    (6, "fieldsType", Of::Text),
    (7, "fieldsV1", Of::Json),
    (8, "subresource", Of::Text),
];
