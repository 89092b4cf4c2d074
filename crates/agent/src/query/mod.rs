//! What can be asked with GET: health, readiness, metrics, attachments; and what Contrail's agent
//! answers about a pod ([`contrail`]). From memory and the journal alone; changes nothing.

mod contrail;

use crate::failure;
use crate::http::Response;
use crate::journal::{State, Stored};
use crate::metrics::{CONTENT_TYPE, Moment};
use crate::verbs::Agent;
use crate::view::{View, views};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// Answers a GET.
    pub(crate) fn query(&self, path: &str, query: &str) -> Response {
        match path {
            "/healthz" => self.health(),
            "/readyz" => self.readiness(),
            "/metrics" => Response {
                content_type: CONTENT_TYPE,
                ..Response::text(200, self.metrics.render(&self.moment()))
            },
            "/attachments" => self.attachments(query),
            _ => self.contrail(path).unwrap_or_else(|| {
                Response::text(
                    404,
                    "no such path; there are /attachments, /healthz, /metrics, /readyz, /vm/, /vm-cfg/\n",
                )
            }),
        }
    }

    fn readiness(&self) -> Response {
        let mut text = String::new();
        let mut status = 200;
        let trouble = match &self.journal {
            Ok(journal) => journal.trouble(),
            Err(error) => Some(error.clone()),
        };
        if let Some(error) = trouble {
            status = 503;
            let _ = writeln!(text, "not ready: {error}");
        } else if !self.ready.load(SeqCst) {
            status = 503;
            text.push_str("not ready: restoring the node's networks\n");
        } else if let Some(error) = self.first_network_is_missing() {
            status = 503;
            let _ = writeln!(text, "not ready: {error}");
        } else {
            text.push_str("ready\n");
        }
        if let Some(file) = self.conflist.as_ref().and_then(|c| c.preceded_by()) {
            let _ = writeln!(
                text,
                "warning: the runtime uses {file}, which sorts before {}: new pods get no interface from Plexus",
                crate::conflist::NAME
            );
        }
        for (feature, reason) in self.features.iter() {
            if let Some(reason) = reason {
                let _ = writeln!(text, "kernel feature {feature} is missing: {reason}");
            }
        }
        Response::text(status, text)
    }

    fn moment(&self) -> Moment {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let journal = self.options.journal();
        let mut log = journal.as_os_str().to_owned();
        log.push("-wal");
        let (running, waiting) = self.admission.operations();
        Moment {
            adds: self.admission.adds(),
            running,
            waiting,
            pools: self.addresses.usage(),
            journal: (size(&journal), size(Path::new(&log))),
            delegates_running: self.runner.running(),
            delegates: self.runner.runs(),
            ready: self.ready.load(SeqCst),
            tasks: self.tasks.counts(),
        }
    }

    fn attachments(&self, query: &str) -> Response {
        let pod = match query.split_once('=') {
            _ if query.is_empty() => None,
            Some(("pod", pod)) if decoded(pod).contains('/') => Some(decoded(pod)),
            _ => {
                let text = format!("{query:?} is not understood: use ?pod=namespace/name\n");
                return Response::text(400, text);
            }
        };
        let stored = match self
            .journal()
            .and_then(|j| j.all().map_err(|e| failure::journal(&e)))
        {
            Ok(stored) => stored,
            Err(error) => return Response::text(503, format!("{error}\n")),
        };
        let wanted =
            |one: &&Stored| pod.is_none() || pod.as_deref() == one.record.body.pod.as_deref();
        let all: Vec<Value> = stored.iter().filter(wanted).flat_map(describe).collect();
        Response::json(200, format!("{:#}\n", Value::Array(all)))
    }
}

/// `%2F` is a slash; nothing else in a name needs this.
fn decoded(text: &str) -> String {
    text.replace("%2F", "/").replace("%2f", "/")
}

fn describe(stored: &Stored) -> Vec<Value> {
    let record = &stored.record;
    let state = match stored.state {
        State::Intent => "attaching",
        State::Done => "attached",
        State::Deleting => "detaching",
    };
    let total = record.body.natives.len() + record.body.delegates.len();
    let done = views(stored);
    let one = |index: usize, network: &str, interface: &str, ips: Vec<String>, how: &str| {
        let mut value = json!({
            "container": record.container, "pod": record.body.pod, "netns": record.netns,
            "index": index, "total": total, "network": network, "interface": interface,
            "ips": ips, "how": how, "state": state,
        });
        if let Some(view) = done.iter().find(|view| view.ifname == interface) {
            complete(&mut value, view);
        }
        value
    };
    let mut all = Vec::new();
    for native in &record.body.natives {
        let ips = native.assigned.ips.iter();
        let ips = ips.map(|ip| ip.address.to_string()).collect();
        let (network, ifname) = (native.network.as_str(), native.ifname.as_str());
        all.push(one(native.index, network, ifname, ips, "native"));
    }
    for delegate in &record.body.delegates {
        let ips = delegate
            .results
            .last()
            .map(|r| r.ips.iter().map(|ip| ip.address.to_string()).collect());
        let (network, ifname) = (delegate.network.as_str(), delegate.ifname.as_str());
        let ips = ips.unwrap_or_default();
        all.push(one(delegate.index, network, ifname, ips, "delegate"));
    }
    all.sort_by_key(|value| value.get("index").and_then(Value::as_u64));
    all
}

/// What is known of an attachment once it is there. Index and total are those among the pod's
/// references, which plugin mode alone does not know.
fn complete(value: &mut Value, view: &View) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    let mut add = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    add("id", json!(view.id));
    add("mac", json!(view.mac));
    add("gateways", json!(view.gateways));
    if !view.reference.source.is_empty() || !view.reference.uuid.is_empty() {
        add("index", json!(view.reference.index));
        add("total", json!(view.reference.total));
        add("namespace", json!(view.reference.namespace));
        add("uuid", json!(view.reference.uuid));
    }
}
