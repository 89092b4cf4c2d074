//! What nodes that are gone have left.

use crate::setting::{until, with_setting};
use kube::ResourceExt;
use plexus_api::objects::{Phase, PodAttachments};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn blocks_and_records_of_a_node_that_is_gone_return_after_the_checks() {
    with_setting("gone", async |setting| {
        let _running = setting.controller();
        let network = setting
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        setting.until_phase("blue", Phase::Active).await;
        let (gone, stays) = (
            setting.node("gone", None).await,
            setting.node("stays", None).await,
        );
        let pod = setting.pod("p", &gone).await;
        let record = setting.record(&pod, &gone, &network).await;
        let block = setting.block(&network, &gone, "10.1.0.0/26", 1).await;
        let other = setting.block(&network, &stays, "10.1.0.64/26", 1).await;
        let there = async |record: &PodAttachments| {
            setting
                .api::<PodAttachments>()
                .get_opt(&record.name_any())
                .await
                .unwrap()
                .is_some()
        };

        setting.delete_node(&gone).await;
        // Longer than the grace: its pod holds both.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(setting.has_block(&block).await && there(&record).await);
        setting.kill_pod(&pod).await;
        until("the record is gone", async || !there(&record).await).await;
        until("the block returned", async || {
            !setting.has_block(&block).await
        })
        .await;
        assert!(setting.has_block(&other).await);
    });
}

#[test]
fn a_node_of_the_same_name_is_another_node() {
    with_setting("replaced", async |setting| {
        let _running = setting.controller();
        let network = setting
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        setting.until_phase("blue", Phase::Active).await;
        let before = setting.node("n", None).await;
        let old = setting.block(&network, &before, "10.1.0.0/26", 1).await;
        setting.delete_node(&before).await;
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let after = setting.node("n", None).await;
        let new = setting.block(&network, &after, "10.1.0.64/26", 1).await;
        // It may be the same machine, registered again: a pod of its name holds what it had, however
        // young the pod is, and so does what the owner of the block said last.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let pod = setting.pod("p", &after).await;
        let record = setting.record(&pod, &after, &network).await;
        setting.set_allocated(&old, 0).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(setting.has_block(&old).await);
        setting.set_allocated(&old, 1).await;
        setting.kill_pod(&pod).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(setting.has_block(&old).await);
        setting.host_pod("daemon", &after).await;
        setting.set_allocated(&old, 0).await;
        until("the old block returned", async || {
            !setting.has_block(&old).await
        })
        .await;
        assert!(begun.elapsed() >= Duration::from_secs(2));
        assert!(setting.has_block(&new).await);
        // Its pod is gone, but its node's agent is there: the record is the agent's.
        let records = setting.api::<PodAttachments>();
        assert!(records.get_opt(&record.name_any()).await.unwrap().is_some());
    });
}
