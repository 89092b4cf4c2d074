//! What the API of a lab has, over the server's socket: none of our clients is in between.

use crate::machine::{Lab, TIMEOUT};
use plexus_testkit::{Response, send};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Where networks are.
pub(crate) const NETWORKS: &str = "/apis/plexus.dev/v1alpha1/networks";
/// Where blocks are.
pub(crate) const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";
/// Where requests for parts of blocks are.
pub(crate) const REQUESTS: &str = "/apis/plexus.dev/v1alpha1/blockrequests";
/// Where records of pods are.
pub(crate) const RECORDS: &str = "/apis/plexus.dev/v1alpha1/podattachments";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Longer than a pod needs, whoever is killed meanwhile.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(120);

impl Lab {
    /// One request; none if the server does not answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Option<Response> {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        send(Path::new(&self.file("server.sock")), method, path, &body)
    }

    /// An object; null if there is none. Asked again until the server answers.
    #[track_caller]
    pub(crate) fn object(&self, path: &str) -> Value {
        let answer = self.insist("GET", path, &Value::Null, &[200, 404]);
        match answer.status {
            200 => answer.json(),
            _ => Value::Null,
        }
    }

    /// The objects of a list. Asked again until the server answers.
    #[track_caller]
    pub(crate) fn objects(&self, path: &str) -> Vec<Value> {
        let list = self.insist("GET", path, &Value::Null, &[200]).json();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// A pod in the namespace `default`.
    pub(crate) fn pod(&self, name: &str) -> Value {
        self.object(&format!("{PODS}/{name}"))
    }

    /// Makes a pod on a node; the server may be away for a while.
    #[track_caller]
    pub(crate) fn make_pod(&self, name: &str, node: &str, networks: &str) {
        self.make_pod_with_port(name, node, networks, None);
    }

    /// The same; a port of the node leads to it.
    #[track_caller]
    pub(crate) fn make_pod_with_port(
        &self,
        name: &str,
        node: &str,
        networks: &str,
        port: Option<u16>,
    ) {
        let mut body = pod(name, node, networks);
        if let Some(port) = port {
            let ports = json!([{"containerPort": 80, "hostPort": port}]);
            body["spec"]["containers"][0]["ports"] = ports;
        }
        // Whoever was killed before it could answer has made it all the same.
        self.insist("POST", PODS, &body, &[201, 409]);
    }

    /// Deletes a pod, whatever the server is doing; it is gone later.
    #[track_caller]
    pub(crate) fn end_pod(&self, name: &str, grace: u32) {
        let path = format!("{PODS}/{name}?gracePeriodSeconds={grace}");
        self.insist("DELETE", &path, &Value::Null, &[200, 404]);
    }

    /// Waits until a pod is ready; gives it.
    #[track_caller]
    pub(crate) fn ready_pod(&self, name: &str) -> Value {
        let mut seen = Value::Null;
        let ready = within(READY_TIMEOUT, || {
            seen = self.pod(name);
            let conditions = seen["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
        });
        assert!(ready, "{name} is not ready: {:#}", seen["status"]);
        seen
    }

    /// Makes a pod and waits until it is ready; gives its addresses on a network. Without one it has the default network
    /// alone, and nothing is given.
    #[track_caller]
    pub(crate) fn pod_on(&self, name: &str, node: &str, network: &str) -> Vec<String> {
        self.make_pod(name, node, network);
        self.ready_pod(name);
        if network.is_empty() {
            return Vec::new();
        }
        self.recorded(name, network)
    }

    /// The addresses of a pod on a network as its record says, once there is one.
    #[track_caller]
    pub(crate) fn recorded(&self, name: &str, network: &str) -> Vec<String> {
        let mut found = Vec::new();
        let there = within(TIMEOUT, || {
            let records = self.objects(RECORDS);
            let own = records
                .iter()
                .filter(|one| one["spec"]["pod"]["name"] == name);
            let all = own.flat_map(|one| one["status"]["attachments"].as_array().cloned());
            let on_it = all
                .flatten()
                .filter(|one| one["network"]["name"] == network);
            found = on_it.flat_map(|one| texts(&one["ips"])).collect();
            !found.is_empty()
        });
        assert!(there, "{name} has no record on {network}");
        found
    }

    /// The blocks of a network: prefix, node.
    #[track_caller]
    pub(crate) fn blocks_of(&self, network: &str) -> Vec<(String, String)> {
        let blocks = self.objects(BLOCKS);
        let own = blocks
            .iter()
            .filter(|one| one["spec"]["network"]["name"] == network);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        own.map(|one| (text(&one["spec"]["cidr"]), text(&one["spec"]["node"])))
            .collect()
    }

    /// The parts that blocks of a network say were given: part, to whom.
    #[track_caller]
    pub(crate) fn given_of(&self, network: &str) -> Vec<(String, String)> {
        let blocks = self.objects(BLOCKS);
        let own = blocks
            .iter()
            .filter(|one| one["spec"]["network"]["name"] == network);
        let given = own.flat_map(|one| one["status"]["given"].as_array().cloned());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        given
            .flatten()
            .map(|one| (text(&one["cidr"]), text(&one["node"])))
            .collect()
    }

    /// Repeats a request until it is answered with one of these numbers.
    #[track_caller]
    fn insist(&self, method: &str, path: &str, body: &Value, wanted: &[u16]) -> Response {
        let mut last = None;
        let answered = within(TIMEOUT, || {
            last = self.ask(method, path, body);
            last.as_ref()
                .is_some_and(|one| wanted.contains(&one.status))
        });
        assert!(answered, "{method} {path}: {last:?}");
        last.unwrap()
    }
}

/// A pod as a manifest has it; `networks` may be empty.
pub(crate) fn pod(name: &str, node: &str, networks: &str) -> Value {
    let mut metadata = json!({"name": name});
    if !networks.is_empty() {
        metadata["annotations"] = json!({"plexus.dev/networks": networks});
    }
    json!({
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "pod", "image": "none"}]},
    })
}

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// Whether something becomes true in time.
pub(crate) fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
