//! Networks that stand for NetworkAttachmentDefinitions.

use crate::setting::{condition, until, with_setting};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use plexus_api::objects::{Network, Phase};
use serde_json::json;
use std::time::Duration;

const CONTRAIL: &str = r#"{"cniVersion": "0.3.0", "type": "contrail-k8s-cni"}"#;

#[test]
fn a_nad_of_ours_has_a_network_that_goes_with_it() {
    with_setting("nad", async |setting| {
        let running = setting.controller();
        setting.until_ready().await;
        let annotations = json!({
            "opencontrail.org/cidr": "['10.1.1.0/24', 'fd00:1::/64']",
            "opencontrail.org/ip_fabric_snat": "True"
        });
        let nad = setting.nad("network-a", annotations, CONTRAIL).await;
        let status = setting
            .until_status("network-a", |s| s.phase == Some(Phase::Active))
            .await;
        assert!(status.vni.is_some());
        let network = setting.api::<Network>().get("network-a").await.unwrap();
        assert_eq!(network.spec.provider.as_deref(), Some("overlay"));
        assert!(network.spec.snat && network.spec.source_check);
        let last = network.spec.subnets.values().last().unwrap();
        assert_eq!(last.cidr.to_string(), "fd00:1::/64");
        assert_eq!(network.owner_references()[0].uid, nad.uid().unwrap());

        // A controller that was away when it was deleted finds out.
        running.stop().unwrap();
        setting
            .nads()
            .delete("network-a", &DeleteParams::default())
            .await
            .unwrap();
        let _running = setting.controller();
        until("the network is gone", async || {
            setting
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
fn an_edited_nad_is_followed_as_far_as_pods_allow() {
    with_setting("edit", async |setting| {
        let _running = setting.controller();
        setting.until_ready().await;
        setting
            .nad(
                "a",
                json!({"opencontrail.org/cidr": "10.1.1.0/24"}),
                CONTRAIL,
            )
            .await;
        setting
            .until_status("a", |s| s.phase == Some(Phase::Active))
            .await;
        let annotate = async |key: &str, value: &str| {
            let patch = json!({"metadata": {"annotations": {key: value}}});
            setting
                .nads()
                .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .unwrap();
        };
        let spec = async || {
            setting
                .api::<Network>()
                .get_opt("a")
                .await
                .unwrap()
                .map(|network| network.spec)
        };
        // Nobody uses it: everything can change, the provider by making it anew.
        annotate("opencontrail.org/cidr", "10.1.2.0/24").await;
        until("the new subnet", async || {
            setting.first_subnet("a").await == "10.1.2.0/24"
        })
        .await;
        annotate("opencontrail.org/ip_fabric_forwarding", "true").await;
        until("the new provider", async || {
            spec().await.is_some_and(|s| s.provider_name() == "routed")
        })
        .await;
        annotate("opencontrail.org/ip_fabric_forwarding", "false").await;
        until("the old provider", async || {
            spec().await.is_some_and(|s| s.provider_name() == "overlay")
        })
        .await;
        setting
            .until_status("a", |s| s.phase == Some(Phase::Active))
            .await;

        let network = setting.api::<Network>().get("a").await.unwrap();
        let node = setting.node("n1", None).await;
        let pod = setting.pod("p", &node).await;
        let _record = setting.record(&pod, &node, &network).await;
        setting.block(&network, &node, "10.1.2.0/26", 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        annotate("opencontrail.org/ip_fabric_snat", "true").await;
        until("snat", async || spec().await.is_some_and(|s| s.snat)).await;
        annotate("opencontrail.org/cidr", "10.1.3.0/24").await;
        let message = setting.until_event("a", "NetworkInUse").await;
        assert!(message.contains("subnets stay 10.1.2.0/24"), "{message}");
        let status = setting
            .until_status("a", |s| {
                condition(s, "FollowsNad").is_some_and(|c| c.0 == "False")
            })
            .await;
        assert_eq!(status.phase, Some(Phase::Active));
        assert_eq!(setting.first_subnet("a").await, "10.1.2.0/24");

        // Deleted in use: pods keep what they have.
        setting
            .nads()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        let status = setting
            .until_status("a", |s| s.phase == Some(Phase::Terminating))
            .await;
        assert_eq!(condition(&status, "InUse").unwrap().0, "True");
    });
}

#[test]
fn what_is_wrong_with_a_nad_is_said_once() {
    with_setting("events", async |setting| {
        setting
            .network("taken", json!({"subnets": {"a": {"cidr": "10.9.0.0/24"}}}))
            .await;
        let running = setting.controller();
        setting.until_ready().await;
        let cidr = json!({"opencontrail.org/cidr": "10.1.1.0/24"});
        setting.nad("taken", cidr.clone(), CONTRAIL).await;
        setting
            .nad(
                "bad-cidr",
                json!({"opencontrail.org/cidr": "10.1.1.0/33"}),
                CONTRAIL,
            )
            .await;
        setting.nad("no-json", json!({}), "not json").await;
        setting
            .nad(
                "quotes",
                cidr,
                "{“cniVersion”: “0.3.0”, “type”: “contrail-k8s-cni”}",
            )
            .await;
        setting
            .nad(
                "other",
                json!({}),
                r#"{"cniVersion": "1.0.0", "type": "macvlan"}"#,
            )
            .await;
        // A foreign CRD may let this in: ours prunes it to a NAD without a config.
        let bare = json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "bare"}});
        setting
            .nads()
            .create(
                &PostParams::default(),
                &serde_json::from_value(bare).unwrap(),
            )
            .await
            .unwrap();

        assert!(
            setting
                .until_event("taken", "NameTaken")
                .await
                .contains("not made from this")
        );
        assert!(
            setting
                .until_event("bad-cidr", "InvalidConfig")
                .await
                .contains("10.1.1.0/33")
        );
        assert!(
            setting
                .until_event("no-json", "InvalidConfig")
                .await
                .contains("JSON")
        );
        assert!(
            setting
                .until_event("quotes", "ConfigWarning")
                .await
                .contains("typographic")
        );
        setting
            .until_status("quotes", |s| s.phase == Some(Phase::Active))
            .await;
        for name in ["bad-cidr", "no-json", "other", "bare"] {
            assert!(
                setting
                    .api::<Network>()
                    .get_opt(name)
                    .await
                    .unwrap()
                    .is_none(),
                "{name}"
            );
        }
        let taken = setting.api::<Network>().get("taken").await.unwrap();
        assert_eq!(taken.spec.subnets["a"].cidr.to_string(), "10.9.0.0/24");

        // Neither a restart nor an edit elsewhere repeats it.
        running.stop().unwrap();
        let _running = setting.start(setting.options("two"));
        let patch = json!({"metadata": {"labels": {"x": "y"}}});
        setting
            .nads()
            .patch("bad-cidr", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        for (name, reason) in [
            ("taken", "NameTaken"),
            ("bad-cidr", "InvalidConfig"),
            ("quotes", "ConfigWarning"),
        ] {
            assert_eq!(setting.events(name, reason).await.len(), 1, "{name}");
        }
    });
}
