//! What Plexus does not do is said, and the cluster's default network is made.

use crate::environment::{until, with_environment};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::DeleteParams;
use plexus_api::objects::{Network, Phase};
use plexus_controller::{ClusterNetwork, OwnCidrs};
use serde_json::{Value, json};

#[test]
fn network_policies_are_said_not_to_be_enforced() {
    with_environment("policy", async |environment| {
        let _running = environment.controller();
        let status = async || -> String {
            let map = environment
                .api::<ConfigMap>()
                .get_opt("plexus-status")
                .await
                .unwrap();
            let text = map
                .and_then(|map| map.data?.remove("conditions"))
                .unwrap_or_default();
            let list: Value = serde_json::from_str(&text).unwrap_or_default();
            list[0]["status"].as_str().unwrap_or_default().to_owned()
        };
        let _: NetworkPolicy = environment
            .create(json!({"metadata": {"name": "deny"}, "spec": {"podSelector": {}}}))
            .await;
        assert!(
            environment
                .until_event("deny", "NotEnforced")
                .await
                .contains("no effect")
        );
        until("the condition holds", async || status().await == "True").await;
        environment
            .api::<NetworkPolicy>()
            .delete("deny", &DeleteParams::default())
            .await
            .unwrap();
        until("the condition is over", async || status().await == "False").await;
    });
}

#[test]
fn the_default_network_is_made_and_made_again() {
    with_environment("default", async |environment| {
        let mut options = environment.options("one");
        options.cluster_network = ClusterNetwork::Own;
        options.own_cidrs = OwnCidrs::Blocks(vec![
            "10.202.0.0/16".parse().unwrap(),
            "fd00:202::/56".parse().unwrap(),
        ]);
        // Its addresses are also the nodes' podCIDRs: those are not used then.
        environment.node("n1", Some("10.202.0.0/24")).await;
        let _running = environment.start(options);
        let api = environment.api::<Network>();
        for _ in 0..2 {
            let status = environment
                .until_phase("cluster-default", Phase::Active)
                .await;
            assert_eq!(status.vni, None);
            let network = api.get("cluster-default").await.unwrap();
            assert!(network.spec.snat && network.spec.provider_name() == "routed");
            assert_eq!(network.spec.subnets.len(), 2);
            api.delete("cluster-default", &DeleteParams::default())
                .await
                .unwrap();
            until("it is another", async || {
                let now = api.get_opt("cluster-default").await.unwrap();
                now.is_some_and(|now| now.metadata.uid != network.metadata.uid)
            })
            .await;
        }
    });
}
