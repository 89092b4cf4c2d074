//! The first ADD on a node that has nothing yet: the network's own objects are made on the way.

use crate::case::Case;
use crate::harness::{container, settles, survives};
use plexus_testkit::{Agent, Dump, Node, Start};
use std::time::Duration;

const MAX_EFFECTS: usize = 400;

/// As [`agent_dies_in_add`](crate::harness::Harness::agent_dies_in_add), on a fresh node for
/// every k. What the network keeps on the node may be there, in part or not at all, after a
/// death; after a repeated ADD it is there, and after a DEL it stays.
pub(crate) fn agent_dies_in_add(case: Case) -> Result<usize, String> {
    let (dumps, first) = undisturbed(case);
    for k in first..first + MAX_EFFECTS {
        let node = Node::new();
        // The node is there when this panics, and leaves its logs.
        let died = dies_at(k, case, &node, &dumps).unwrap_or_else(|why| panic!("{why}"));
        if !died {
            return Ok(k - first);
        }
    }
    Err(format!(
        "{} from bare: still dying at effect {MAX_EFFECTS}",
        case.name
    ))
}

/// Whether the agent died; then all must be well again.
fn dies_at(k: usize, case: Case, node: &Node, dumps: &[Dump; 3]) -> Result<bool, String> {
    let [bare, completed, warm] = dumps;
    let config = case.config(node);
    let pod = container(node, "c1");
    let mut agent = Start::on(node).die_at(k).ready();
    let _ = pod.call("ADD", &config).timeout(Duration::ZERO).run();
    let died = !survives(&mut agent, node, k);
    drop(agent);
    let last = Agent::effects(node).last().cloned().unwrap_or_default();
    let context = format!("{} from bare: k={k} ({last})", case.name);
    let _agent = Agent::start(node);
    let look = || named(&node.dump(Some(&pod)).naming_macs(), node);
    let after = format!("{context}: after the restart");
    let either = [&own_of(bare), &own_of(completed)];
    settles(|| own_of(&look()), &after, &either)?;
    let steps = [("ADD", "a repeated ADD", completed), ("DEL", "DEL", warm)];
    for (verb, what, expected) in steps {
        let again = pod.cni(verb, &config);
        if !again.success() {
            return Err(format!("{context}: {what} fails: {again:?}"));
        }
        settles(look, &format!("{context}: after {what}"), &[expected])?;
    }
    Ok(died)
}

/// Dumps before, after ADD and after DEL, and the first effect that is not the start's.
fn undisturbed(case: Case) -> ([Dump; 3], usize) {
    let node = Node::new();
    let config = case.config(&node);
    let _agent = Start::on(&node).logging_effects().ready();
    let first = Agent::effects(&node).len() + 1;
    let pod = container(&node, "c1");
    let look = || named(&node.dump(Some(&pod)).naming_macs(), &node);
    let bare = look();
    pod.add(&config);
    let completed = at_rest(look);
    pod.del(&config);
    ([bare, completed, at_rest(look)], first)
}

/// A look after which nothing has changed for a while.
fn at_rest(look: impl Fn() -> Dump) -> Dump {
    let mut last = look();
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(200));
        let now = look();
        if last.diff(&now).is_empty() {
            return now;
        }
        last = now;
    }
    panic!("the node does not come to rest");
}

/// Every k has a node of its own: its name, its number in the marks, and the MAC that the kernel
/// draws for a new bridge are taken out.
fn named(dump: &Dump, node: &Node) -> Dump {
    let mut dump = dump.replacing(node.name(), "NODE");
    // The number by its mark: alone, it can be that of anything.
    for (before, after, word) in [
        ("node link px0 address=\"", "\"", ""),
        ("ifalias=\"plexus ", " c1 ", "plexus "),
    ] {
        let own = dump
            .lines()
            .find_map(|line| Some(line.split_once(before)?.1.split_once(after)?.0));
        if let Some(own) = own.map(str::to_owned) {
            dump = dump.replacing(&format!("{word}{own}"), &format!("{word}OWN"));
        }
    }
    dump
}

/// Without what belongs to the network, not to the attachment.
fn own_of(dump: &Dump) -> Dump {
    const NETWORK_STATE: &[&str] = &[
        "px0",
        " nft ",
        "forward",
        "anycast",
        "accept_redirects",
        "10.244.1.",
        "fd00:244:1:",
        "network {",
    ];
    dump.without(|line| {
        let of_node = line.starts_with("node ") || line.starts_with("journal network");
        of_node && NETWORK_STATE.iter().any(|kept| line.contains(kept))
    })
}
