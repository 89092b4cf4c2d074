//! What kubelet does to a pod over the network: probes, and carrying a user's connection to a port.

use crate::common;
use crate::stage;
use crate::web::pod;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Kube, Object};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn probes_and_forwarded_ports_reach_the_pod() {
    stage!("kubelet" => Need::Kubelet, kube, namespace, nodes);
    let ns = namespace.name();
    let quick = |probe: Value| {
        let mut probe = probe;
        probe["periodSeconds"] = json!(1);
        probe
    };
    let http = |port: u16| quick(json!({"httpGet": {"path": "/", "port": port}}));
    let tcp = quick(json!({"tcpSocket": {"port": 80}}));
    let probed = |name: &str, node: &str, ready: Value| {
        let mut pod = pod(ns, name, node, &[]);
        let container = &mut pod["spec"]["containers"][0];
        container["startupProbe"] = tcp.clone();
        container["livenessProbe"] = tcp.clone();
        container["readinessProbe"] = ready;
        pod
    };
    common::apply(
        kube,
        &[
            probed("good", &nodes[0], http(80)),
            probed("bad", &nodes[1], http(81)),
        ],
    );
    let (good, bad) = (namespace.pod("good"), namespace.pod("bad"));
    common::ready(kube, &[&good]);
    // Refused by the pod, at the pod's address: the probe was there.
    let started = kube.wait_for(&bad, plexus_kubekit::cluster::TIMEOUT, &|pod| {
        pod["status"]["containerStatuses"][0]["started"] == true
    });
    let started = started.expect("its other probe succeeds");
    let address = started["status"]["podIP"].as_str().expect("an address");
    let words = ["Readiness", &format!("{address}:81"), "refused"];
    common::event(kube, &bad, "Unhealthy", &words);

    assert_eq!(forwarded(kube, &good), "good");
    let log = kube
        .kubectl(&["logs", "-n", ns, "good"], "")
        .expect("it runs");
    assert!(log.ok(), "{log:?}");
}

/// What the pod's index page says, by way of `kubectl port-forward`.
fn forwarded(kube: &Kube, pod: &Object) -> String {
    let lab = kube.lab();
    let mut forward = Command::new(lab.tools().kubernetes.join("kubectl"));
    forward
        .arg(format!(
            "--kubeconfig={}",
            lab.layout().kubeconfig().display()
        ))
        .args([
            "port-forward",
            "-n",
            &pod.namespace,
            &format!("pod/{}", pod.name),
            ":80",
        ])
        .args(["--address", "127.0.0.1"])
        .stdout(Stdio::piped());
    let mut running = Running(forward.spawn().expect("kubectl starts"));
    let stdout = running.0.stdout.take().expect("a pipe");
    let mut line = String::new();
    // Kept: kubectl ends if nobody listens to it.
    let mut lines = BufReader::new(stdout);
    lines.read_line(&mut line).expect("a line");
    let port = line
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let port: u16 = port.and_then(|port| port.parse().ok()).expect(&line);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a bound");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.lines().last().unwrap_or_default().to_owned()
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Either may fail only if it ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
