use crate::lab::{Lab, link, plan, routed};
use plexus_core::plan::LinkKind;
use plexus_kernel::pod;
use plexus_testkit::eventually;

#[test]
fn a_veth_lives_as_long_as_its_end_on_the_node() {
    let lab = Lab::new();
    let plan = plan(1, vec![routed("c1", "eth0", &["10.1.0.2/32"])]);
    assert_eq!(pod::living(&plan, &lab.side).unwrap(), None);
    let pod = lab.pod("one");
    lab.apply(&plan, &pod);
    assert!(pod::living(&plan, &lab.side).unwrap().is_some());
    drop(pod);
    eventually("the end is gone", || {
        pod::living(&plan, &lab.side).unwrap().is_none()
    });
}

#[test]
fn a_macvlan_is_seen_in_a_namespace_that_nobody_shows() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mine = plan(1, vec![lab.macvlan("c1", "net1", &["192.0.2.11/24"])]);
    lab.apply(&mine, &pod);
    let other = plan(2, vec![lab.macvlan("c2", "net1", &["192.0.2.12/24"])]);
    assert_eq!(pod::living(&other, &lab.side).unwrap(), None);
    // Its path is gone: only the open file keeps it alive.
    pod.ns.remove();
    assert_eq!(
        pod::living(&mine, &lab.side).unwrap().as_deref(),
        Some("net1")
    );
    drop(pod.netns);
    eventually("the namespace is gone", || {
        pod::living(&mine, &lab.side).unwrap().is_none()
    });
}

#[test]
fn a_pod_that_another_plugin_gave_a_veth_has_a_number_already() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let add = format!(
        "ip link add other0 type veth peer name eth0 netns {}",
        pod.ns.name()
    );
    lab.node.ns().sh(&add);
    lab.node.ns().sh("ip link show other0");
    let plan = plan(1, vec![lab.macvlan("c1", "net1", &["192.0.2.11/24"])]);
    lab.apply(&plan, &pod);
    assert!(pod::living(&plan, &lab.side).unwrap().is_some());
}

#[test]
fn a_router_out_of_reach_is_no_evidence() {
    let mut lab = Lab::new();
    let routers = lab.node.file("routers");
    std::fs::create_dir_all(&routers).unwrap();
    lab.side = lab.side.with_routers(&routers);
    let mut made = link(
        "c1",
        "eth0",
        LinkKind::Veth(crate::lab::host_end("c1", "eth0")),
        &[],
    );
    let LinkKind::Veth(end) = &mut made.kind else {
        panic!("it is a veth");
    };
    let router = plexus_types::RouterName::of("blue");
    end.router = Some(router.clone());
    let plan = plan(1, vec![made]);
    // A router that is not there has no ends.
    assert_eq!(pod::living(&plan, &lab.side).unwrap(), None);
    // What is seen of one whose mount does not reach this process.
    std::fs::write(routers.join(router.as_str()), "").unwrap();
    let error = pod::living(&plan, &lab.side).unwrap_err();
    assert!(error.to_string().contains("router"), "{error}");
}
