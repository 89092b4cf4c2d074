//! What concerns the cluster as a whole: its default network, and what Plexus does not do for it.
//!
//! Conditions of the controller are in the ConfigMap `plexus-status` of its namespace, as a JSON
//! list under `conditions`.

use crate::act::{cluster_default, now};
use crate::api::Failure;
use crate::cache::Name;
use crate::decide::conditions::Conditions;
use crate::engine::Engine;
use crate::events::EventSubject;
use crate::metrics::phase_name;
use ipnet::IpNet;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plexus_api::cni::Routed;
use plexus_api::objects::{AllowedNamespaces, Condition, From, Network, NetworkSpec, Subnet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

const STATUS: &str = "plexus-status";
const KEY: &str = "conditions";
const NOT_ENFORCED: &str = "Plexus does not enforce NetworkPolicies yet: this one has no effect";

impl Engine {
    /// Makes the network of index 0, if its subnets were given and it is not there.
    pub(crate) async fn cluster_default(&mut self) -> Result<(), Failure> {
        let Some(cidrs) = self
            .options
            .cluster_cidrs()
            .filter(|cidrs| !cidrs.is_empty())
        else {
            return Ok(());
        };
        let name = cluster_default(&self.options.namespace);
        let spec = default_spec(cidrs);
        let Some(net) = self.cache.networks.get(&name).cloned() else {
            let network = Network::new(&name.name, spec);
            if let Some(net) = self.cluster.create_network(&name, &network).await? {
                tracing::info!(network = %name, "made: the cluster's default network");
                self.cache_network(&name, net);
            }
            return Ok(());
        };
        let Some(message) = net.spec.as_ref().ok().and_then(|has| differs(has, &spec)) else {
            return Ok(());
        };
        let about = EventSubject {
            api_version: "plexus.dev/v1alpha1",
            kind: "Network",
            name: &name,
            id: &net.id,
        };
        self.events
            .warn(&self.cluster, about, "SubnetsDiffer", &message)
            .await
    }

    /// Says of a NetworkPolicy that nobody enforces it.
    pub(crate) async fn policy(&mut self, name: &Name) -> Result<(), Failure> {
        let Some(policy) = self.cache.policies.get(name).cloned() else {
            return Ok(());
        };
        let about = EventSubject {
            api_version: "networking.k8s.io/v1",
            kind: "NetworkPolicy",
            name,
            id: &policy.id,
        };
        self.events
            .warn(&self.cluster, about, "NotEnforced", NOT_ENFORCED)
            .await
    }

    /// Says what there is to say of the cluster, if that changed.
    pub(crate) async fn write_cluster_status(&mut self) -> Result<(), Failure> {
        let mut phases = BTreeMap::new();
        for (_, net) in self.cache.networks.iter() {
            *phases.entry(phase_name(net.status.phase)).or_insert(0) += 1;
        }
        self.metrics.phases(phases);
        let policies = self.cache.policies.len();
        self.metrics.policies.store(policies as u64, Relaxed);
        let name = Name::new(&self.options.namespace, STATUS);
        let before = match self.reported_conditions.take() {
            Some(conditions_json) => conditions_json,
            None => {
                let map = self.cluster.config_map(&name).await?;
                map.and_then(|map| map.data?.remove(KEY))
                    .unwrap_or_default()
            }
        };
        let text = conditions(&before, self.is_index_0(), policies);
        if text != before {
            self.cluster
                .apply_config_map(&name, &config_map(&name, &text))
                .await?;
        }
        self.reported_conditions = Some(text);
        Ok(())
    }
}

fn default_spec(cidrs: &[IpNet]) -> NetworkSpec {
    let subnets = cidrs.iter().enumerate().map(|(i, cidr)| {
        let subnet = Subnet {
            cidr: cidr.trunc(),
            gateway: None,
            exclude: Vec::new(),
        };
        (format!("s{i:02}"), subnet)
    });
    NetworkSpec {
        provider: Some(Routed::KIND.name.to_owned()),
        subnets: subnets.collect(),
        snat: true,
        source_check: true,
        // Pods have it as their first interface; nobody attaches to it by name.
        allowed_namespaces: Some(AllowedNamespaces {
            from: From::Same,
            selector: None,
        }),
        ..NetworkSpec::default()
    }
}

/// What to say if the subnets are not those that were asked for, in whatever order.
fn differs(has: &NetworkSpec, wanted: &NetworkSpec) -> Option<String> {
    let nets = |spec: &NetworkSpec| -> BTreeSet<IpNet> {
        spec.subnets
            .values()
            .map(|subnet| subnet.cidr.trunc())
            .collect()
    };
    let list = |nets: &BTreeSet<IpNet>| {
        nets.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (has, wanted) = (nets(has), nets(wanted));
    (has != wanted).then(|| {
        format!(
            "its subnets ({}) are not those that the controller was given ({}): it stays as it is",
            list(&has),
            list(&wanted)
        )
    })
}

/// The conditions as JSON, from those before.
fn conditions(before: &str, index_0: bool, policies: usize) -> String {
    let before: Vec<Condition> = serde_json::from_str(before).unwrap_or_default();
    let now = now();
    let mut conditions = Conditions::new(&before, &now, None);
    if index_0 && policies > 0 {
        let message = format!(
            "{policies} NetworkPolicies exist and have no effect: Plexus does not enforce them yet"
        );
        conditions.set("NetworkPolicyNotEnforced", true, "PoliciesExist", message);
    } else {
        let message = "no NetworkPolicy expects Plexus to enforce it";
        conditions.set("NetworkPolicyNotEnforced", false, "NoPolicies", message);
    }
    serde_json::to_string(&conditions.into_list()).unwrap_or_default()
}

fn config_map(name: &Name, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.name.clone()),
            namespace: Some(name.namespace.clone()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(KEY.to_owned(), text.to_owned())])),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_subnets_are_said_and_their_order_is_not() {
        let spec = |nets: &[&str]| {
            let nets: Vec<IpNet> = nets.iter().map(|net| net.parse().unwrap()).collect();
            default_spec(&nets)
        };
        let (a, b) = (
            spec(&["10.0.0.0/16", "fd00::/64"]),
            spec(&["fd00::/64", "10.0.0.0/16"]),
        );
        assert_eq!(differs(&a, &b), None);
        assert!(
            differs(&a, &spec(&["10.1.0.0/16"]))
                .unwrap()
                .contains("(10.1.0.0/16)")
        );
    }

    #[test]
    fn nobody_attaches_to_the_default_network_by_name() {
        let allowed = default_spec(&["10.0.0.0/16".parse().unwrap()]).allowed_namespaces;
        assert_eq!(allowed.map(|allowed| allowed.from), Some(From::Same));
    }

    #[test]
    fn policies_are_said_once_and_taken_back() {
        let none = conditions("", true, 0);
        assert!(none.contains(r#""status":"False""#), "{none}");
        let some = conditions(&none, true, 2);
        assert!(
            some.contains(r#""status":"True""#) && some.contains("2 NetworkPolicies"),
            "{some}"
        );
        assert_eq!(conditions(&some, true, 2), some);
        assert!(conditions(&some, false, 2).contains(r#""status":"False""#));
        assert!(conditions("[{garbage", true, 0).contains("NoPolicies"));
    }
}
