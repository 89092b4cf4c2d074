//! Servers that say who they are and whom they see, in pods, on nodes and outside, and those who ask
//! them: what address a packet arrives from is what routing and masquerading are about.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses some of it, and a test that cannot go on ends"
)]

use crate::common;
pub(crate) use crate::common::node_ips;
use plexus_kubekit::cluster;
use plexus_kubekit::{Cluster, Object, Output, wait};
use serde_json::{Value, json};
use std::time::Duration;

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HttpClient<'a> {
    Pod(&'a Object),
    Node(&'a str),
    Outside,
}

/// What a server answered: its name, and the address that it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) name: String,
    pub(crate) source: String,
}

/// A pod that answers on port 80 with its name and the address of whoever asks.
pub(crate) fn pod(namespace: &str, name: &str, node: &str, annotations: &[(&str, &str)]) -> Value {
    let script = format!("{SERVE}; exec httpd -f -h /www");
    let mut pod = common::pod(namespace, name, node, annotations);
    pod["spec"]["containers"][0]["command"] = json!(["sh", "-c", script]);
    pod["metadata"]["labels"] = json!({"name": name});
    pod
}

/// Asks once.
pub(crate) fn ask(
    cluster: &dyn Cluster,
    from: HttpClient<'_>,
    address: &str,
    port: u16,
) -> Option<Answer> {
    let host = if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    };
    let url = format!("http://{host}:{port}/cgi-bin/me");
    let curl = ["curl", "-gsf", "-m", "3", &url];
    // busybox's own wget is a static program that looks for libraries.
    let plain = format!(
        "printf 'GET /cgi-bin/me HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} {port} | tail -n1"
    );
    let output: Output = match from {
        HttpClient::Pod(pod) => cluster.exec(pod, &["sh", "-c", &plain]),
        HttpClient::Node(node) => cluster.on_node(node, &curl),
        HttpClient::Outside => cluster.outside(&curl),
    }
    .expect("it runs");
    let mut words = output.stdout.split_whitespace();
    let (name, source) = (words.next()?.to_owned(), words.next()?);
    let source = source.trim_matches(['[', ']']);
    let source = source.strip_prefix("::ffff:").unwrap_or(source).to_owned();
    output.ok().then_some(Answer { name, source })
}

/// Asks until there is an answer: routes and the rules of a new Service come a moment after the pods.
pub(crate) fn answer(
    cluster: &dyn Cluster,
    from: HttpClient<'_>,
    address: &str,
    port: u16,
) -> Answer {
    let answered = wait::until(
        &format!("{address}:{port} from {from:?}"),
        ANSWER_TIMEOUT,
        || Ok(ask(cluster, from, address, port)),
    );
    answered.expect("it answers")
}

/// Waits until nobody answers any more.
pub(crate) fn wait_silent(cluster: &dyn Cluster, from: HttpClient<'_>, address: &str, port: u16) {
    wait::until(&format!("{address}:{port} silent"), ANSWER_TIMEOUT, || {
        Ok(ask(cluster, from, address, port).is_none().then_some(()))
    })
    .expect("nobody answers");
}

/// The pod's addresses, IPv4 first.
pub(crate) fn pod_ips(cluster: &dyn Cluster, pod: &Object) -> Vec<String> {
    let seen = cluster.wait_ready(pod, cluster::TIMEOUT).expect("ready");
    let listed = seen["status"]["podIPs"].as_array();
    let each = listed.into_iter().flatten();
    let mut ips: Vec<String> = each
        .filter_map(|entry| Some(entry["ip"].as_str()?.to_owned()))
        .collect();
    ips.sort_by_key(|ip| ip.contains(':'));
    ips
}

/// The Service's addresses, IPv4 first.
pub(crate) fn service_ips(cluster: &dyn Cluster, namespace: &str, name: &str) -> Vec<String> {
    let object = Object::new("v1", "Service", namespace, name);
    let seen = cluster.get(&object).expect("asked").expect("is there");
    let listed = seen["spec"]["clusterIPs"].as_array();
    let each = listed.into_iter().flatten();
    let mut ips: Vec<String> = each
        .filter_map(|ip| Some(ip.as_str()?.to_owned()))
        .collect();
    ips.sort_by_key(|ip| ip.contains(':'));
    ips
}

/// A Service of both families in front of the pod of that name.
pub(crate) fn service(namespace: &str, name: &str, pod: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "type": kind, "ipFamilyPolicy": "RequireDualStack", "selector": {"name": pod},
            "ports": [{"port": 8000, "targetPort": 80}],
        },
    })
}

/// A server on a node or outside, gone when dropped.
pub(crate) struct Server<'a> {
    cluster: &'a dyn Cluster,
    node: Option<&'a str>,
    pid: String,
}

impl<'a> Server<'a> {
    /// Starts it on all addresses of that place.
    pub(crate) fn start(cluster: &'a dyn Cluster, node: Option<&'a str>, port: u16) -> Self {
        let script = format!(
            "dir=$(mktemp -d); cd $dir; www=$dir/www; {}; \
             (timeout 60 busybox httpd -f -p {port} -h $www; rm -rf $dir) >/dev/null 2>&1 </dev/null & echo $!",
            SERVE.replace("/www", "$www")
        );
        let mut server = Self {
            cluster,
            node,
            pid: String::new(),
        };
        let text = server.run(&script).text().expect("a server");
        text.trim().clone_into(&mut server.pid);
        server
    }

    fn run(&self, script: &str) -> Output {
        let argv = ["sh", "-c", script];
        match self.node {
            Some(node) => self.cluster.on_node(node, &argv),
            None => self.cluster.outside(&argv),
        }
        .expect("it runs")
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // The shell then removes its files.
        self.run(&format!("pkill -P {}", self.pid));
    }
}

/// Longer than kube-proxy takes on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes the pages of a server.
const SERVE: &str = "mkdir -p /www/cgi-bin; \
     printf '#!/bin/sh\\necho; echo $(hostname) $REMOTE_ADDR\\n' >/www/cgi-bin/me; \
     hostname >/www/index.html; chmod 755 /www/cgi-bin/me";
