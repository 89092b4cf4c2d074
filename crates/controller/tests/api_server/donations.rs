//! Parts of blocks that nodes give each other, as the controller sees them.

use crate::environment::{until, with_environment};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams};
use kube::{ResourceExt, api::Patch, api::PatchParams};
use plexus_api::objects::{Network, Phase};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_block_returns_with_its_node_though_parts_of_it_are_others() {
    with_environment("gifts", async |environment| {
        let _running = environment.controller();
        let subnets = json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}});
        let network = environment.network("blue", subnets).await;
        environment.until_phase("blue", Phase::Active).await;
        let (donor, requester, third) = (
            environment.node("giver", None).await,
            environment.node("asker", None).await,
            environment.node("third", None).await,
        );
        let whole = environment.block(&network, &donor, "10.1.0.0/26", 3).await;
        environment
            .set_donations(&whole, &[("10.1.0.8/29", &requester)])
            .await;
        let part = environment
            .block(&network, &requester, "10.1.0.8/29", 2)
            .await;
        environment
            .set_donations(&part, &[("10.1.0.9/32", &third)])
            .await;
        let single = environment.block(&network, &third, "10.1.0.9/32", 1).await;
        // Addresses count once, and a part is no block more.
        let status = environment
            .until_status("blue", |status| {
                let usage = status.usage.as_ref();
                usage.is_some_and(|usage| usage.allocated == 6)
            })
            .await;
        assert_eq!(status.usage.map(|usage| usage.blocks), Some(1));
        assert!(environment.events("blue", "BlockNotGiven").await.is_empty());

        environment.delete_node(&donor).await;
        until("the block returned", async || {
            !environment.has_block(&whole).await
        })
        .await;
        assert!(environment.has_block(&part).await && environment.has_block(&single).await);
        // A part stays while another has something of it: that has nothing else to show.
        environment.delete_node(&requester).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(environment.has_block(&part).await && environment.has_block(&single).await);
        environment.delete_node(&third).await;
        until("the parts returned", async || {
            !environment.has_block(&part).await && !environment.has_block(&single).await
        })
        .await;
    });
}

#[test]
fn a_block_that_was_not_given_is_pointed_out_and_removed_if_unused() {
    with_environment("not-given", async |environment| {
        let _running = environment.controller();
        let subnets = json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}});
        let network = environment.network("blue", subnets).await;
        let (owner, other) = (
            environment.node("owner", None).await,
            environment.node("other", None).await,
        );
        let whole = environment.block(&network, &owner, "10.1.0.0/26", 0).await;
        environment
            .set_donations(&whole, &[("10.1.0.8/29", &other)])
            .await;
        let given = environment.block(&network, &other, "10.1.0.8/29", 0).await;
        let unused = environment.block(&network, &other, "10.1.0.16/29", 0).await;
        let used = environment.block(&network, &other, "10.1.0.24/29", 1).await;
        let message = environment.until_event("blue", "BlockNotGiven").await;
        assert!(
            message.contains("10.1.0.16/29") && !message.contains("10.1.0.8/29"),
            "{message}"
        );
        until("that what nobody uses is gone", async || {
            !environment.has_block(&unused).await
        })
        .await;
        assert!(environment.has_block(&given).await && environment.has_block(&used).await);
    });
}

#[test]
fn requests_go_with_their_node_and_with_their_network() {
    with_environment("requests", async |environment| {
        let _running = environment.controller();
        let subnets = |cidr: &str| json!({"subnets": {"a": {"cidr": cidr}}});
        let blue = environment.network("blue", subnets("10.1.0.0/24")).await;
        let red = environment.network("red", subnets("10.2.0.0/24")).await;
        environment.until_phase("red", Phase::Active).await;
        let (gone, stays): (Node, Node) = (
            environment.node("gone", None).await,
            environment.node("stays", None).await,
        );
        let of_gone = environment.request(&blue, &gone).await;
        let stay = environment.request(&blue, &stays).await;
        let of_red = environment.request(&red, &stays).await;
        environment.delete_node(&gone).await;
        until("the Node's request is gone", async || {
            !environment.has_request(&of_gone).await
        })
        .await;
        let networks: Api<Network> = environment.api();
        let none = json!({"metadata": {"finalizers": null}});
        networks
            .delete(&red.name_any(), &DeleteParams::default())
            .await
            .unwrap();
        // As if nobody had used it.
        let _ = networks
            .patch("red", &PatchParams::default(), &Patch::Merge(&none))
            .await;
        until("the network's request is gone", async || {
            !environment.has_request(&of_red).await
        })
        .await;
        assert!(environment.has_request(&stay).await);
    });
}
