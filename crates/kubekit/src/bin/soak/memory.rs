//! How much memory agents and controller have.

use crate::summary::Summary;
use plexus_kubekit::{Cluster, Kube};
use std::time::Duration;

/// Notes the resident megabytes of each; who is dead just now is left out.
pub(crate) fn look(kube: &Kube, at: Duration, summary: &mut Summary) {
    let script = "for p in /proc/[0-9]*; do \
                  case \"$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)\" in \
                  '/bin/plexus agent --'*) echo agent $(grep VmRSS $p/status);; \
                  '/bin/plexus controller'*) echo controller $(grep VmRSS $p/status);; esac; done";
    for node in kube.nodes().unwrap_or_default() {
        let Ok(output) = kube.on_node(&node, &["sh", "-c", script]) else {
            continue;
        };
        for line in output.stdout.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [who, _, kilobytes, ..] = words[..]
                && let Ok(kilobytes) = kilobytes.parse::<f64>()
            {
                summary.memory(&format!("{who} {node}"), at, kilobytes / 1024.0);
            }
        }
    }
}
