//! Sandboxes that the test makes itself, as a runtime does for a static pod: the API knows nothing of them, and need not
//! be there.

use crate::machine::Lab;
use plexus_testkit::run;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

const ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// A sandbox on a node; its namespace goes with it.
pub(crate) struct Sandbox<'a> {
    lab: &'a Lab,
    node: String,
    name: String,
    networks: String,
    netns: String,
}

impl<'a> Sandbox<'a> {
    /// An empty one. Names are the test's to keep apart.
    pub(crate) fn new(lab: &'a Lab, node: &str, name: &str, networks: &str) -> Self {
        let netns = format!("px-{}-s{name}", lab.name());
        run("ip", &["netns", "add", &netns]);
        Self {
            lab,
            node: node.to_owned(),
            name: name.to_owned(),
            networks: networks.to_owned(),
            netns,
        }
    }

    /// ADD; the plugin's answer, or what it said.
    pub(crate) fn add(&self) -> Result<Value, String> {
        self.call("ADD")
    }

    /// DEL, and the namespace with it.
    pub(crate) fn end(self) -> Result<(), String> {
        self.call("DEL").map(drop)
    }

    /// The global addresses that the kernel shows in it.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let listed = run(
            "ip",
            &["-n", &self.netns, "-o", "addr", "show", "scope", "global"],
        );
        let addresses = listed
            .lines()
            .filter_map(|line| line.split_whitespace().nth(3));
        let bare = addresses.filter_map(|address| address.split('/').next());
        bare.map(str::to_owned).collect()
    }

    fn call(&self, verb: &str) -> Result<Value, String> {
        let file = |name: &str| self.lab.file(&format!("{}/{name}", self.node));
        let list = fs::read(file("cni/net.d/00-plexus.conflist")).unwrap();
        let list: Value = serde_json::from_slice(&list).unwrap();
        let mut config = list["plugins"][0].clone();
        config["name"] = list["name"].clone();
        config["cniVersion"] = json!("1.0.0");
        let annotations = json!({"plexus.dev/networks": self.networks});
        config["runtimeConfig"] = json!({ANNOTATIONS: annotations});
        let arguments = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={0};\
             K8S_POD_INFRA_CONTAINER_ID={1};K8S_POD_UID=uid-{0}",
            self.name, self.netns
        );
        let mut child = Command::new("nsenter")
            .arg(format!(
                "--net=/run/netns/px-{}-{}",
                self.lab.name(),
                self.node
            ))
            .arg(file("cni/bin/plexus-cni"))
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", &self.netns)
            .env("CNI_NETNS", format!("/run/netns/{}", self.netns))
            .env("CNI_IFNAME", "eth0")
            .env("CNI_ARGS", arguments)
            .env("CNI_PATH", file("cni/bin"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(config.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(printed);
        }
        Ok(serde_json::from_str(&printed).unwrap_or_default())
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.netns])
            .output();
    }
}
