//! Everything of ours goes from a node, and nothing else.

use crate::lab::{Lab, bridge, ifname, net, node_plan};
use plexus_core::fabric::BlockRoute;
use plexus_core::plan::Masquerade;
use plexus_kernel::{clear, fabric, node};

#[test]
fn what_is_ours_goes_and_the_rest_stays() {
    let lab = Lab::new();
    let ns = lab.node.ns();
    ns.sh(
        "ip link add theirs type bridge; ip route add 10.99.0.0/24 via 192.0.2.1; \
           nft add table inet other; ip link add used0 type veth peer used1",
    );
    let names = || ns.sh("ip -o link show | cut -d: -f2; ip route show; nft list tables");
    let before = names();
    let mut wanted = node_plan(vec![
        bridge("br0", &["10.1.0.1/24"]),
        bridge("br1", &["10.2.0.1/24"]),
    ]);
    wanted.masquerades.push(Masquerade {
        network: "blue".parse().unwrap(),
        source: net("10.1.0.0/24"),
        except: vec![],
    });
    node::ensure(&wanted, &lab.side).unwrap();
    let route = BlockRoute {
        dst: net("10.7.0.0/26"),
        via: "192.0.2.1".parse().unwrap(),
    };
    fabric::set_routes(&lab.side, &[route], &[net("10.8.0.0/26")]).unwrap();
    ns.sh("ip link set used0 master br1");
    let ours = ["br0", "br1", "theirs", "absent"].map(ifname);
    let cleared = clear::clear(&lab.side, &ours);
    assert_eq!(cleared.problems, [""; 0]);
    assert_eq!(cleared.left.len(), 2, "{cleared:?}");
    ns.sh("ip link del br1");
    assert_eq!(names(), before);
    // It may be repeated.
    let again = clear::clear(&lab.side, &ours);
    assert_eq!(
        (again.problems.len(), again.left.len()),
        (0, 1),
        "{again:?}"
    );
}
