//! What nodes that are gone have left.

use crate::environment::{until, with_environment};
use kube::ResourceExt;
use plexus_api::objects::{Phase, PodAttachments};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn blocks_and_records_of_a_node_that_is_gone_return_after_the_checks() {
    with_environment("gone", async |environment| {
        let _running = environment.controller();
        let network = environment
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        environment.until_phase("blue", Phase::Active).await;
        let (gone, stays) = (
            environment.node("gone", None).await,
            environment.node("stays", None).await,
        );
        let pod = environment.pod("p", &gone).await;
        let record = environment.record(&pod, &gone, &network).await;
        let block = environment.block(&network, &gone, "10.1.0.0/26", 1).await;
        let other = environment.block(&network, &stays, "10.1.0.64/26", 1).await;
        let there = async |record: &PodAttachments| {
            environment
                .api::<PodAttachments>()
                .get_opt(&record.name_any())
                .await
                .unwrap()
                .is_some()
        };

        environment.delete_node(&gone).await;
        // Longer than the grace: its pod holds both.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(environment.has_block(&block).await && there(&record).await);
        environment.kill_pod(&pod).await;
        until("the record is gone", async || !there(&record).await).await;
        until("the block returned", async || {
            !environment.has_block(&block).await
        })
        .await;
        assert!(environment.has_block(&other).await);
    });
}

#[test]
fn a_node_of_the_same_name_is_another_node() {
    with_environment("replaced", async |environment| {
        let _running = environment.controller();
        let network = environment
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        environment.until_phase("blue", Phase::Active).await;
        let before = environment.node("n", None).await;
        let old = environment.block(&network, &before, "10.1.0.0/26", 1).await;
        environment.delete_node(&before).await;
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let after = environment.node("n", None).await;
        let new = environment.block(&network, &after, "10.1.0.64/26", 1).await;
        // It may be the same machine, registered again: a pod of its name holds what it had, however
        // young the pod is, and so does what the owner of the block said last.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let pod = environment.pod("p", &after).await;
        let record = environment.record(&pod, &after, &network).await;
        environment.set_allocated(&old, 0).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(environment.has_block(&old).await);
        environment.set_allocated(&old, 1).await;
        environment.kill_pod(&pod).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(environment.has_block(&old).await);
        environment.host_pod("daemon", &after).await;
        environment.set_allocated(&old, 0).await;
        until("the old block returned", async || {
            !environment.has_block(&old).await
        })
        .await;
        assert!(begun.elapsed() >= Duration::from_secs(2));
        assert!(environment.has_block(&new).await);
        // Its pod is gone, but its node's agent is there: the record is the agent's.
        let records = environment.api::<PodAttachments>();
        assert!(records.get_opt(&record.name_any()).await.unwrap().is_some());
    });
}
