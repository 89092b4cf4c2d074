//! Networks that stand for NetworkAttachmentDefinitions.

use crate::environment::{condition, from, until, with_environment};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use plexus_api::nad;
use plexus_api::objects::{Network, NetworkStatus, Phase};
use serde_json::{Value, json};
use std::time::Duration;

const CONTRAIL: &str = r#"{"cniVersion": "0.3.0", "type": "contrail-k8s-cni"}"#;

#[test]
fn a_nad_of_ours_has_a_network_that_goes_with_it() {
    with_environment("nad", async |environment| {
        let running = environment.controller();
        environment.until_ready().await;
        let annotations = json!({
            "opencontrail.org/cidr": "['10.1.1.0/24', 'fd00:1::/64']",
            "opencontrail.org/ip_fabric_snat": "True"
        });
        let nad = environment.nad("network-a", annotations, CONTRAIL).await;
        let status = environment
            .until_status("network-a", |s| s.phase == Some(Phase::Active))
            .await;
        assert!(status.vni.is_some());
        let network = environment.api::<Network>().get("network-a").await.unwrap();
        assert_eq!(network.spec.provider.as_deref(), Some("overlay"));
        assert!(network.spec.snat && network.spec.source_check);
        let last = network.spec.subnets.values().last().unwrap();
        assert_eq!(last.cidr.to_string(), "fd00:1::/64");
        assert_eq!(network.owner_references()[0].uid, nad.uid().unwrap());

        // A controller that was away when it was deleted finds out.
        running.stop().unwrap();
        environment
            .nads()
            .delete("network-a", &DeleteParams::default())
            .await
            .unwrap();
        let _running = environment.controller();
        until("the network is gone", async || {
            environment
                .api::<Network>()
                .get_opt("network-a")
                .await
                .unwrap()
                .is_none()
        })
        .await;
    });
}

#[test]
fn an_edited_nad_that_nobody_uses_is_followed() {
    with_environment("edit", async |environment| {
        let _running = environment.controller();
        environment.until_ready().await;
        environment.nad("a", cidr("10.1.1.0/24"), CONTRAIL).await;
        environment.until_phase("a", Phase::Active).await;
        let provider = async |wanted: &str| {
            let network = environment.api::<Network>().get_opt("a").await.unwrap();
            network.is_some_and(|network| network.spec.provider_name() == wanted)
        };
        environment.annotate("a", nad::CIDR, "10.1.2.0/24").await;
        let new = async || environment.first_subnet("a").await == "10.1.2.0/24";
        until("the new subnet", new).await;
        // The provider of a network cannot change: it is made anew.
        environment.annotate("a", nad::FORWARDING, "true").await;
        until("the new provider", async || provider("routed").await).await;
        environment.annotate("a", nad::FORWARDING, "false").await;
        until("the old provider", async || provider("overlay").await).await;
        environment.until_phase("a", Phase::Active).await;
    });
}

#[test]
fn an_edited_nad_in_use_is_followed_as_far_as_pods_allow() {
    with_environment("edit-used", async |environment| {
        let _running = environment.controller();
        environment.until_ready().await;
        environment.nad("a", cidr("10.1.2.0/24"), CONTRAIL).await;
        environment.until_phase("a", Phase::Active).await;
        let network = environment.api::<Network>().get("a").await.unwrap();
        let node = environment.node("n1", None).await;
        let pod = environment.pod("p", &node).await;
        let _record = environment.record(&pod, &node, &network).await;
        environment.block(&network, &node, "10.1.2.0/26", 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;

        environment.annotate("a", nad::SNAT, "true").await;
        let snat = async || {
            environment
                .api::<Network>()
                .get("a")
                .await
                .unwrap()
                .spec
                .snat
        };
        until("snat", snat).await;
        environment.annotate("a", nad::CIDR, "10.1.3.0/24").await;
        let message = environment.until_event("a", "NetworkInUse").await;
        assert!(message.contains("subnets stay 10.1.2.0/24"), "{message}");
        let differs =
            |s: &NetworkStatus| condition(s, "FollowsNad").is_some_and(|c| c.0 == "False");
        let status = environment.until_status("a", differs).await;
        assert_eq!(status.phase, Some(Phase::Active));
        assert_eq!(environment.first_subnet("a").await, "10.1.2.0/24");

        // Deleted in use: pods keep what they have.
        let now = DeleteParams::default();
        environment.nads().delete("a", &now).await.unwrap();
        let status = environment.until_phase("a", Phase::Terminating).await;
        assert_eq!(condition(&status, "InUse").unwrap().0, "True");
    });
}

#[test]
fn what_is_wrong_with_a_nad_is_said() {
    with_environment("events", async |environment| {
        let taken = json!({"subnets": {"a": {"cidr": "10.9.0.0/24"}}});
        environment.network("taken", taken).await;
        let _running = environment.controller();
        environment.until_ready().await;
        let quotes = "{“cniVersion”: “0.3.0”, “type”: “contrail-k8s-cni”}";
        environment
            .nad("taken", cidr("10.1.1.0/24"), CONTRAIL)
            .await;
        environment.nad("bad", cidr("10.1.1.0/33"), CONTRAIL).await;
        environment.nad("text", json!({}), "not json").await;
        environment.nad("quotes", cidr("10.1.1.0/24"), quotes).await;
        environment
            .nad("other", json!({}), r#"{"type": "macvlan"}"#)
            .await;
        // Legal: its configuration is in a file on the nodes.
        let bare = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "bare"}
        });
        let params = PostParams::default();
        environment
            .nads()
            .create(&params, &from(bare))
            .await
            .unwrap();

        for (name, reason, words) in [
            ("taken", "NameTaken", "not made from this"),
            ("bad", "InvalidConfig", "10.1.1.0/33"),
            ("text", "InvalidConfig", "JSON"),
            ("quotes", "ConfigWarning", "typographic"),
        ] {
            let message = environment.until_event(name, reason).await;
            assert!(message.contains(words), "{name}: {message}");
        }
        environment.until_phase("quotes", Phase::Active).await;
        for name in ["bad", "text", "other", "bare"] {
            let network = environment.api::<Network>().get_opt(name).await.unwrap();
            assert!(network.is_none(), "{name}");
        }
        assert_eq!(environment.first_subnet("taken").await, "10.9.0.0/24");
    });
}

#[test]
fn what_was_said_of_a_nad_is_not_repeated() {
    with_environment("once", async |environment| {
        let running = environment.controller();
        environment.until_ready().await;
        environment.nad("bad", cidr("10.1.1.0/33"), CONTRAIL).await;
        environment.until_event("bad", "InvalidConfig").await;
        // Neither a restart nor an edit of something else repeats it.
        running.stop().unwrap();
        let _running = environment.start(environment.options("two"));
        environment.annotate("bad", "example.com/x", "y").await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(environment.events("bad", "InvalidConfig").await.len(), 1);
        // What is wrong now is something else.
        environment.annotate("bad", nad::CIDR, "10.1.1.0/34").await;
        let two = async || environment.events("bad", "InvalidConfig").await.len() == 2;
        until("the second problem", two).await;
    });
}

fn cidr(text: &str) -> Value {
    json!({nad::CIDR: text})
}
