//! The core kinds, typed by `k8s-openapi`: a table.

use super::typed::Type;
use super::view::View;
use super::{Kind, Storage};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod};
use k8s_openapi::api::events::v1::Event as EventsEvent;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::TypeId;

const POD_FIELDS: &[&str] = &[
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
];
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const REGARDING_FIELDS: &[&str] = &[
    "reason",
    "regarding.apiVersion",
    "regarding.fieldPath",
    "regarding.kind",
    "regarding.name",
    "regarding.namespace",
    "regarding.resourceVersion",
    "regarding.uid",
    "reportingController",
    "type",
];

/// Every kind that is part of Kubernetes and is served here.
pub(super) fn all() -> Vec<Kind> {
    vec![
        of::<Namespace>("namespace")
            .short(&["ns"])
            .status()
            .select(&["status.phase"])
            .kind,
        of::<Node>("node")
            .short(&["no"])
            .status()
            .select(&["spec.unschedulable"])
            .kind,
        of::<Pod>("pod")
            .short(&["po"])
            .all()
            .status()
            .generation()
            .select(POD_FIELDS)
            .kind,
        of::<ConfigMap>("configmap").short(&["cm"]).kind,
        of::<Event>("event")
            .short(&["ev"])
            .select(EVENT_FIELDS)
            .kind,
        of::<EventsEvent>("event")
            .short(&["ev"])
            .select(REGARDING_FIELDS)
            .view(View::events())
            .kind,
        of::<Lease>("lease").kind,
        of::<CustomResourceDefinition>("customresourcedefinition")
            .short(&["crd", "crds"])
            .categories(&["api-extensions"])
            .status()
            .generation()
            .kind,
        of::<ResourceClaim>("resourceclaim").status().kind,
        of::<ResourceClaimTemplate>("resourceclaimtemplate").kind,
        of::<DeviceClass>("deviceclass").generation().kind,
        of::<SelfSubjectAccessReview>("selfsubjectaccessreview")
            .answered()
            .kind,
        of::<SelfSubjectRulesReview>("selfsubjectrulesreview")
            .answered()
            .kind,
        of::<SelfSubjectReview>("selfsubjectreview").answered().kind,
    ]
}

struct Builder {
    kind: Kind,
}

fn of<T>(singular: &str) -> Builder
where
    T: Resource + Metadata + DeserializeOwned + Serialize + JsonSchema + 'static,
    T::Scope: 'static,
{
    Builder {
        kind: Kind {
            group: T::GROUP.to_owned(),
            version: T::VERSION.to_owned(),
            kind: T::KIND.to_owned(),
            plural: T::URL_PATH_SEGMENT.to_owned(),
            singular: singular.to_owned(),
            short: Vec::new(),
            categories: Vec::new(),
            list_kind: format!("{}List", T::KIND),
            namespaced: TypeId::of::<T::Scope>() == TypeId::of::<NamespaceResourceScope>(),
            has_status: false,
            has_generation: false,
            core: true,
            schema: None,
            definition: None,
            columns: Vec::new(),
            selectable: Vec::new(),
            storage: Storage::Own,
            typed: Some(Type::of::<T>()),
        },
    }
}

impl Builder {
    fn short(mut self, names: &[&str]) -> Self {
        self.kind.short = owned(names);
        self
    }

    fn categories(mut self, names: &[&str]) -> Self {
        self.kind.categories = owned(names);
        self
    }

    fn all(self) -> Self {
        self.categories(&["all"])
    }

    fn status(mut self) -> Self {
        self.kind.has_status = true;
        self
    }

    fn generation(mut self) -> Self {
        self.kind.has_generation = true;
        self
    }

    fn select(mut self, labels: &[&str]) -> Self {
        self.kind.selectable = owned(labels);
        self
    }

    fn view(mut self, view: View) -> Self {
        self.kind.storage = Storage::View(view);
        self
    }

    fn answered(mut self) -> Self {
        self.kind.storage = Storage::Answered;
        self
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
