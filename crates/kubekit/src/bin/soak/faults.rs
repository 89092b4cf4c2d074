//! What is killed: agents most often, so that an hour has more than fifty of those, and everything else in turn.
//! Nothing stays dead for long.

use crate::rng::Rng;
use crate::summary::Summary;
use anyhow::{Context, Result};
use plexus_kubekit::cluster::is_ready;
use plexus_kubekit::{Cluster, Kube, Object, Part, wait};
use serde_json::Value;
use std::time::{Duration, Instant};

const SYSTEM: &str = "plexus-system";
/// Agents that are killed in an hour, and the other victims.
const AGENTS: u32 = 60;
const OTHERS: u32 = 40;
/// Between two of a kind.
const MIN_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) struct Faults {
    kube: &'static Kube,
    nodes: Vec<String>,
    rng: Rng,
    next_agent: Instant,
    next_other: Instant,
    /// What is dead, and when it comes back.
    dead: Vec<(Part, Instant)>,
}

impl Faults {
    pub(crate) fn new(kube: &'static Kube, rng: Rng) -> Result<Self> {
        let now = Instant::now();
        Ok(Self {
            kube,
            nodes: kube.nodes()?,
            rng,
            next_agent: now + Duration::from_secs(20),
            next_other: now + Duration::from_secs(45),
            dead: Vec::new(),
        })
    }

    /// Kills what is due, and brings back what has been dead for long enough. A run that is shorter than
    /// an hour kills faster, within reason.
    pub(crate) fn step(&mut self, length: Duration, summary: &mut Summary) -> Result<()> {
        let now = Instant::now();
        let (due, waiting) = self.dead.drain(..).partition(|(_, back)| *back <= now);
        self.dead = waiting;
        let due: Vec<(Part, Instant)> = due;
        due.iter().try_for_each(|(part, _)| self.revive(part))?;
        // It gives up by itself when the API server's memory went back a little.
        self.kube.lab().ensure(&Part::Scheduler)?;
        let hour = length.min(Duration::from_secs(3600));
        if now >= self.next_agent {
            self.next_agent = now + (hour / AGENTS).max(MIN_INTERVAL);
            let node = self.rng.pick(&self.nodes).cloned().unwrap_or_default();
            if self.kill_pod("agent", Some(&node)).is_ok() {
                summary.kill("agent");
            }
        }
        if now >= self.next_other {
            self.next_other = now + (hour / OTHERS).max(MIN_INTERVAL);
            self.kill_other(summary)?;
        }
        Ok(())
    }

    /// Brings everything back, and waits for it.
    pub(crate) fn mend(&mut self) -> Result<()> {
        let dead: Vec<(Part, Instant)> = self.dead.drain(..).collect();
        dead.iter().try_for_each(|(part, _)| self.revive(part))?;
        let lab = self.kube.lab();
        lab.ensure(&Part::ApiServer)?;
        lab.wait_api()?;
        self.ensure_controllers()?;
        for node in &self.nodes {
            lab.ensure(&Part::Containerd(node.clone()))?;
            // Again and again: one that finds no containerd yet ends.
            wait::until(&format!("{node} ready"), Duration::from_secs(180), || {
                lab.ensure(&Part::Kubelet(node.clone()))?;
                let seen = self.kube.get(&Object::new("v1", "Node", "", node))?;
                Ok(seen.filter(is_ready))
            })?;
        }
        wait::until("Plexus's pods ready", Duration::from_secs(180), || {
            let pods = self.kube.list("v1", "Pod", SYSTEM)?;
            let enough = pods.len() > self.nodes.len();
            Ok((enough && pods.iter().all(is_ready)).then_some(()))
        })
    }

    fn kill_other(&mut self, summary: &mut Summary) -> Result<()> {
        let node = self.rng.pick(&self.nodes).cloned().unwrap_or_default();
        let part = match self.rng.below(5) {
            0 => {
                if self.kill_pod("controller", None).is_ok() {
                    summary.kill("controller");
                }
                return Ok(());
            }
            1 => Part::Kubelet(node),
            2 => Part::Containerd(node),
            3 => Part::ApiServer,
            _ => Part::ControllerManager,
        };
        if self.dead.iter().any(|(dead, _)| *dead == part) {
            return Ok(());
        }
        // A kubelet ends by itself if it finds no containerd.
        if self.kube.lab().kill(&part).is_ok() {
            summary.kill(match &part {
                Part::Kubelet(_) => "kubelet",
                Part::Containerd(_) => "containerd",
                Part::ApiServer => "API server",
                _ => "controller-manager",
            });
        }
        let back = Instant::now() + Duration::from_millis(self.rng.below(8000) as u64);
        self.dead.push((part, back));
        Ok(())
    }

    fn revive(&self, part: &Part) -> Result<()> {
        let lab = self.kube.lab();
        lab.ensure(part)?;
        match part {
            Part::Containerd(node) => {
                std::thread::sleep(Duration::from_millis(500));
                lab.ensure(&Part::Kubelet(node.clone()))
            }
            Part::ApiServer => {
                lab.wait_api()?;
                self.ensure_controllers()
            }
            _ => Ok(()),
        }
    }

    /// They end if the API server is away for too long; elsewhere a kubelet would start them again.
    fn ensure_controllers(&self) -> Result<()> {
        self.kube.lab().ensure(&Part::ControllerManager)?;
        self.kube.lab().ensure(&Part::Scheduler)
    }

    /// SIGKILL to the process, then the pod is deleted: the kubelet would wait longer and longer before it
    /// started the same pod again.
    fn kill_pod(&self, component: &str, node: Option<&str>) -> Result<()> {
        let pods = self.kube.list("v1", "Pod", SYSTEM)?;
        let found = pods.iter().find(|pod| {
            let label = pod.pointer("/metadata/labels/app.kubernetes.io~1component");
            label.is_some_and(|label| label == component)
                && node.is_none_or(|node| pod["spec"]["nodeName"] == node)
        });
        let found = found.with_context(|| format!("no {component} runs"))?;
        let text = |pointer| found.pointer(pointer).and_then(Value::as_str);
        let (name, on) = (
            text("/metadata/name").context("a pod without a name")?,
            text("/spec/nodeName").context("a pod without a node")?,
        );
        let script = format!(
            "for p in /proc/[0-9]*; do case \"$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)\" in \
             '/bin/plexus {component} --'*) kill -9 ${{p#/proc/}};; esac; done"
        );
        self.kube.on_node(on, &["sh", "-c", &script])?.text()?;
        let pod = Object::pod(SYSTEM, name);
        self.kube.lab().api().delete(&pod, Some(0))
    }
}
