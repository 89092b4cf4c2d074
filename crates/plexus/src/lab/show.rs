//! What `plexus lab` prints.

pub(super) use crate::out::print;

use plexus_lab::{PartReport, Status};
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

/// The lab as a text.
pub(super) fn status(status: &Status) -> String {
    let mut text = format!("lab {} in {}\n", status.lab, status.directory.display());
    let keeper = status.keeper.map_or("-".to_owned(), |pid| pid.to_string());
    let part = |name: &str, part: &PartReport| {
        let pid = part.pid.map_or("-".to_owned(), |pid| pid.to_string());
        let ready = if part.ready { "ready" } else { "not ready" };
        vec![name.to_owned(), pid, ready.to_owned()]
    };
    let mut rows = vec![
        vec!["process".to_owned(), "pid".to_owned(), "state".to_owned()],
        vec!["keeper".to_owned(), keeper, String::new()],
        part("server", &status.server),
        part("controller", &status.controller),
    ];
    for node in &status.nodes {
        rows.push(part(&format!("{}-agent", node.name), &node.agent));
    }
    text.push_str(&table(&rows));
    let mut rows = vec![
        ["pod", "node", "network namespace", "addresses"]
            .map(str::to_owned)
            .into(),
    ];
    for pod in &status.pods {
        let addresses: Vec<String> = pod.addresses.iter().map(ToString::to_string).collect();
        rows.push(vec![
            format!("{}/{}", pod.namespace, pod.name),
            pod.node.to_string(),
            pod.netns.clone(),
            if pod.attached {
                addresses.join(", ")
            } else {
                "not attached".to_owned()
            },
        ]);
    }
    if rows.len() > 1 {
        text.push('\n');
        text.push_str(&table(&rows));
    }
    for problem in status.problems() {
        text.push_str(&format!("\n! {problem}"));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        let padded = cells.map(|(column, cell)| format!("{cell:<0$}", width(column)));
        let padded: Vec<String> = padded.collect();
        format!("  {}\n", padded.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
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
  process     pid  state
  keeper      1
  server      7    ready
  controller  7    ready
  n1-agent    7    ready

  pod    node  network namespace  addresses
  a/web  n1    px-x-s1            10.0.0.1
";
        assert_eq!(status(&lab), expected);
        lab.nodes[0].joined = false;
        lab.keeper = None;
        let text = status(&lab);
        assert!(text.ends_with("lab partition n1 --heal`\n"), "{text}");
        assert!(text.contains("\n! the keeper does not run"), "{text}");
    }
}
