//! Death at every effect while a router is made or removed: what is left is completed or removed.
//! The child is this program again, told by a variable what to do.

use crate::fabric_lab::{Fabric, Network};
use plexus_kernel::{Netns, NodeSide, router};
use std::process::{Command, ExitStatus};

const JOB: &str = "PLEXUS_TEST_ROUTER_JOB";
const PLACE: &str = "PLEXUS_TEST_ROUTER_PLACE";
/// More than there are effects.
const AT_MOST: u32 = 400;

#[test]
fn whatever_the_moment_of_death() {
    let fabric = Fabric::new();
    let node = &fabric.nodes[0];
    let mut blue = Network::new("blue", 5201);
    blue.snat = true;
    let wanted = blue.router(node);
    let look = || {
        let rules = node.ns.sh("nft list ruleset").contains("masquerade");
        let links = node
            .ns
            .sh("ip -o link | cut -d: -f2; ip -o addr show scope global");
        let pins = std::fs::read_dir(&node.dir).map_or(0, |dir| dir.count());
        (links, rules, pins)
    };
    let before = look();
    let die = |job: &str, at: u32| -> ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["router_crash::child", "--exact", "--quiet"])
            .env(JOB, job)
            .env(
                PLACE,
                format!(
                    "{}\n{}\n{}",
                    node.ns.path().display(),
                    node.dir.display(),
                    node.name
                ),
            )
            .env("PLEXUS_DIE_AT", at.to_string())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap()
    };
    let mut deaths = 0;
    for at in 1..AT_MOST {
        let made = die("make", at);
        node.ensure(&wanted);
        assert_eq!(
            node.ensure(&wanted),
            Vec::<String>::new(),
            "death at effect {at}"
        );
        let removed = die("remove", at);
        router::remove(&node.side, &blue.name()).unwrap();
        assert_eq!(look(), before, "death at effect {at}");
        deaths += u32::from(!made.success());
        if made.success() && removed.success() {
            break;
        }
    }
    println!("{deaths} deaths while a router was made");
    assert!(deaths > 20 || !cfg!(feature = "faults"), "{deaths} deaths");
}

#[test]
fn child() {
    let (Ok(job), Ok(place)) = (std::env::var(JOB), std::env::var(PLACE)) else {
        return;
    };
    let [netns, dir, name] = [0, 1, 2].map(|i| place.lines().nth(i).unwrap().to_owned());
    let side = NodeSide::new(Netns::open(&netns).unwrap()).with_routers(dir);
    let mut blue = Network::new("blue", 5201);
    blue.snat = true;
    if job == "remove" {
        router::remove(&side, &blue.name()).unwrap();
    } else {
        router::ensure(&side, &blue.router_at("192.0.2.11", &name)).unwrap();
    }
}
