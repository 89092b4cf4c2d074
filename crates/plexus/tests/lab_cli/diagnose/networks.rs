//! Networks and definitions by themselves, and how pods fare on those that cannot be used.

use super::{FaultyLab, NADS, NETWORKS};
use plexus_cli::diagnose::Reason;

pub(super) const LEADS_TO: &[Reason] = &[
    Reason::Attached,
    Reason::Event,
    Reason::NadDiffers,
    Reason::NadUnreadable,
    Reason::NadUsable,
    Reason::NadWithoutNetwork,
    Reason::NetworkActive,
    Reason::NetworkFailed,
    Reason::NetworkInitializing,
    Reason::NetworkPending,
    Reason::NoSubnets,
    Reason::ProviderMissing,
    Reason::SubnetConflict,
];

#[test]
fn networks_and_what_is_said_of_them() {
    let faulty = FaultyLab::up('w', 1, LEADS_TO);
    let ports = "{provider: routed, subnets: {a: {cidr: 10.60.0.0/24}}}";
    faulty.network("first", ports);
    faulty.comes_to(&["network", "first"], Reason::NetworkActive, "ok");
    // Whoever comes later waits; who was there first is told.
    faulty.network("second", ports);
    faulty.comes_to(&["network", "second"], Reason::NetworkPending, "waits");
    faulty.comes_to(&["network", "first"], Reason::SubnetConflict, "waits");
    faulty.pod("queues", "n1", NETWORKS, "second");
    faulty.comes_to(&["pod", "queues"], Reason::NetworkPending, "waits");

    let fancy = "{provider: example.com/fancy, subnets: {a: {cidr: 10.61.0.0/24}}}";
    faulty.network("fancy", fancy);
    faulty.comes_to(&["network", "fancy"], Reason::ProviderMissing, "waits");
    faulty.pod("outside", "n1", NETWORKS, "fancy");
    faulty.comes_to(&["pod", "outside"], Reason::ProviderMissing, "waits");

    let uuid = "5f10db93-0000-4000-8000-000000000001";
    let twin = |net: u8| format!("{{uuid: {uuid}, subnets: {{a: {{cidr: 10.{net}.0.0/24}}}}}}");
    faulty.network("one", &twin(62));
    faulty.comes_to(&["network", "one"], Reason::NetworkActive, "ok");
    faulty.network("other", &twin(63));
    faulty.comes_to(&["network", "other"], Reason::NetworkFailed, "wrong");
    faulty.pod("fails", "n1", NETWORKS, "other");
    faulty.comes_to(&["pod", "fails"], Reason::NetworkFailed, "wrong");

    faulty.network("bare", "{}");
    faulty.comes_to(&["network", "bare"], Reason::NoSubnets, "wrong");

    definitions(&faulty);
    without_a_controller(&faulty);
    faulty.end();
}

fn definitions(faulty: &FaultyLab) {
    faulty.nad("plain", "{}", r#"{"type": "macvlan", "master": "eth1"}"#);
    faulty.comes_to(&["nad", "plain"], Reason::NadUsable, "ok");
    // The controller says of one that it cannot read what is wrong with it.
    faulty.nad("broken", "{}", "{");
    faulty.comes_to(&["nad", "broken"], Reason::NadUnreadable, "wrong");
    faulty.comes_to(&["nad", "broken"], Reason::Event, "waits");

    // Edited while a pod is on it.
    let made = |cidr: &str| {
        let annotations = format!("{{opencontrail.org/cidr: {cidr}}}");
        let config = r#"{"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}"#;
        faulty.nad("made", &annotations, config);
    };
    made("10.64.0.0/24");
    faulty.comes_to(&["network", "made"], Reason::NetworkActive, "ok");
    faulty.pod("stays", "n1", NADS, "made");
    faulty.comes_to(&["pod", "stays"], Reason::Attached, "ok");
    faulty
        .lab
        .eventually("the controller knows that it is used", || {
            faulty.lab.get(&["network", "made"])["status"]["usage"]["allocated"] == 1
        });
    made("10.65.0.0/24");
    faulty.comes_to(&["network", "made"], Reason::NadDiffers, "wrong");
}

fn without_a_controller(faulty: &FaultyLab) {
    faulty.lab.ok(&["kill", "controller", "--hold"]);
    faulty.network("new", "{subnets: {a: {cidr: 10.66.0.0/24}}}");
    let initializing = Reason::NetworkInitializing;
    faulty.comes_to(&["network", "new"], initializing, "waits");
    faulty.pod("early", "n1", NETWORKS, "new");
    faulty.comes_to(&["pod", "early"], initializing, "waits");
    let annotations = "{opencontrail.org/cidr: 10.67.0.0/24}";
    faulty.nad("unmade", annotations, r#"{"type": "contrail-k8s-cni"}"#);
    let without = Reason::NadWithoutNetwork;
    faulty.comes_to(&["nad", "unmade"], without, "waits");
    faulty.pod("before", "n1", NADS, "unmade");
    faulty.comes_to(&["pod", "before"], without, "wrong");
    // Both start by themselves when there is one.
    faulty.lab.ok(&["start", "controller"]);
    for pod in ["early", "before"] {
        faulty.comes_to(&["pod", pod], Reason::Attached, "ok");
    }
}
