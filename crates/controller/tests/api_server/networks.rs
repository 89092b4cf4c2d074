//! Phases, numbers, conflicts, usage and the end of networks.

use crate::environment::{condition, until, with_environment};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use plexus_api::objects::{Network, Phase};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn overlay_networks_become_active_with_numbers_of_their_own_that_stay() {
    with_environment("vni", async |environment| {
        let running = environment.controller();
        for i in 0..20 {
            // The same addresses: they are apart.
            environment
                .network(
                    &format!("n{i}"),
                    json!({"subnets": {"a": {"cidr": "10.1.0.0/16"}}}),
                )
                .await;
        }
        let mut numbers = BTreeSet::new();
        for i in 0..20 {
            let status = environment
                .until_phase(&format!("n{i}"), Phase::Active)
                .await;
            assert_eq!(status.observed_generation, Some(1));
            assert_eq!(condition(&status, "SubnetConflict"), None);
            numbers.insert(status.vni.unwrap());
        }
        assert_eq!(numbers.len(), 20);
        running.stop().unwrap();

        // Another controller changes nothing.
        let versions = async || {
            let list = environment
                .api::<Network>()
                .list(&Default::default())
                .await
                .unwrap();
            list.items
                .into_iter()
                .map(|n| n.metadata.resource_version)
                .collect::<Vec<_>>()
        };
        let before = versions().await;
        let _running = environment.start(environment.options("two"));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(versions().await, before);
    });
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    with_environment("wrong", async |environment| {
        let _running = environment.controller();
        environment
            .network(
                "twice",
                json!({"subnets": {"a": {"cidr": "10.1.0.0/16"}, "b": {"cidr": "10.1.2.0/24"}}}),
            )
            .await;
        let status = environment.until_phase("twice", Phase::Failed).await;
        let (holds, reason, message) = condition(&status, "Ready").unwrap();
        assert_eq!((holds, reason), ("False", "InvalidSpec"));
        assert!(message.contains("subnets"), "{message}");
        environment
            .network(
                "theirs",
                json!({"provider": "mycorp/fancy-network-provider"}),
            )
            .await;
        let status = environment.until_phase("theirs", Phase::Pending).await;
        assert_eq!(condition(&status, "Ready").unwrap().1, "WaitingForProvider");
        assert_eq!(status.vni, None);
    });
}

#[test]
fn of_two_routed_networks_that_overlap_the_younger_waits() {
    with_environment("conflict", async |environment| {
        let _running = environment.controller();
        let routed = |cidr: &str| json!({"provider": "routed", "subnets": {"a": {"cidr": cidr}}});
        environment.network("older", routed("10.201.0.0/16")).await;
        environment.until_phase("older", Phase::Active).await;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        environment
            .network("younger", routed("10.201.7.0/24"))
            .await;
        let younger = environment.until_phase("younger", Phase::Pending).await;
        assert!(
            condition(&younger, "SubnetConflict")
                .unwrap()
                .2
                .contains("older")
        );
        let older = environment
            .until_status("older", |s| condition(s, "SubnetConflict").is_some())
            .await;
        assert_eq!(older.phase, Some(Phase::Active));
        assert!(
            condition(&older, "SubnetConflict")
                .unwrap()
                .2
                .contains("younger")
        );

        // The addresses of Services are taken too.
        environment
            .network("services", routed("10.96.128.0/24"))
            .await;
        let services = environment.until_phase("services", Phase::Pending).await;
        assert!(
            condition(&services, "SubnetConflict")
                .unwrap()
                .2
                .contains("ServiceCIDR kubernetes")
        );

        // A Node that comes later is reported, and takes nothing away from pods.
        let node = environment.node("n1", Some("10.201.9.0/24")).await;
        environment
            .until_status("older", |s| {
                condition(s, "SubnetConflict")
                    .unwrap()
                    .2
                    .contains("podCIDR")
            })
            .await;
        environment.delete_node(&node).await;
        environment
            .api::<Network>()
            .delete("older", &DeleteParams::default())
            .await
            .unwrap();
        let younger = environment.until_phase("younger", Phase::Active).await;
        assert_eq!(condition(&younger, "SubnetConflict").unwrap().0, "False");
    });
}

#[test]
fn a_network_in_use_terminates_says_by_whom_and_goes_with_its_blocks() {
    with_environment("in-use", async |environment| {
        let _running = environment.controller();
        let network = environment
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        let vni = environment.until_phase("blue", Phase::Active).await.vni;
        let node = environment.node("n1", None).await;
        let block = environment.block(&network, &node, "10.1.0.64/26", 1).await;
        let pod = environment.pod("web-0", &node).await;
        let record = environment.record(&pod, &node, &network).await;
        let used = environment
            .until_status("blue", |s| s.usage.as_ref().is_some_and(|u| u.blocks == 1))
            .await;
        let usage = used.usage.unwrap();
        assert_eq!((usage.allocated, usage.capacity), (1, 253));

        environment
            .api::<Network>()
            .delete("blue", &DeleteParams::default())
            .await
            .unwrap();
        let status = environment.until_phase("blue", Phase::Terminating).await;
        let (holds, _, message) = condition(&status, "InUse").unwrap();
        assert_eq!(holds, "True");
        assert_eq!(
            message,
            format!("used by 1 pod: {}/web-0", environment.namespace)
        );
        assert_eq!(status.vni, vni);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(environment.has_block(&block).await);

        // The record is gone; the node still says that an address is in use.
        environment.release(&record).await;
        let status = environment
            .until_status("blue", |s| {
                condition(s, "InUse").is_some_and(|c| c.1 == "AddressesHeld")
            })
            .await;
        let (_, _, message) = condition(&status, "InUse").unwrap();
        assert!(message.contains(&node.name_any()), "{message}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(environment.has_block(&block).await);
        // Nor does it go while the agent might give out another address.
        environment.set_allocated(&block, 0).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(environment.has_block(&block).await);
        environment.close(&block).await;
        until("the network is gone", async || {
            environment
                .api::<Network>()
                .get_opt("blue")
                .await
                .unwrap()
                .is_none()
        })
        .await;
        until("its block is gone", async || {
            !environment.has_block(&block).await
        })
        .await;
    });
}

#[test]
fn a_network_in_use_that_is_edited_into_a_conflict_takes_no_new_pods() {
    with_environment("edited", async |environment| {
        let _running = environment.controller();
        let network = environment
            .network(
                "plain",
                json!({"provider": "routed", "subnets": {"a": {"cidr": "10.203.0.0/24"}}}),
            )
            .await;
        environment.until_phase("plain", Phase::Active).await;
        let node = environment.node("n1", None).await;
        let block = environment.block(&network, &node, "10.203.0.0/26", 1).await;
        let api = environment.api::<Network>();
        let edit = async |subnets: serde_json::Value| {
            let patch = json!({"spec": {"subnets": subnets}});
            api.patch("plain", &PatchParams::default(), &Patch::Merge(&patch))
                .await
        };
        let error = edit(json!({"a": {"cidr": "10.96.5.0/24"}})).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("cidr of a subnet cannot be changed"),
            "{error}"
        );
        edit(json!({"b": {"cidr": "10.96.5.0/24"}})).await.unwrap();
        let status = environment.until_phase("plain", Phase::Pending).await;
        let (holds, reason, message) = condition(&status, "Ready").unwrap();
        assert_eq!((holds, reason), ("False", "SubnetConflict"));
        assert!(message.contains("ServiceCIDR"), "{message}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(environment.has_block(&block).await);
        edit(json!({"b": null})).await.unwrap();
        environment.until_phase("plain", Phase::Active).await;
    });
}

#[test]
fn conditions_of_others_stay() {
    with_environment("others", async |environment| {
        let _running = environment.controller();
        environment
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        let mut status = environment.until_phase("blue", Phase::Active).await;
        let mut theirs = status.conditions[0].clone();
        theirs.kind = "KernelFeature".into();
        status.conditions.push(theirs.clone());
        let api = environment.api::<Network>();
        let patch = json!({"status": {"conditions": status.conditions}});
        api.patch_status("blue", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        let patch = json!({"spec": {"mtu": 1400}});
        api.patch("blue", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        let after = environment
            .until_status("blue", |s| s.observed_generation == Some(2))
            .await;
        assert!(after.conditions.contains(&theirs), "{after:#?}");
        assert_eq!(after.vni, status.vni);
    });
}
