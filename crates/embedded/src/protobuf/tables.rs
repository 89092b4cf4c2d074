//! Which field has which number: the messages of Kubernetes that clients send as protobuf.

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldType {
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
pub(super) type Table = &'static [(u64, &'static str, FieldType)];

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
    (1, "metadata", FieldType::One(OBJECT_META)),
    (
        2,
        "spec",
        FieldType::One(&[(1, "finalizers", FieldType::Texts)]),
    ),
    (
        3,
        "status",
        FieldType::One(&[(1, "phase", FieldType::Text)]),
    ),
];

const CONFIG_MAP: Table = &[
    (1, "metadata", FieldType::One(OBJECT_META)),
    (2, "data", FieldType::TextMap),
    (3, "binaryData", FieldType::BytesMap),
    (4, "immutable", FieldType::Flag),
];

/// Only what is asked: the answer is ours.
const ACCESS_REVIEW: Table = &[
    (1, "metadata", FieldType::One(OBJECT_META)),
    (
        2,
        "spec",
        FieldType::One(&[
            (1, "resourceAttributes", FieldType::One(RESOURCE_ATTRIBUTES)),
            (
                2,
                "nonResourceAttributes",
                FieldType::One(&[(1, "path", FieldType::Text), (2, "verb", FieldType::Text)]),
            ),
        ]),
    ),
];

const RESOURCE_ATTRIBUTES: Table = &[
    (1, "namespace", FieldType::Text),
    (2, "verb", FieldType::Text),
    (3, "group", FieldType::Text),
    (4, "version", FieldType::Text),
    (5, "resource", FieldType::Text),
    (6, "subresource", FieldType::Text),
    (7, "name", FieldType::Text),
    (8, "fieldSelector", FieldType::One(SELECTOR_ATTRIBUTES)),
    (9, "labelSelector", FieldType::One(SELECTOR_ATTRIBUTES)),
];

const SELECTOR_ATTRIBUTES: Table = &[
    (1, "rawSelector", FieldType::Text),
    (
        2,
        "requirements",
        FieldType::Many(&[
            (1, "key", FieldType::Text),
            (2, "operator", FieldType::Text),
            (3, "values", FieldType::Texts),
        ]),
    ),
];

const RULES_REVIEW: Table = &[
    (1, "metadata", FieldType::One(OBJECT_META)),
    (
        2,
        "spec",
        FieldType::One(&[(1, "namespace", FieldType::Text)]),
    ),
];

const SUBJECT_REVIEW: Table = &[(1, "metadata", FieldType::One(OBJECT_META))];

const DELETE_OPTIONS: Table = &[
    (1, "gracePeriodSeconds", FieldType::Number),
    (
        2,
        "preconditions",
        FieldType::One(&[
            (1, "uid", FieldType::Text),
            (2, "resourceVersion", FieldType::Text),
        ]),
    ),
    (3, "orphanDependents", FieldType::Flag),
    (4, "propagationPolicy", FieldType::Text),
    (5, "dryRun", FieldType::Texts),
];

const OBJECT_META: Table = &[
    (1, "name", FieldType::Text),
    (2, "generateName", FieldType::Text),
    (3, "namespace", FieldType::Text),
    (4, "selfLink", FieldType::Text),
    (5, "uid", FieldType::Text),
    (6, "resourceVersion", FieldType::Text),
    (7, "generation", FieldType::Count),
    (8, "creationTimestamp", FieldType::Time),
    (9, "deletionTimestamp", FieldType::Time),
    (10, "deletionGracePeriodSeconds", FieldType::Number),
    (11, "labels", FieldType::TextMap),
    (12, "annotations", FieldType::TextMap),
    (13, "ownerReferences", FieldType::Many(OWNER_REFERENCE)),
    (14, "finalizers", FieldType::Texts),
    (17, "managedFields", FieldType::Many(MANAGED_FIELDS)),
];

const OWNER_REFERENCE: Table = &[
    (1, "kind", FieldType::Text),
    (3, "name", FieldType::Text),
    (4, "uid", FieldType::Text),
    (5, "apiVersion", FieldType::Text),
    (6, "controller", FieldType::Flag),
    (7, "blockOwnerDeletion", FieldType::Flag),
];

const MANAGED_FIELDS: Table = &[
    (1, "manager", FieldType::Text),
    (2, "operation", FieldType::Text),
    (3, "apiVersion", FieldType::Text),
    (4, "time", FieldType::Time),
    (6, "fieldsType", FieldType::Text),
    (7, "fieldsV1", FieldType::Json),
    (8, "subresource", FieldType::Text),
];
