//! What helps when a pod's networks cannot be told, and whose fault it is.

use super::error::{Instead, ResolveError};
use crate::refusal::{Fault, Refusal};
use plexus_api::cni::{self, ProviderKind};
use plexus_api::pod::{DEFAULT_GW, NETWORKS, PLEXUS_NETWORKS};
use std::borrow::Cow;

impl Refusal for ResolveError {
    fn fault(&self) -> Fault {
        match self.innermost() {
            ResolveError::Config(error) if error.is_pending() => Fault::Pending,
            ResolveError::MultiNic { source, .. } => source.fault(),
            ResolveError::Missing { .. }
            | ResolveError::NoNetworkOfProject { .. }
            | ResolveError::Neither(_)
            | ResolveError::NoNamesake(_)
            | ResolveError::NoConfig(_)
            | ResolveError::Unusable { passing: true, .. } => Fault::Pending,
            ResolveError::Unusable { passing: false, .. } => Fault::Unavailable,
            ResolveError::OfFirst(_)
            | ResolveError::TwoGateways { .. }
            | ResolveError::GatewayOfPlugins
            | ResolveError::Ports { .. } => Fault::Unsupported,
            _ => Fault::Invalid,
        }
    }

    fn remedy(&self) -> Cow<'static, str> {
        let next = match self {
            ResolveError::Reference { source, .. } | ResolveError::Container { source, .. } => {
                return source.remedy();
            }
            ResolveError::Config(error) => return error.details.clone().into(),
            ResolveError::MultiNic { source, .. } => return source.remedy(),
            ResolveError::Written { .. } => "correct it and create the pod again",
            ResolveError::Name(_) => "give the object a name as Kubernetes has them",
            ResolveError::Interface { .. } => "give it an `interface`",
            ResolveError::Missing { instead, .. } => match instead {
                Instead::OtherKind(kind, annotation) => {
                    return format!("there is a {kind} of that name: name it in {annotation}")
                        .into();
                }
                Instead::Own(own) => {
                    return format!("there is one in the pod's own namespace: did you mean {own}?")
                        .into();
                }
                Instead::Nothing => "create it, or correct the pod's annotation",
            },
            ResolveError::NoNetworkOfProject { cluster, .. } => {
                return format!("create it; a project is a namespace, or {cluster}-<namespace>")
                    .into();
            }
            ResolveError::AmbiguousProject {
                name, namespace, ..
            } => return either_namespace(namespace, name).into(),
            ResolveError::Neither(_) => "create it, or write a provider into the configuration",
            ResolveError::NoNamesake(_) => {
                "the controller makes it from opencontrail.org/cidr: is it running, has the definition that annotation, and what do its Events say?"
            }
            ResolveError::NoConfig(_) => "give the definition a config, or create the Network",
            ResolveError::NotMadeFrom(_) => {
                "rename one of them, or name the Network in plexus.dev/networks"
            }
            ResolveError::DeviceOfResource { .. } => {
                "remove `deviceID` from the pod's annotation, or the annotation k8s.v1.cni.cncf.io/resourceName from the definition"
            }
            ResolveError::UnusableNad { .. } => {
                "shorten it, or use another network; what only people read can stand elsewhere"
            }
            ResolveError::Unusable { passing: true, .. } => {
                "the kubelet tries again; the conditions in its status say what it waits for"
            }
            ResolveError::Unusable { passing: false, .. } => {
                "the conditions in its status say more; correct it, or use another network"
            }
            ResolveError::NotAllowed { .. } => {
                "use another network, or change spec.allowedNamespaces of this one"
            }
            ResolveError::Isolated { .. } => {
                "use a network of the pod's namespace, or ask the administrator to add that namespace to isolation-exceptions in the ConfigMap plexus-policy"
            }
            ResolveError::NoSubnets { .. } => {
                let without = ProviderKind::names(|kind| !kind.needs_addresses()).join(", ");
                return format!(
                    "give it spec.subnets, or a provider that does without addresses ({without})"
                )
                .into();
            }
            ResolveError::Ambiguous { .. } => {
                return format!("give the elements of {NETWORKS} an `interface`").into();
            }
            ResolveError::TooMany(_) => "name fewer",
            ResolveError::OfFirst(_) => {
                "leave it out: the runtime names the first interface, and its default route is the pod's unless another network asks for it"
            }
            ResolveError::DefaultGw { known, .. } => {
                return format!("name one of {}", known.join(", ")).into();
            }
            ResolveError::DefaultRouteTaken { .. } => {
                return format!(
                    "let one of them have it: one `default-route` per family, and {DEFAULT_GW} agreeing with it"
                )
                .into();
            }
            ResolveError::DefaultRouteAlone => "give it addresses, or leave `default-route` out",
            ResolveError::TwoGateways { .. } => "write one per family",
            ResolveError::GatewayOfPlugins => {
                "write the default route into the network's configuration, and an empty `default-route` into the annotation"
            }
            ResolveError::Ports { .. } => {
                let kinds = ProviderKind::names(|kind| kind.host_ports).join(" or ");
                return format!("publish no ports, or name a network of provider {kinds} first")
                    .into();
            }
        };
        next.into()
    }

    fn config_error(&self) -> Option<&cni::Error> {
        match self.innermost() {
            ResolveError::Config(error) => Some(error),
            _ => None,
        }
    }
}

fn either_namespace(namespace: &str, name: &str) -> String {
    format!(
        "name the namespace: {namespace}/{name} in {PLEXUS_NETWORKS}, or the project {namespace}"
    )
}
