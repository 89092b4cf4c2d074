//! The steps that come before links: an IPAM plugin, a link that appears, a call to somebody outside. Owns their
//! execution and their undoing; which there are is decided in [`core`](plexus_core::attach).

use super::plugins as executed;
use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, PreparationRecord, Record};
use crate::node::links::link_facts;
use plexus_api::cni::{Code, Error};
use plexus_cni::shim::http::{self, RequestError};
use plexus_core::attach::{
    Attachment, AwaitedLink, OutsideCall, Preparation, PreparationResult, Service,
};
use plexus_core::plan::LinkFacts;
use plexus_faults::effect;
use plexus_kernel::{Changes, NetlinkError, events, observe};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an ADD waits for a link. The runtime waits for 120 s.
const LINK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an ADD waits for the answer of a service.
const SETUP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a DEL waits for it; it is tried again.
const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of a service's own words an error repeats.
const MAX_WORDS: usize = 500;

impl Agent {
    /// Executes one preparation of an attachment.
    pub(crate) fn prepare_link(
        &self,
        record: &Record,
        attachment: &Attachment,
        preparation: &Preparation,
    ) -> Result<PreparationResult, Error> {
        let Attachment {
            network, ifname, ..
        } = attachment;
        let done = match preparation {
            Preparation::Ipam(run) => {
                let call = executed::call_for(record, ifname, &record.netns);
                let steps = self.runner.steps(network, &run.chain, call, &run.runtime);
                let added = steps.add_step(0, None).map_err(|error| error.to_cni());
                added.map(PreparationResult::Addresses)
            }
            Preparation::Wait { link, .. } => self.wait_for_link(link).map(PreparationResult::Link),
            Preparation::Call { call, .. } => {
                let body = body(record, ifname.as_str(), call, None);
                effect("call.setup<");
                let answered = ask(&call.service, "/setup", &body, SETUP_TIMEOUT);
                effect("call.setup>");
                answered.map(PreparationResult::Answer)
            }
        };
        done.map_err(|error| failure::at(format!("network {network}, interface {ifname}"), error))
    }

    /// Undoes the preparations of an attachment whose link is gone, in reverse. Tries all, reports every error.
    pub(crate) fn undo_preparations(
        &self,
        record: &Record,
        attachment: &AttachmentRecord,
        netns: &str,
    ) -> Vec<String> {
        let AttachmentRecord {
            network, ifname, ..
        } = attachment;
        let undo = |preparation: &PreparationRecord| match preparation {
            PreparationRecord::Ipam(plugins) => {
                executed::del(&self.runner, (attachment, plugins), record, netns)
            }
            PreparationRecord::Wait(_) => Ok(()),
            PreparationRecord::Call { call, answer } => {
                let body = body(record, ifname.as_str(), call, answer.as_ref());
                effect("call.teardown<");
                let answered = ask(&call.service, "/teardown", &body, TEARDOWN_TIMEOUT);
                effect("call.teardown>");
                answered.map(drop)
            }
        };
        let at = format!("network {network}, interface {ifname}");
        let preparations = attachment.native().map(|native| &native.preparations);
        let latest_first = preparations.into_iter().flatten().rev();
        let problems = latest_first.filter_map(|one| undo(one).err());
        problems
            .map(|error| failure::at(&at, error).to_string())
            .collect()
    }

    /// Waits until a link of the node is there. The kernel tells of every change, so nothing is missed in between.
    fn wait_for_link(&self, awaited: &AwaitedLink) -> Result<LinkFacts, Error> {
        let unseen = |error: NetlinkError| failure::netlink(&error);
        let until = Instant::now() + plexus_faults::hastened(LINK_TIMEOUT);
        effect("wait.link<");
        let changes = Changes::of_links(&self.node).map_err(unseen)?;
        loop {
            let found = self.node.with_socket(|socket| match awaited {
                AwaitedLink::Name(name) => observe::link_by_name(socket, name.as_str()),
                AwaitedLink::Mac(mac) => {
                    let links = observe::links(socket)?;
                    // Links on top of it may have its MAC too.
                    let is_it = |link: &&_| is_hardware_of(link, *mac);
                    Ok(links.iter().find(is_it).cloned())
                }
            });
            if let Some(facts) = link_facts(found.map_err(unseen)?) {
                effect("wait.link>");
                return Ok(facts);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(no_link(awaited));
            }
            let waited = events::wait(&[&changes], Some(left));
            waited.map_err(|error: io::Error| failure::netlink(&error))?;
        }
    }
}

/// Whether a link has that MAC by itself, and not from the link that it hangs off.
fn is_hardware_of(link: &plexus_core::plan::ObservedLink, mac: plexus_types::Mac) -> bool {
    link.mac == Some(mac) && (link.parent.is_none() || link.is_parent_elsewhere())
}

fn no_link(awaited: &AwaitedLink) -> Error {
    let what = match awaited {
        AwaitedLink::Name(name) => format!("link {name}"),
        AwaitedLink::Mac(mac) => format!("link with MAC {mac}"),
    };
    let seconds = LINK_TIMEOUT.as_secs();
    Error::new(
        Code::Failed,
        format!("no {what} has appeared on the node within {seconds} s"),
        "does the node take new devices while it runs (PCI hot-plug, its driver)? See its kernel log",
    )
}

/// What a service is told: who asks, so that it can tell a repeated call, what for, and what it answered.
fn body(record: &Record, ifname: &str, call: &OutsideCall, answer: Option<&Value>) -> String {
    let Record {
        container,
        ifname: cni_ifname,
        netns,
        ..
    } = record;
    let mut body = json!({
        "id": format!("{container}/{cni_ifname}/{ifname}"),
        "container": container.as_str(),
        "interface": ifname,
        "netns": netns,
        "pod": record.details.pod,
        "request": call.request,
    });
    if let (Some(answer), Some(body)) = (answer, body.as_object_mut()) {
        body.insert("answer".to_owned(), answer.clone());
    }
    body.to_string()
}

fn ask(service: &Service, path: &str, body: &str, timeout: Duration) -> Result<Value, Error> {
    let Service::Socket(socket) = service;
    let failed = |code, problem: String, next: &str| {
        let text = format!("service {}: {problem}", socket.display());
        Error::new(code, text, next)
    };
    let later = |problem| {
        let next = "is its program running? See its log; the call is repeated with the ADD or DEL";
        failed(Code::TryAgainLater, problem, next)
    };
    let timeout = plexus_faults::hastened(timeout);
    let answer = http::exchange(Path::new(socket), &http::request(path, body), timeout);
    let answer = answer.map_err(|error| match error {
        RequestError::Away(why) | RequestError::Barred(why) => later(why),
        RequestError::Slow => later(format!("no answer to {path} within {timeout:?}")),
    })?;
    if answer.status != 200 {
        let words: String = answer.body.chars().take(MAX_WORDS).collect();
        let problem = format!("{path} was answered with {}: {words}", answer.status);
        return Err(match answer.status {
            503 => later(problem),
            _ => failed(Code::Failed, problem, "see the log of its program"),
        });
    }
    if answer.body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&answer.body).map_err(|error| {
        let problem = format!("its answer to {path} is no JSON: {error}");
        failed(Code::Failed, problem, "report this to its author")
    })
}
