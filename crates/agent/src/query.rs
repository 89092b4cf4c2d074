//! What can be asked with GET: health, readiness, metrics, attachments.

use crate::failure;
use crate::http::Response;
use crate::journal::{State, Stored};
use crate::verbs::Agent;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// Answers a GET.
    pub(crate) fn query(&self, path: &str, query: &str) -> Response {
        match path {
            "/healthz" => Response::text(200, "ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => Response::text(200, self.metrics_text()),
            "/attachments" => self.attachments(query),
            _ => Response::text(
                404,
                "no such path; there are /attachments, /healthz, /metrics, /readyz\n",
            ),
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
        } else {
            text.push_str("ready\n");
        }
        for (feature, reason) in self.features.iter() {
            if let Some(reason) = reason {
                let _ = writeln!(text, "kernel feature {feature} is missing: {reason}");
            }
        }
        Response::text(status, text)
    }

    fn metrics_text(&self) -> String {
        let mut text = self.metrics.render();
        let _ = writeln!(
            text,
            "# TYPE plexus_adds_in_flight gauge\nplexus_adds_in_flight {}",
            self.admission.adds()
        );
        text.push_str("# TYPE plexus_pool_addresses gauge\n");
        for (network, subnet, used, capacity) in self.addresses.usage() {
            for (state, count) in [("used", used), ("capacity", capacity)] {
                let _ = writeln!(
                    text,
                    "plexus_pool_addresses{{network=\"{network}\",subnet=\"{subnet}\",state=\"{state}\"}} {count}"
                );
            }
        }
        text
    }

    fn attachments(&self, query: &str) -> Response {
        let pod = match query.split_once('=') {
            _ if query.is_empty() => None,
            Some(("pod", pod)) if pod.contains('/') => Some(pod),
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
            |one: &&Stored| pod.is_none_or(|pod| one.record.body.pod.as_deref() == Some(pod));
        let all: Vec<Value> = stored.iter().filter(wanted).flat_map(describe).collect();
        Response::json(200, format!("{:#}\n", Value::Array(all)))
    }
}

fn describe(stored: &Stored) -> Vec<Value> {
    let record = &stored.record;
    let state = match stored.state {
        State::Intent => "attaching",
        State::Done => "attached",
        State::Deleting => "detaching",
    };
    let total = record.body.natives.len() + record.body.delegates.len();
    let one = |index: usize, network: &str, interface: &str, ips: Vec<String>, how: &str| {
        json!({
            "container": record.container, "pod": record.body.pod, "netns": record.netns,
            "index": index, "total": total, "network": network, "interface": interface,
            "ips": ips, "how": how, "state": state,
        })
    };
    let mut all = Vec::new();
    for native in &record.body.natives {
        let ips = native
            .assigned
            .ips
            .iter()
            .map(|ip| ip.address.to_string())
            .collect();
        all.push(one(
            native.index,
            native.network.as_str(),
            native.ifname.as_str(),
            ips,
            "native",
        ));
    }
    for delegate in &record.body.delegates {
        let ips = delegate
            .results
            .last()
            .map(|r| r.ips.iter().map(|ip| ip.address.to_string()).collect());
        let (network, ifname) = (delegate.network.as_str(), delegate.ifname.as_str());
        all.push(one(
            delegate.index,
            network,
            ifname,
            ips.unwrap_or_default(),
            "delegate",
        ));
    }
    all.sort_by_key(|value| value.get("index").and_then(Value::as_u64));
    all
}
