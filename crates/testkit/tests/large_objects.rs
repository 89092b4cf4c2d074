//! Somebody fills the API server with large NetworkAttachmentDefinitions: an agent's memory stays bounded, the pods of
//! others start as fast as before, and of the large ones it is said why no pod can use them. The API server is one of a
//! few lines that makes the objects as they are asked for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{CniOutput, Node, Pod, Start, config, within};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How many there are, and how large each one is.
const MANY: usize = 500;
const LARGE: usize = 1 << 20;
/// More than an agent may grow, in kB.
const MAX_GROWTH: u64 = 200 << 10;
/// More than an agent and this server take for half a gigabyte, without optimisation.
const LIST_TIMEOUT: Duration = Duration::from_secs(180);

/// The API server: the same for everyone who asks.
struct FakeApi {
    node: String,
    small: String,
    /// The configuration of each of the others, as JSON has text.
    large: String,
}

impl FakeApi {
    /// Serves in the node's namespace until the process ends; gives its port.
    fn start(node: &Node) -> u16 {
        let listener = node.ns().enter(|| TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        let small = json!({"cniVersion": "1.0.0", "name": "small", "type": "bridge", "bridge": "small0",
            "ipam": config::host_local(node, "10.10.0.0/24")});
        let large = json!({"cniVersion": "1.0.0", "name": "large", "type": "bridge", "x": "x".repeat(LARGE)});
        let api = std::sync::Arc::new(FakeApi {
            node: node.name().to_owned(),
            small: json!(small.to_string()).to_string(),
            large: json!(large.to_string()).to_string(),
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let api = std::sync::Arc::clone(&api);
                // A client that goes away in the middle is no failure of the test.
                std::thread::spawn(move || api.serve(stream).ok());
            }
        });
        port
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut out = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut first = String::new();
            if reader.read_line(&mut first)? == 0 {
                return Ok(());
            }
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let line = line.trim().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let mut words = first.split_whitespace();
            let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            if query.contains("watch=") {
                // Nothing ever changes.
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                continue;
            }
            let (code, answer) = match method {
                "GET" => self.answer(path, query),
                _ => failure(405, "MethodNotAllowed"),
            };
            let head = format!(
                "HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            out.write_all(head.as_bytes())?;
            out.write_all(answer.as_bytes())?;
        }
    }

    fn answer(&self, path: &str, query: &str) -> (u16, String) {
        let number = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let (_, value) = pairs.find(|(name, _)| *name == key)?;
            value.parse::<usize>().ok()
        };
        let items = match path.rsplit('/').next().unwrap_or_default() {
            "version" => {
                let version = json!({"major": "1", "minor": "35", "gitVersion": "v1.35.0", "gitCommit": "",
                    "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
                return (200, version.to_string());
            }
            "network-attachment-definitions" => {
                let first = number("continue").unwrap_or(0);
                let end = (first + number("limit").unwrap_or(MANY)).min(MANY + 1);
                let items: Vec<String> = (first..end).map(|number| self.nad(number)).collect();
                return (200, list(&items, (end <= MANY).then_some(end)));
            }
            "nodes" => {
                let address = json!({"type": "InternalIP", "address": "192.0.2.2"});
                let node = json!({"metadata": meta(&self.node, None), "spec": {"podCIDRs": ["10.244.1.0/24"]},
                    "status": {"addresses": [address]}});
                vec![node.to_string()]
            }
            "namespaces" => {
                let namespaces = ["team-a", "team-b"].iter();
                let objects =
                    namespaces.map(|name| json!({"metadata": meta(name, None)}).to_string());
                objects.collect()
            }
            "networks" | "blocks" | "blockrequests" | "pods" | "podattachments"
            | "endpointslices" => Vec::new(),
            _ => return failure(404, "NotFound"),
        };
        (200, list(&items, None))
    }

    /// The last is the small one, of another namespace.
    fn nad(&self, number: usize) -> String {
        let (meta, config) = match number == MANY {
            true => (meta("small", Some("team-b")), &self.small),
            false => (meta(&format!("large{number}"), Some("team-a")), &self.large),
        };
        format!("{{\"metadata\":{meta},\"spec\":{{\"config\":{config}}}}}")
    }
}

fn list(items: &[String], more: Option<usize>) -> String {
    let more = more
        .map(|more| format!(",\"continue\":\"{more}\""))
        .unwrap_or_default();
    format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"metadata\":{{\"resourceVersion\":\"1000\"{more}}},\"items\":[{}]}}",
        items.join(",")
    )
}

fn failure(code: u16, reason: &str) -> (u16, String) {
    let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code});
    (code, status.to_string())
}

fn meta(name: &str, namespace: Option<&str>) -> Value {
    json!({"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "resourceVersion": "5"})
}

fn kubeconfig(node: &Node, port: u16) -> String {
    let path = node.file("kubeconfig");
    let text = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {}}]});
    std::fs::write(&path, text.to_string()).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn five_hundred_megabytes_of_networks_neither_end_an_agent_nor_slow_an_add() {
    let node = Node::new();
    // What one weighs that knows of nothing.
    let alone = Start::on(&node).ready();
    let before = alone.memory("VmRSS");
    alone.kill();

    let path = kubeconfig(&node, FakeApi::start(&node));
    let flags = [
        "--kubeconfig",
        &path,
        "--cluster-network=own",
        "--own-cidrs=node",
        "--cluster-cidrs=10.244.0.0/16",
    ];
    let started = Instant::now();
    let mut agent = Start::on(&node).args(&flags).spawn();
    let conflist = node.cni_conf().join("00-plexus.conflist");
    let ready = within(LIST_TIMEOUT, || {
        let answer = agent.get("/readyz");
        answer.is_some_and(|answer| answer.status == 200) && conflist.exists()
    });
    assert!(ready && agent.alive(), "the agent is not ready");
    let ready = started.elapsed();

    let list: Value = serde_json::from_slice(&std::fs::read(&conflist).unwrap()).unwrap();
    let mut config = list["plugins"][0].clone();
    config["name"] = list["name"].clone();
    config["cniVersion"] = json!("1.0.0");
    let add = |pod: &Pod<'_>, networks: &str| {
        let (mut config, name) = (config.clone(), pod.container());
        let annotations = json!({"k8s.v1.cni.cncf.io/networks": networks});
        config["runtimeConfig"] = json!({"io.kubernetes.cri.pod-annotations": annotations});
        let args = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=team-b;K8S_POD_NAME={name};K8S_POD_UID=uid-{name};\
             K8S_POD_INFRA_CONTAINER_ID={name}"
        );
        pod.call("ADD", &config).args(&args).run()
    };
    let pods = ["first", "second", "third"].map(|name| node.pod(name));
    // Until everything is listed it is told to try again.
    let mut output = None;
    let listed = within(LIST_TIMEOUT, || {
        output = Some(add(&pods[0], "small"));
        output.as_ref().is_some_and(CniOutput::success)
    });
    assert!(listed, "no ADD succeeds: {output:?}");
    let listed = started.elapsed();
    let begun = Instant::now();
    add(&pods[1], "small").ok();
    let took = begun.elapsed();
    let (peak, now) = (agent.memory("VmHWM"), agent.memory("VmRSS"));
    println!(
        "alone {before} kB; with {MANY} NADs of {LARGE} bytes {now} kB, at most {peak} kB; ready after {ready:?}, \
         listed after {listed:?}, an ADD took {took:?}"
    );
    assert!(
        peak < before + MAX_GROWTH,
        "it grew from {before} kB to {peak} kB"
    );
    assert!(took < Duration::from_secs(2), "an ADD took {took:?}");

    let (_, why) = add(&pods[2], "team-a/large7").error();
    for word in ["team-a/large7", "bytes", "65536"] {
        assert!(why.contains(word), "{why} lacks {word}");
    }
    assert!(agent.alive());
}
