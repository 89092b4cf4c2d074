//! Whose pods may use a network: by the network's own `allowedNamespaces`, and by what the administrator of the cluster
//! decides for all networks.

use super::error::ResolveError;
use super::lookup::Lookup;
use super::object::path;
use super::{NetworkObject, Objects};
use plexus_api::objects::{AllowedNamespaces, From};
use std::collections::BTreeSet;

/// What holds for all networks of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRules {
    /// Whom a `Network` without `allowedNamespaces` is for.
    pub unset: From,
    /// Pods use networks of their own namespace alone, whatever the networks say.
    pub isolated: bool,
    /// The namespaces whose networks all pods may use even so.
    pub exceptions: BTreeSet<String>,
}

/// As without an administrator.
impl Default for NamespaceRules {
    fn default() -> Self {
        Self {
            unset: From::All,
            isolated: false,
            exceptions: BTreeSet::new(),
        }
    }
}

impl Lookup<'_> {
    /// Whether the pod may use anything of that namespace; `object` is what it names.
    pub(super) fn check_isolated(&self, namespace: &str, name: &str) -> Result<(), ResolveError> {
        let rules = &self.settings.namespaces;
        let pod = &self.pod.namespace;
        if !rules.isolated || pod == namespace || rules.exceptions.contains(namespace) {
            return Ok(());
        }
        Err(ResolveError::Isolated {
            object: format!("{namespace}/{name}"),
            pod: pod.clone(),
        })
    }

    /// Whether the network is for pods of this namespace.
    pub(super) fn check_allowed(&self, object: &NetworkObject) -> Result<(), ResolveError> {
        let pod = &self.pod.namespace;
        let (fits, rule) = match &object.spec.allowed_namespaces {
            Some(allowed) => fits(allowed, object, pod, self.objects),
            None => match self.settings.namespaces.unset {
                From::All => (true, String::new()),
                // Of namespaces that nobody selected there is none but its own.
                From::Same | From::Selector => (
                    *pod == object.namespace,
                    "its own namespace, as it has no allowedNamespaces".to_owned(),
                ),
            },
        };
        if fits {
            return Ok(());
        }
        Err(ResolveError::NotAllowed {
            object: path(object),
            rule,
            pod: pod.clone(),
        })
    }
}

/// Whether pods of that namespace are meant, and who is.
fn fits(
    allowed: &AllowedNamespaces,
    object: &NetworkObject,
    pod: &str,
    objects: &dyn Objects,
) -> (bool, String) {
    match allowed.from {
        From::All => (true, String::new()),
        From::Same => (pod == object.namespace, "its own namespace".to_owned()),
        From::Selector => {
            // Whose labels are not known fits no selector: not even one of what must not be there.
            let labels = objects.namespace(pod);
            let selector = allowed.selector.as_ref().filter(|one| !one.is_empty());
            let known = selector.zip(labels);
            let fits = known.is_some_and(|(selector, labels)| selector.fits(&labels));
            let none = || "nobody: its selector is empty".to_owned();
            let rule = selector.map_or_else(none, |one| format!("namespaces labelled {one}"));
            (fits, rule)
        }
    }
}
