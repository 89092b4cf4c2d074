//! A cluster of kubelets, broken: its parts are killed as processes; an agent is taken away by its DaemonSet.

use super::Kube;
use crate::breakable::{Breakable, node as node_object};
use crate::cluster::{Cluster, Object, TIMEOUT};
use crate::consistency::Observer;
use crate::part::Part;
use crate::wait;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Kills the process of Plexus that serves with this verb in the PID namespace of the node; the kubelet's probes ask one.
const KILL: &str = r#"for dir in /proc/[0-9]*; do
    case "$(tr '\0' ' ' <"$dir/cmdline" 2>/dev/null)" in "/bin/plexus $1 --"*)
    kill -9 "${dir#/proc/}" && echo killed;; esac; done; true"#;

impl Kube {
    /// The agents' DaemonSet.
    pub fn agents() -> Object {
        Object::new("apps/v1", "DaemonSet", "plexus-system", "plexus-agent")
    }

    fn kill_plexus(&self, node: &str, verb: &str) -> Result<bool> {
        let output = self.on_node(node, &["sh", "-c", KILL, "sh", verb])?;
        Ok(output.text()?.contains("killed"))
    }

    /// Where the agents run: on any node, or on those only that this says.
    fn place_agents(&self, affinity: &Value) -> Result<()> {
        let patch = json!({"spec": {"template": {"spec": {"affinity": affinity}}}});
        self.lab.api().merge(&Self::agents(), &patch).map(drop)
    }
}

impl Breakable for Kube {
    fn observer(&self) -> &dyn Observer {
        self
    }

    fn wait_usable(&self, namespace: &str) -> Result<()> {
        let account = Object::new("v1", "ServiceAccount", namespace, "default");
        self.wait_for(&account, TIMEOUT, &|_| true).map(drop)
    }

    fn kill_agent(&self, node: &str) -> Result<bool> {
        self.kill_plexus(node, "agent")
    }

    fn kill_controller(&self) -> Result<bool> {
        for node in Cluster::nodes(self)? {
            if self.kill_plexus(&node, "controller")? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take_agent(&self, node: &str) -> Result<()> {
        let rule = json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [rule]}]});
        self.place_agents(
            &json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}),
        )?;
        wait::until(&format!("no agent on {node}"), TIMEOUT, || {
            let pods = Cluster::list(self, "v1", "Pod", "plexus-system")?;
            let there = pods.iter().any(|pod| {
                pod["spec"]["nodeName"] == node
                    && pod["metadata"]["labels"]["app.kubernetes.io/component"] == "agent"
            });
            Ok((!there).then_some(()))
        })
    }

    fn return_agent(&self, node: &str) -> Result<()> {
        self.place_agents(&Value::Null)?;
        self.wait_rolled_out(&Self::agents())?;
        self.wait_agent(node)
    }

    fn cut_off(&self, node: &str) -> Result<()> {
        self.lab.kill(&Part::Kubelet(node.to_owned()))
    }

    fn rejoin(&self, node: &str) -> Result<()> {
        self.lab.start(&Part::Kubelet(node.to_owned()))
    }

    fn kill_api(&self) -> Result<()> {
        self.lab.kill(&Part::ApiServer)
    }

    fn start_api(&self) -> Result<()> {
        self.lab.start(&Part::ApiServer)?;
        self.lab.wait_api()
    }

    fn register_again(&self, node: &str) -> Result<()> {
        // One that runs writes its status, and does not ask whether its Node is there.
        self.cut_off(node)?;
        self.delete(&node_object(node))?;
        self.rejoin(node)?;
        self.lab.wait_nodes(&[node])
    }

    fn sandboxes(&self, node: &str, namespace: &str) -> Result<BTreeSet<String>> {
        let wanted = format!("^{namespace}$");
        let words = ["pods", "-q", "--state", "ready", "--namespace", &wanted];
        let text = self.crictl(node, &words)?.text()?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    fn stop_sandbox(&self, node: &str, id: &str) -> Result<()> {
        self.crictl(node, &["stopp", id])?.text().map(drop)
    }

    fn revive(&self) -> Result<()> {
        let mut parts = vec![Part::Etcd, Part::ApiServer];
        for node in Cluster::nodes(self)? {
            parts.push(Part::Containerd(node.clone()));
            parts.push(Part::Kubelet(node));
        }
        let dead = parts
            .iter()
            .filter_map(|part| Some(format!("{part}: {:#}", self.lab.ensure(part).err()?)));
        let dead: Vec<String> = dead.collect();
        if !dead.is_empty() {
            bail!("stays dead: {}", dead.join("; "));
        }
        Ok(())
    }
}
