//! What `plexus lab` prints.

pub(super) use crate::out::print;

use plexus_cli::text::{Cell, Paint, Screen, Table};
use plexus_lab::{LabSummary, PartReport, Status};
use serde::Serialize;

pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// What became of a process that was to be killed.
pub(super) fn killed(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("killed (process {pid})"),
        None => "is held: it did not run".to_owned(),
    }
}

/// The labs of this machine.
pub(super) fn labs(labs: &[LabSummary]) -> Table {
    let mut table = Table::new(["LAB", "NODES", "KEEPER", "DIRECTORY"]);
    for lab in labs {
        let keeper = match lab.keeper {
            Some(_) => Cell::painted(Paint::Good, "runs"),
            None => Cell::painted(Paint::Bad, "does not run"),
        };
        table.row(vec![
            lab.lab.as_str().into(),
            lab.nodes
                .map(|nodes| nodes.to_string())
                .unwrap_or_default()
                .into(),
            keeper,
            lab.directory.display().to_string().into(),
        ]);
    }
    table
}

/// The lab as a text.
pub(super) fn status(status: &Status, screen: Screen) -> String {
    let mut text = format!("lab {} in {}\n", status.lab, status.directory.display());
    text.push_str(&processes(status).render(screen));
    let pods = pods(status);
    if !pods.is_empty() {
        text.push('\n');
        text.push_str(&pods.render(screen));
    }
    let problems = status.problems();
    if !problems.is_empty() {
        text.push('\n');
    }
    for problem in problems {
        text.push_str(&screen.wrapped("! ", 2, &problem));
    }
    text
}

fn processes(status: &Status) -> Table {
    let number = |pid: Option<i32>| pid.map_or("-".to_owned(), |pid| pid.to_string());
    let mut table = Table::new(["PROCESS", "PID", "STATE"]);
    let keeper = match status.keeper {
        Some(_) => Cell::painted(Paint::Good, "runs"),
        None => Cell::painted(Paint::Bad, "does not run"),
    };
    table.row(vec!["keeper".into(), number(status.keeper).into(), keeper]);
    let mut part = |name: String, part: &PartReport| {
        let state = match part.ready {
            true => Cell::painted(Paint::Good, "ready"),
            false => Cell::painted(Paint::Bad, "not ready"),
        };
        table.row(vec![name.into(), number(part.pid).into(), state]);
    };
    part("server".to_owned(), &status.server);
    part("controller".to_owned(), &status.controller);
    for node in &status.nodes {
        part(format!("{}-agent", node.name), &node.agent);
    }
    table
}

fn pods(status: &Status) -> Table {
    let mut table = Table::new(["POD", "NODE", "ADDRESSES", "NETWORK NAMESPACE"]);
    for pod in &status.pods {
        let addresses: Vec<String> = pod.addresses.iter().map(ToString::to_string).collect();
        let addresses = match pod.attached {
            true => Cell::from(addresses.join(", ")),
            false => Cell::painted(Paint::Bad, "not attached"),
        };
        table.row(vec![
            format!("{}/{}", pod.namespace, pod.name).into(),
            pod.node.to_string().into(),
            addresses,
            pod.netns.as_str().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_lab::{NodeStatus, PodStatus};

    #[test]
    fn what_is_wrong_is_at_the_end() {
        let ready = PartReport {
            pid: Some(7),
            ready: true,
            ..PartReport::default()
        };
        let mut lab = Status {
            lab: "x".to_owned(),
            directory: "/d".into(),
            kubeconfig: "/d/k".into(),
            keeper: Some(1),
            server: ready.clone(),
            controller: ready.clone(),
            nodes: vec![NodeStatus {
                name: "n1".parse().unwrap(),
                netns: "px-x-n1".to_owned(),
                addresses: vec![],
                agent: ready,
                joined: true,
            }],
            pods: vec![PodStatus {
                namespace: "a".to_owned(),
                name: "web".to_owned(),
                uid: "u".to_owned(),
                node: "n1".parse().unwrap(),
                netns: "px-x-s1".to_owned(),
                addresses: vec!["10.0.0.1".parse().unwrap()],
                attached: true,
            }],
        };
        let expected = "\
lab x in /d
PROCESS      PID   STATE
keeper       1     runs
server       7     ready
controller   7     ready
n1-agent     7     ready

POD     NODE   ADDRESSES   NETWORK NAMESPACE
a/web   n1     10.0.0.1    px-x-s1
";
        assert_eq!(status(&lab, Screen::PIPE), expected);
        let narrow = Screen {
            colour: true,
            width: Some(40),
        };
        let text = status(&lab, narrow);
        assert!(text.contains("\x1b["), "{text}");
        lab.nodes[0].joined = false;
        lab.keeper = None;
        let text = status(&lab, Screen::PIPE);
        assert!(text.ends_with("lab heal n1`\n"), "{text}");
        assert!(text.contains("\n! the keeper does not run"), "{text}");
    }
}
