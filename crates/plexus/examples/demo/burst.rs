//! Several pods at once, and an agent that dies among them.

use crate::lab::Lab;
use anyhow::{Context, Result, bail};
use plexus_testkit::Journal;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

const PODS: usize = 8;
const MAX_TRIES: usize = 12;
const BURST_TIMEOUT: Duration = Duration::from_secs(30);

/// kill -9 while some of the pods are attached, some are being attached and some are not begun. Those in the middle are known by the
/// journal that the agent leaves: an intent that is not done. It may take a few tries to hit one.
pub(crate) fn kill_in_the_middle(lab: &Lab) -> Result<()> {
    for attempt in 1..=MAX_TRIES {
        let names: Vec<String> = (1..=PODS).map(|n| format!("late-{attempt}-{n}")).collect();
        apply(lab, &manifest(&names))?;
        wait("the first pod", || Ok(records(lab)?.0 > 0))?;
        // Each try a little later.
        std::thread::sleep(Duration::from_millis(attempt as u64 * 4 - 4));
        let killed = lab.run(&["lab", "kill", "n2"])?;
        let took = Instant::now();
        let journal = Journal::at(&lab.file("n2/state/journal.db"));
        let open = journal.open_intents();
        let middle = open.get("intent").copied().unwrap_or_default();
        let (_, done) = records(lab)?;
        let pods: Vec<(&str, &str)> = names.iter().map(|n| ("team-a", n.as_str())).collect();
        wait_ready(lab, &pods)?;
        if middle > 0 {
            tell!("  $ plexus lab kill n2\n    {}", killed.trim());
            tell!(
                "    of {PODS} pods {done} were attached, {middle} in the middle (the journal says: intent)"
            );
            tell!(
                "    all {PODS} were ready {:.1} s later: the next agent settled the journal, plexus-cni had waited for it",
                took.elapsed().as_secs_f64()
            );
            return Ok(());
        }
        let mut words = vec!["delete", "pod", "-n", "team-a"];
        words.extend(names.iter().map(String::as_str));
        lab.run(&words)?;
        wait("the pods to go", || Ok(records(lab)?.0 == 0))?;
    }
    bail!("no kill in {MAX_TRIES} met a pod in the middle")
}

/// Waits until pods are ready.
pub(crate) fn wait_ready(lab: &Lab, pods: &[(&str, &str)]) -> Result<()> {
    wait("the pods", || {
        let status = lab.command(&["lab", "status", "-o", "json"]).output()?;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout)?;
        let attached = status["pods"].as_array().into_iter().flatten();
        let attached: Vec<_> = attached.filter(|pod| pod["attached"] == true).collect();
        Ok(pods.iter().all(|(namespace, name)| {
            let mut attached = attached.iter();
            attached.any(|pod| pod["namespace"] == *namespace && pod["name"] == *name)
        }))
    })?;
    // What the API says of them follows, within moments.
    wait("their records", || {
        let text = lab.run(&["get", "pods", "--all-namespaces"])?;
        let ready = |name: &str| {
            let mut lines = text.lines();
            lines.any(|line| line.contains(name) && line.contains("eth0,net1,net2"))
        };
        Ok(pods.iter().all(|(_, name)| ready(&format!(" {name} "))))
    })
}

fn manifest(names: &[String]) -> String {
    let pod = |name: &String| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: team-a, \
             annotations: {{plexus.dev/networks: 'blue,default/storage'}}}}, \
             spec: {{nodeName: n2, containers: [{{name: c, image: none}}]}}}}\n"
        )
    };
    let pods: Vec<String> = names.iter().map(pod).collect();
    pods.join("---\n")
}

fn apply(lab: &Lab, yaml: &str) -> Result<()> {
    let mut apply = lab.command(&["apply", "-f", "-"]);
    let mut child = apply
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run plexus apply")?;
    let mut pipe = child.stdin.take().context("no pipe")?;
    pipe.write_all(yaml.as_bytes())?;
    drop(pipe);
    // Not waited for: pods are attached as soon as they are made.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// The new pods' sandboxes on n2: how many there are, how many of them are attached.
fn records(lab: &Lab) -> Result<(usize, usize)> {
    let mut found = (0, 0);
    for entry in std::fs::read_dir(lab.file("n2/pods"))?.flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let name = record["name"].as_str().unwrap_or_default();
        if name.starts_with("late-") {
            found.0 += 1;
            found.1 += usize::from(!record["result"].is_null());
        }
    }
    Ok(found)
}

fn wait(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < BURST_TIMEOUT {
        if crate::stopped() {
            bail!("stopped");
        }
        if holds()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    bail!("waited {BURST_TIMEOUT:?} in vain for {what}")
}
