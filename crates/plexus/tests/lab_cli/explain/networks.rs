//! Networks and definitions by themselves, and how pods fare on those that cannot be used.

use super::{NADS, NETWORKS, Scene};
use plexus_cli::explain::Because;

pub(super) const LEADS_TO: &[Because] = &[
    Because::Attached,
    Because::Event,
    Because::NadDiffers,
    Because::NadUnreadable,
    Because::NadUsable,
    Because::NadWithoutNetwork,
    Because::NetworkActive,
    Because::NetworkFailed,
    Because::NetworkInitializing,
    Because::NetworkPending,
    Because::NoSubnets,
    Because::ProviderMissing,
    Because::SubnetConflict,
];

#[test]
fn networks_and_what_is_said_of_them() {
    let scene = Scene::up('w', 1, LEADS_TO);
    let ports = "{provider: routed, subnets: {a: {cidr: 10.60.0.0/24}}}";
    scene.network("first", ports);
    scene.comes_to(&["network", "first"], Because::NetworkActive, "ok");
    // Whoever comes later waits; who was there first is told.
    scene.network("second", ports);
    scene.comes_to(&["network", "second"], Because::NetworkPending, "waits");
    scene.comes_to(&["network", "first"], Because::SubnetConflict, "waits");
    scene.pod("queues", "n1", NETWORKS, "second");
    scene.comes_to(&["pod", "queues"], Because::NetworkPending, "waits");

    let fancy = "{provider: example.com/fancy, subnets: {a: {cidr: 10.61.0.0/24}}}";
    scene.network("fancy", fancy);
    scene.comes_to(&["network", "fancy"], Because::ProviderMissing, "waits");
    scene.pod("outside", "n1", NETWORKS, "fancy");
    scene.comes_to(&["pod", "outside"], Because::ProviderMissing, "waits");

    let uuid = "5f10db93-0000-4000-8000-000000000001";
    let twin = |net: u8| format!("{{uuid: {uuid}, subnets: {{a: {{cidr: 10.{net}.0.0/24}}}}}}");
    scene.network("one", &twin(62));
    scene.comes_to(&["network", "one"], Because::NetworkActive, "ok");
    scene.network("other", &twin(63));
    scene.comes_to(&["network", "other"], Because::NetworkFailed, "wrong");
    scene.pod("fails", "n1", NETWORKS, "other");
    scene.comes_to(&["pod", "fails"], Because::NetworkFailed, "wrong");

    scene.network("bare", "{}");
    scene.comes_to(&["network", "bare"], Because::NoSubnets, "wrong");

    definitions(&scene);
    without_a_controller(&scene);
    scene.end();
}

fn definitions(scene: &Scene) {
    scene.nad("plain", "{}", r#"{"type": "macvlan", "master": "eth1"}"#);
    scene.comes_to(&["nad", "plain"], Because::NadUsable, "ok");
    // The controller says of one that it cannot read what is wrong with it.
    scene.nad("broken", "{}", "{");
    scene.comes_to(&["nad", "broken"], Because::NadUnreadable, "wrong");
    scene.comes_to(&["nad", "broken"], Because::Event, "waits");

    // Edited while a pod is on it.
    let made = |cidr: &str| {
        let annotations = format!("{{opencontrail.org/cidr: {cidr}}}");
        let config = r#"{"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}"#;
        scene.nad("made", &annotations, config);
    };
    made("10.64.0.0/24");
    scene.comes_to(&["network", "made"], Because::NetworkActive, "ok");
    scene.pod("stays", "n1", NADS, "made");
    scene.comes_to(&["pod", "stays"], Because::Attached, "ok");
    scene
        .lab
        .eventually("the controller knows that it is used", || {
            scene.lab.get(&["network", "made"])["status"]["usage"]["allocated"] == 1
        });
    made("10.65.0.0/24");
    scene.comes_to(&["network", "made"], Because::NadDiffers, "wrong");
}

fn without_a_controller(scene: &Scene) {
    scene.lab.ok(&["kill-controller", "--hold"]);
    scene.network("new", "{subnets: {a: {cidr: 10.66.0.0/24}}}");
    let initializing = Because::NetworkInitializing;
    scene.comes_to(&["network", "new"], initializing, "waits");
    scene.pod("early", "n1", NETWORKS, "new");
    scene.comes_to(&["pod", "early"], initializing, "waits");
    let annotations = "{opencontrail.org/cidr: 10.67.0.0/24}";
    scene.nad("unmade", annotations, r#"{"type": "contrail-k8s-cni"}"#);
    let without = Because::NadWithoutNetwork;
    scene.comes_to(&["nad", "unmade"], without, "waits");
    scene.pod("before", "n1", NADS, "unmade");
    scene.comes_to(&["pod", "before"], without, "wrong");
    // Both start by themselves when there is one.
    scene.lab.ok(&["start-controller"]);
    for pod in ["early", "before"] {
        scene.comes_to(&["pod", pod], Because::Attached, "ok");
    }
}
