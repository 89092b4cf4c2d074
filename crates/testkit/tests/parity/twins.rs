//! One pair: two nodes of the same shape, the reference's plugin on one and our agent on the
//! other, the same calls on both.

use crate::facts::Facts;
use crate::interop::{self, attachments, execute};
use crate::pairs::{Implementation, Pair, RESOLV_CONF};
use crate::traffic;
use plexus_testkit::{Agent, CniOutput, Node, Pod, within};
use serde_json::Value;
use std::time::Duration;

/// Longer than duplicate address detection on a bridge, which only the reference does.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Who makes the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Reference,
    Ours,
}

/// One of the two nodes.
pub(crate) struct Twin {
    who: Who,
    pub(crate) node: Node,
    pub(crate) config: Value,
}

impl Twin {
    /// A node that has what the pair wants to find.
    pub(crate) fn new(who: Who, pair: &Pair) -> Self {
        let node = interop::node();
        std::fs::write(node.file("resolv.conf"), RESOLV_CONF).unwrap();
        node.ns().sh(pair.on_node);
        traffic::prepare(&node, pair);
        let config = pair.config(&node);
        Self { who, node, config }
    }

    /// A container with `lo` up, as runtimes have it, and what the pair wants to find in it.
    pub(crate) fn pod(&self, container: &str, pair: &Pair) -> Pod<'_> {
        let pod = self.node.pod(container);
        pod.ns().ip("link set lo up\n");
        pod.ns().sh(pair.in_pod);
        pod
    }

    /// A call for `net1`.
    pub(crate) fn call(&self, verb: &str, pod: &Pod<'_>, pair: &Pair) -> CniOutput {
        self.call_with(verb, pod, pair, &self.config)
    }

    /// CHECK with what ADD answered.
    pub(crate) fn check(&self, pod: &Pod<'_>, pair: &Pair, result: &Value) -> CniOutput {
        let mut config = self.config.clone();
        config["prevResult"] = result.clone();
        self.call_with("CHECK", pod, pair, &config)
    }

    /// A call for `net1` with another configuration.
    pub(crate) fn call_with(
        &self,
        verb: &str,
        pod: &Pod<'_>,
        pair: &Pair,
        config: &Value,
    ) -> CniOutput {
        let netns = pod.netns();
        let attachment = (pod.container(), netns.as_str(), "net1");
        match self.who {
            Who::Reference => execute(&self.node, pair.plugin, verb, attachment, pair.args, config),
            Who::Ours => {
                let call = pod.call(verb, config).ifname("net1");
                call.args(pair.args).run()
            }
        }
    }
}

/// Everything that differs and should not.
pub(crate) fn compare(pair: &Pair) -> Vec<String> {
    let (theirs, ours) = (Twin::new(Who::Reference, pair), Twin::new(Who::Ours, pair));
    let agent = Agent::start(&ours.node);
    let pods = (theirs.pod("c1", pair), ours.pod("c1", pair));
    let before = Facts::of(&ours.node, &pods.1, &Value::Null, pair);
    let added = (
        theirs.call("ADD", &pods.0, pair),
        ours.call("ADD", &pods.1, pair),
    );
    if !added.0.success() || !added.1.success() {
        let after = Facts::of(&ours.node, &pods.1, &Value::Null, pair);
        let changed = before.without_memories().diff(&after.without_memories());
        return refused(pair, &added.0, &added.1, &changed);
    }
    let results = (added.0.json(), added.1.json());
    let mut problems = Vec::new();
    problems.extend(implementation(&attachments(&agent), pair));
    let same = |what: &str, results: (&Value, &Value)| {
        let diff = || {
            let theirs = Facts::of(&theirs.node, &pods.0, results.0, pair);
            let ours = Facts::of(&ours.node, &pods.1, results.1, pair);
            match pair.implementation {
                Implementation::Native => theirs.diff(&ours.as_reference()),
                Implementation::Delegated => theirs.diff(&ours),
            }
        };
        let mut last = diff();
        within(SETTLE_TIMEOUT, || {
            last = if last.is_empty() {
                String::new()
            } else {
                diff()
            };
            last.is_empty()
        });
        (!last.is_empty()).then(|| format!("after {what}{last}"))
    };
    problems.extend(same("ADD", (&results.0, &results.1)));
    problems.extend(macs(&pods.0, &results.0, pair));
    problems.extend(macs(&pods.1, &results.1, pair));
    problems.extend(checks(
        pair,
        (&theirs, &ours),
        (&pods.0, &pods.1),
        (&results.0, &results.1),
    ));
    problems.extend(traffic::compare(
        pair,
        (&theirs, &ours),
        (&pods.0, &pods.1),
        &results,
    ));
    for (twin, pod) in [(&theirs, &pods.0), (&ours, &pods.1)] {
        let deleted = twin.call("DEL", pod, pair);
        if !deleted.success() || !deleted.stdout.trim().is_empty() {
            problems.push(format!("DEL by {:?}: {deleted:?}", twin.who));
        }
    }
    problems.extend(same("DEL", (&Value::Null, &Value::Null)));
    let left = attachments(&agent);
    if !left.is_empty() {
        problems.push(format!("after DEL the journal has {left:?}"));
    }
    problems
}

/// A refusal must be one by both, for the same reason, and ours must change nothing.
fn refused(pair: &Pair, theirs: &CniOutput, ours: &CniOutput, changed: &str) -> Vec<String> {
    let both = !theirs.success() && !ours.success();
    let printed = theirs.json()["msg"].as_str().unwrap_or_default().to_owned();
    let reason = pair.refusal.map_or(printed, str::to_owned);
    let mut problems = Vec::new();
    if !both || !ours.error().1.contains(&reason) {
        problems.push(format!(
            "ADD by the reference: {}\nADD by ours: {}",
            theirs.stdout, ours.stdout
        ));
    } else {
        println!("{}: refused by both: {reason}", pair.name);
    }
    if pair.implementation == Implementation::Native && !changed.is_empty() {
        problems.push(format!("our failed ADD changed{changed}"));
    }
    problems
}

fn implementation(attachments: &[Value], pair: &Pair) -> Option<String> {
    let expected = match pair.implementation {
        Implementation::Native => "native",
        Implementation::Delegated => "delegate",
    };
    let right = attachments.len() == 1 && attachments[0]["how"] == expected;
    (!right).then(|| format!("not one {expected} attachment: {attachments:?}"))
}

/// The MAC of a result is that of the link, and the one that was asked for.
fn macs(pod: &Pod<'_>, result: &Value, pair: &Pair) -> Option<String> {
    let text = pod.ns().run("ip", &["-j", "link", "show", "net1"]);
    let link: Value = serde_json::from_str(&text).unwrap();
    let interfaces = result["interfaces"].as_array()?;
    let inside = interfaces.iter().find(|i| i.get("sandbox").is_some())?;
    let asked = pair.mac.is_none_or(|mac| inside["mac"] == mac);
    let wrong = inside["mac"] != link[0]["address"] || !asked;
    wrong.then(|| format!("the MAC of net1 is {}: {inside}", link[0]["address"]))
}

fn checks(
    pair: &Pair,
    twins: (&Twin, &Twin),
    pods: (&Pod<'_>, &Pod<'_>),
    results: (&Value, &Value),
) -> Vec<String> {
    let mut problems = Vec::new();
    if pair.version == "0.3.1" {
        return problems;
    }
    let theirs = twins.0.check(pods.0, pair, results.0);
    let ours = twins.1.check(pods.1, pair, results.1);
    match pair.check_bug {
        // A delegated CHECK is the reference's, mistakes included.
        Some(text) => {
            let wrong = |answer: &CniOutput| !answer.success() && answer.error().1.contains(text);
            if !wrong(&theirs) {
                problems.push(format!("CHECK by the reference is mended: {theirs:?}"));
            }
            if pair.implementation == Implementation::Native && !ours.success() {
                problems.push(format!("CHECK by ours: {ours:?}"));
            }
        }
        None if !theirs.success() || !ours.success() => {
            problems.push(format!(
                "CHECK by the reference: {theirs:?}\nby ours: {ours:?}"
            ));
        }
        None => {}
    }
    problems
}
