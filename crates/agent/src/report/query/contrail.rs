//! The queries of Contrail's agent about a pod, with its field names: which interfaces it is to have
//! (`/vm-cfg/…`), and which it has (`/vm/…`). Here both come from the journal: a pod is not known
//! until all of its attachments are there, then all of them are answered, or the one asked for.
//!
//! ```text
//! GET /vm-cfg/<pod uid>                        GET /vm/<pod uid>
//! GET /vm-cfg/<cluster>__<namespace>__<pod>    GET /vm/<pod uid>/<attachment id>
//! ```

use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, Record, State, Stored};
use crate::report::view::{View, attachment_id, pod_of, views};
use crate::serve::http::Response;
use ipnet::IpNet;
use plexus_api::cni::Error;
use plexus_core::plan::LinkKind;
use plexus_core::resolve::CLUSTER_DEFAULT;
use plexus_types::Family;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How Contrail writes "no VLAN".
const NO_VLAN: u32 = 65535;
const NO_PROJECT: &str = "00000000-0000-0000-0000-000000000000";
/// The cluster's name if nobody gave it another.
const CLUSTER: &str = "k8s";

#[derive(Debug, PartialEq, Eq)]
enum Question<'a> {
    /// Which interfaces the pod is to have.
    Config(Pod<'a>),
    /// Which it has; perhaps only one of them.
    State(Pod<'a>, Option<&'a str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pod<'a> {
    Uid(&'a str),
    /// Cluster, namespace, name.
    Name(&'a str, &'a str, &'a str),
}

/// One attachment, with what only the queries need.
struct Item<'a> {
    view: View,
    record: &'a Record,
}

impl Agent {
    /// The answer, if the path is one of these.
    pub(super) fn contrail(&self, path: &str) -> Option<Response> {
        let question = question(path)?;
        let (Question::Config(pod) | Question::State(pod, _)) = question;
        let stored = match self.stored_of(pod) {
            Ok(stored) => stored,
            Err(error) => return Some(Response::text(503, format!("{error}\n"))),
        };
        Some(answer(&question, &stored, self.cluster_name()))
    }

    fn cluster_name(&self) -> &str {
        let kubernetes = self.options.kubernetes.as_ref();
        kubernetes.map_or(CLUSTER, |kubernetes| &kubernetes.cluster_name)
    }

    /// The pod's records, whatever their state.
    fn stored_of(&self, pod: Pod<'_>) -> Result<Vec<Stored>, Error> {
        let journal = self.journal()?;
        let failed = |error| failure::journal(&error);
        if let Pod::Uid(uid) = pod {
            let found = journal.of_pod(uid).map_err(failed)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let cluster = self.cluster_name();
        let mut all = journal.all().map_err(failed)?;
        all.retain(|one| match pod {
            // A static pod's: the runtime knows another one than the API.
            Pod::Uid(uid) => one.record.details.api_uid.as_deref() == Some(uid),
            Pod::Name(of, namespace, name) => {
                of == cluster && pod_of(&one.record) == Some((namespace, name))
            }
        });
        Ok(all)
    }
}

fn question(path: &str) -> Option<Question<'_>> {
    let pod = |text| {
        let mut parts = str::split(text, "__");
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(cluster), Some(namespace), Some(name), None) => {
                Pod::Name(cluster, namespace, name)
            }
            _ => Pod::Uid(text),
        }
    };
    if let Some(rest) = path.strip_prefix("/vm-cfg/") {
        let named = !rest.is_empty() && !rest.contains('/');
        return named.then(|| Question::Config(pod(rest)));
    }
    let rest = path.strip_prefix("/vm/")?;
    let (uid, id) = match rest.split_once('/') {
        Some((uid, id)) => (uid, Some(id)),
        None => (rest, None),
    };
    let good = |part: &str| !part.is_empty() && !part.contains('/');
    (good(uid) && id.is_none_or(good)).then(|| Question::State(pod(uid), id))
}

fn answer(question: &Question<'_>, stored: &[Stored], cluster: &str) -> Response {
    let items = items(stored);
    let id = match question {
        Question::Config(_) => None,
        Question::State(_, id) => *id,
    };
    let wanted = |item: &&Item<'_>| id.is_none_or(|id| item.view.id == id);
    let described = items.iter().filter(wanted).map(|item| match question {
        Question::Config(_) => config(item, cluster),
        Question::State(..) => state(item),
    });
    let mut described: Vec<Value> = described.collect();
    if described.is_empty() {
        return Response::text(404, "{ Not Found }\n");
    }
    let value = match id {
        Some(_) => described.remove(0),
        None => Value::Array(described),
    };
    Response::json(200, format!("{value:#}\n"))
}

/// In order; none unless everything that was begun for the pod is done.
fn items(stored: &[Stored]) -> Vec<Item<'_>> {
    if stored.iter().any(|one| one.state == State::Intent) {
        return Vec::new();
    }
    let done = stored.iter().filter(|one| one.state == State::Done);
    let mut items: Vec<Item<'_>> = done
        .flat_map(|one| {
            let (views, record) = (views(one).into_iter(), &one.record);
            views.map(move |view| Item { view, record })
        })
        .collect();
    items.sort_by_key(|item| (item.view.reference.index, item.view.ordinal));
    items
}

fn config(item: &Item<'_>, cluster: &str) -> Value {
    let view = &item.view;
    let reference = &view.reference;
    let (namespace, name) = pod_of(item.record).unwrap_or_default();
    json!({
        "id": view.id,
        "instance-id": instance(item),
        "vm-uuid": instance(item),
        "vn-id": network_id(view),
        "vn-name": network_name(view),
        "mac-address": mac(view),
        "sub-interface": false,
        "vlan-id": NO_VLAN,
        "annotations": {
            "index": format!("{}/{}", reference.index, reference.total),
            "network": network_name(view),
            "network-namespace": reference.namespace,
            "interface": view.ifname,
            "default-gw": (!view.default_route.is_empty()).to_string(),
            "cluster": cluster,
            "kind": "Pod",
            "namespace": namespace,
            "name": name,
        },
    })
}

fn state(item: &Item<'_>) -> Value {
    let view = &item.view;
    let (v4, v6) = (side(view, Family::V4), side(view, Family::V6));
    json!({
        "id": view.id,
        "instance-id": instance(item),
        "vhostuser-mode": 0,
        "vn-id": network_id(view),
        "vm-project-id": NO_PROJECT,
        "system-name": system_name(item),
        "mac-address": mac(view),
        "rx-vlan-id": NO_VLAN,
        "tx-vlan-id": NO_VLAN,
        "ip-address": v4.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
        "plen": v4.length,
        "dns-server": v4.dns.map(|dns| dns.to_string()).unwrap_or_default(),
        "gateway": v4.gateway.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
        "v6-ip-address": v6.address.unwrap_or(Ipv6Addr::UNSPECIFIED.into()),
        "v6-plen": v6.length,
        "v6-dns-server": v6.dns.unwrap_or(Ipv6Addr::UNSPECIFIED.into()),
        "v6-gateway": v6.gateway.unwrap_or(Ipv6Addr::UNSPECIFIED.into()),
        "author": author(),
        "time": time(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
    })
}

/// What an attachment has of one family.
#[derive(Default)]
struct Half {
    address: Option<IpAddr>,
    length: u8,
    gateway: Option<IpAddr>,
    dns: Option<IpAddr>,
}

fn side(view: &View, family: Family) -> Half {
    let of = |address: &IpAddr| Family::of(*address) == family;
    let servers = view.dns.nameservers.iter();
    let dns = servers.filter_map(|server| server.parse().ok()).find(of);
    let Some(address) = view.ips.iter().find(|ip| of(&ip.addr())) else {
        return Half {
            dns,
            ..Half::default()
        };
    };
    let holds = |(subnet, _): &&(IpNet, Option<IpAddr>)| subnet.contains(&address.addr());
    let subnet = view.reference.subnets.iter().find(holds);
    let gateway = subnet.and_then(|(_, gateway)| *gateway);
    Half {
        address: Some(address.addr()),
        length: subnet.map_or(address.prefix_len(), |(subnet, _)| subnet.prefix_len()),
        gateway: gateway.or_else(|| view.gateways.iter().copied().find(of)),
        dns,
    }
}

/// The pod's UID, as the API has it where that is known.
fn instance(item: &Item<'_>) -> String {
    let uid = item.record.details.api_uid.as_ref();
    let uid = uid.or(item.record.pod_uid.as_ref());
    uid.cloned().unwrap_or_default()
}

/// The cluster-wide default network's, as Contrail's agent calls it.
fn network_name(view: &View) -> &str {
    let reference = &view.reference;
    if reference.name == CLUSTER_DEFAULT && reference.source.is_empty() {
        "default"
    } else {
        &reference.name
    }
}

/// The network's identity; where it has none in the form of a UUID, one that stays the same.
fn network_id(view: &View) -> String {
    let reference = &view.reference;
    let uuid = &reference.uuid;
    let mut bytes = uuid.bytes();
    if uuid.len() == 36 && bytes.all(|byte| byte == b'-' || byte.is_ascii_hexdigit()) {
        return uuid.clone();
    }
    attachment_id("network", uuid, &reference.namespace, &reference.name)
}

fn mac(view: &View) -> &str {
    view.mac.as_deref().unwrap_or("00:00:00:00:00:00")
}

/// The interface's end on the node; empty where it has none.
fn system_name(item: &Item<'_>) -> String {
    let mut attachments = item.record.attachments.iter();
    let attachment = attachments.find(|one| one.ifname.as_str() == item.view.ifname);
    let link = attachment.and_then(AttachmentRecord::link);
    if let Some(LinkKind::Veth(end)) = link.map(|link| &link.kind) {
        return end.name.to_string();
    }
    let result = attachment.and_then(|one| one.plugins()?.results.last());
    let outside = result.and_then(|result| result.interfaces.iter().find(|i| i.sandbox.is_none()));
    outside
        .map(|interface| interface.name.clone())
        .unwrap_or_default()
}

fn author() -> String {
    let exe = std::env::current_exe();
    exe.map_or_else(|_| "plexus".to_owned(), |exe| exe.display().to_string())
}

/// Hours, minutes and seconds since 1970, as Contrail writes them.
fn time(since: Duration) -> String {
    let seconds = since.as_secs();
    format!(
        "{}:{:02}:{:02}.{:06}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_micros()
    )
}

#[cfg(test)]
mod tests;
