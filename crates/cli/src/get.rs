//! `plexus get`: objects as rows. Which columns a kind has, and what stands in them.

use crate::ipam;
use crate::kinds::Kind;
use crate::snapshot::{self, ServedBy, Snapshot, condition, list, name, namespace, number, text};
use crate::text::{Cell, Paint, Screen, Table, age, count, seconds_since};
use plexus_api::cni::{Network, NetworkBackend, NetworkConfigKind, Provider};
use serde_json::Value;

/// The text for a claim or a class that is not ours.
pub const OTHERS: &str = "it is for another driver than ours, if there is one";

/// What stands where the server did not show what would tell.
const NOT_KNOWN: &str = "not known";

/// How a table is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    /// `-o wide`.
    pub wide: bool,
    /// `-A`: the namespace is a column.
    pub namespaces: bool,
    /// `-w`: rows that come later may have reasons, so that there is a column for them.
    pub watch: bool,
}

/// The table of the objects of a kind, with what the snapshot knows beside them.
pub fn table(kind: &Kind, objects: &[&Value], snapshot: &Snapshot, options: TableOptions) -> Table {
    let rows = objects.iter().flat_map(|object| {
        let rows = rows(kind, object, snapshot).into_iter();
        rows.map(|cells| (namespace(object), cells))
    });
    let rows: Vec<(&str, Vec<Cell>)> = rows.collect();
    let (plain, more) = columns(kind);
    let has_text = |at: usize| {
        let mut cells = rows.iter().filter_map(|(_, cells)| cells.get(at));
        cells.any(|cell| !cell.text().is_empty())
    };
    // A reason is shown where there is one, also to whoever did not ask for all columns.
    let is_shown = |at: usize, name: &str| {
        let is_reason = matches!(name, "WHY" | "NOTE");
        at < plain.len() || options.wide || (is_reason && (options.watch || has_text(at)))
    };
    let columns = plain.iter().chain(more).copied().enumerate();
    let columns: Vec<(usize, &str)> = columns.filter(|(at, name)| is_shown(*at, name)).collect();
    let scoped = options.namespaces && kind.namespaced;
    let head = scoped.then_some("NAMESPACE").into_iter();
    let mut table = Table::new(head.chain(columns.iter().map(|(_, name)| *name)));
    for (namespace, cells) in rows {
        let first = scoped.then(|| namespace.into());
        let cells = columns.iter().filter_map(|(at, _)| cells.get(*at).cloned());
        table.row(first.into_iter().chain(cells).collect());
    }
    table
}

/// The text that is printed if there is no object.
pub fn none(kind: &Kind, in_namespace: Option<&str>) -> String {
    match in_namespace.filter(|_| kind.namespaced) {
        Some(namespace) => format!(
            "no {} in namespace {namespace}: -A looks in all\n",
            kind.plural
        ),
        None => format!("no {}\n", kind.plural),
    }
}

/// The table as text.
pub fn render(table: &Table, screen: Screen) -> String {
    table.render(screen)
}

/// The columns that are always shown, and those of `-o wide`.
fn columns(kind: &Kind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind.kind {
        "Network" => (
            &["NAME", "PROVIDER", "PHASE", "SUBNETS", "USED", "AGE"],
            &["VNI", "BLOCKS", "MTU", "FROM", "WHY"],
        ),
        "Pod" => (
            &["NAME", "STATUS", "NODE", "INTERFACES", "AGE"],
            &["ADDRESSES", "NETWORKS"],
        ),
        "Block" => (
            &["CIDR", "NETWORK", "NODE", "USED", "AGE"],
            &["GIVEN", "NAME"],
        ),
        "Node" => (
            &[
                "NAME",
                "STATUS",
                "ADDRESS",
                "POD-CIDRS",
                "BLOCKS",
                "PODS",
                "AGE",
            ],
            &["VERSION", "UID"],
        ),
        "PodAttachments" => (
            &["POD", "INTERFACE", "NETWORK", "ADDRESSES", "NODE", "STATE"],
            &["MAC", "GATEWAYS", "DEFAULT-ROUTE", "ID"],
        ),
        "NetworkAttachmentDefinition" => (&["NAME", "TYPE", "DONE-BY", "AGE"], &["NOTE"]),
        "BlockRequest" => (
            &["NETWORK", "NODE", "FAMILY", "ADDRESSES", "AGE"],
            &["NAME"],
        ),
        "Namespace" => (&["NAME", "STATUS", "AGE"], &[]),
        "MultiNicNetwork" => (&["NAME", "SUBNET", "STATE", "AGE"], &["WHY"]),
        "HostInterface" => (&["NAME", "NICS", "AGE"], &[]),
        "CIDR" | "IPPool" => (&["NAME", "AGE"], &[]),
        _ => (&["NAME", "STATE", "AGE"], &["WHY"]),
    }
}

/// All columns.
fn rows(kind: &Kind, object: &Value, snapshot: &Snapshot) -> Vec<Vec<Cell>> {
    let age = || Cell::from(age_of(object, snapshot.now));
    vec![match kind.kind {
        "Network" => network(object, snapshot, age()),
        "Pod" => pod(object, snapshot, age()),
        "Block" => block(object, snapshot, age()),
        "Node" => node(object, snapshot, age()),
        "PodAttachments" => return attachments(object),
        "NetworkAttachmentDefinition" => nad(object, age()),
        "BlockRequest" => request(object, age()),
        "Namespace" => vec![
            name(object).into(),
            text(object, "/status/phase").into(),
            age(),
        ],
        "MultiNicNetwork" => vec![
            name(object).into(),
            text(object, "/spec/subnet").into(),
            text(object, "/status/configStatus").into(),
            age(),
            text(object, "/status/message").into(),
        ],
        "HostInterface" => {
            let nics = list(object, "/spec/interfaces").iter();
            let nics: Vec<&str> = nics.map(|nic| text(nic, "/interfaceName")).collect();
            vec![name(object).into(), nics.join(" ").into(), age()]
        }
        "CIDR" | "IPPool" => vec![name(object).into(), age()],
        _ => later(object, snapshot, age()),
    }]
}

/// The age of an object.
pub fn age_of(object: &Value, now: i64) -> String {
    let created = text(object, "/metadata/creationTimestamp");
    seconds_since(created, now).map(age).unwrap_or_default()
}

/// A phase in its colour.
pub fn phase(object: &Value) -> Cell {
    let going = object.pointer("/metadata/deletionTimestamp").is_some();
    let phase = match text(object, "/status/phase") {
        _ if going => "Terminating",
        "" => "Initializing",
        phase => phase,
    };
    let paint = match phase {
        "Active" | "Running" | "Succeeded" => Paint::Good,
        "Failed" => Paint::Bad,
        _ => Paint::Warn,
    };
    Cell::painted(paint, phase)
}

fn network(object: &Value, snapshot: &Snapshot, age: Cell) -> Vec<Cell> {
    let provider = match text(object, "/spec/provider") {
        "" => Provider::DEFAULT,
        provider => provider,
    };
    let subnets = object.pointer("/spec/subnets").and_then(Value::as_object);
    let subnets = subnets.into_iter().flatten();
    let subnets: Vec<&str> = subnets.map(|(_, subnet)| text(subnet, "/cidr")).collect();
    let usage = |what: &str| number(object, &format!("/status/usage/{what}"));
    // Reckoned, if blocks may be seen: what is reported comes later.
    let fullness = ipam::fullness(object, snapshot).ok();
    let reckoned = fullness
        .filter(|fullness| {
            !fullness.subnets.is_empty() && snapshot.hidden("blocks", None).is_none()
        })
        .map(|fullness| fullness.tightest());
    let reported = || {
        Some(ipam::Share {
            used: usage("allocated")?.into(),
            capacity: usage("capacity")?.into(),
        })
    };
    let used = match reckoned.or_else(reported) {
        Some(share) => format!("{}/{}", share.used, count(share.capacity)),
        None => String::new(),
    };
    let number_text = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    let mut owners = list(object, "/metadata/ownerReferences").iter();
    let nad = owners.find(|owner| text(owner, "/kind") == "NetworkAttachmentDefinition");
    let why = condition(object, "Ready")
        .filter(|ready| text(ready, "/status") != "True")
        .map(|ready| text(ready, "/message"))
        .unwrap_or_default();
    vec![
        name(object).into(),
        provider.into(),
        phase(object),
        subnets.join(",").into(),
        used.into(),
        age,
        number_text(number(object, "/status/vni")).into(),
        number_text(usage("blocks")).into(),
        number_text(number(object, "/spec/mtu")).into(),
        nad.map(|nad| format!("nad/{}", text(nad, "/name")))
            .unwrap_or_default()
            .into(),
        why.into(),
    ]
}

fn pod(object: &Value, snapshot: &Snapshot, age: Cell) -> Vec<Cell> {
    let record = record_of(snapshot, object);
    let attached = record.map(|record| list(record, "/status/attachments"));
    let attached = attached.unwrap_or_default();
    let hidden = snapshot.hidden("attachments", Some(namespace(object)));
    let each = |of: &dyn Fn(&Value) -> String| {
        if record.is_none() && hidden.is_some() {
            return NOT_KNOWN.to_owned();
        }
        let all: Vec<String> = attached.iter().map(of).collect();
        all.join(",")
    };
    vec![
        name(object).into(),
        phase(object),
        text(object, "/spec/nodeName").into(),
        each(&|one| text(one, "/interface").to_owned()).into(),
        age,
        each(&|one| {
            let ips = list(one, "/ips").iter().filter_map(Value::as_str);
            let ips = ips.map(|ip| ip.split('/').next().unwrap_or(ip));
            ips.collect::<Vec<_>>().join("+")
        })
        .into(),
        each(&network_of).into(),
    ]
}

/// The record of a pod, by its UID; what another node says of it is not it.
pub fn record_of<'w>(snapshot: &'w Snapshot, pod: &Value) -> Option<&'w Value> {
    let (uid, node) = (text(pod, "/metadata/uid"), text(pod, "/spec/nodeName"));
    let mut records = snapshot.records.iter();
    records.find(|record| {
        let is_there = node.is_empty() || text(record, "/spec/node") == node;
        is_there && text(record, "/spec/pod/uid") == uid && namespace(record) == namespace(pod)
    })
}

/// A record's network as users know it.
pub fn network_of(attachment: &Value) -> String {
    let (namespace, name) = (
        text(attachment, "/network/namespace"),
        text(attachment, "/network/name"),
    );
    match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

fn block(object: &Value, snapshot: &Snapshot, age: Cell) -> Vec<Cell> {
    let fullness = ipam::block_fullness(object, snapshot);
    let paint = match fullness {
        Some((used, capacity)) if used >= capacity => Paint::Warn,
        _ => Paint::Plain,
    };
    let used = match fullness {
        Some((used, capacity)) => format!("{used}/{}", count(capacity)),
        None => number(object, "/status/allocated")
            .unwrap_or_default()
            .to_string(),
    };
    let donated = list(object, "/status/given").iter();
    let donated =
        donated.map(|donation| format!("{}→{}", text(donation, "/cidr"), text(donation, "/node")));
    vec![
        text(object, "/spec/cidr").into(),
        network_of_block(object).into(),
        text(object, "/spec/node").into(),
        Cell::painted(paint, used),
        age,
        donated.collect::<Vec<_>>().join(",").into(),
        name(object).into(),
    ]
}

/// A block's network as users know it.
pub fn network_of_block(block: &Value) -> String {
    let spec = block.get("spec").unwrap_or(&Value::Null);
    network_of(spec)
}

fn node(object: &Value, snapshot: &Snapshot, age: Cell) -> Vec<Cell> {
    let named = name(object);
    let status = match condition(object, "Ready").map(|ready| text(ready, "/status")) {
        Some("True") => Cell::painted(Paint::Good, "Ready"),
        Some(_) => Cell::painted(Paint::Bad, "NotReady"),
        None => Cell::painted(Paint::Faint, "Unknown"),
    };
    let addresses = list(object, "/status/addresses").iter();
    let internal = addresses.filter(|address| text(address, "/type") == "InternalIP");
    let internal: Vec<&str> = internal.map(|address| text(address, "/address")).collect();
    let cidrs = list(object, "/spec/podCIDRs").iter();
    let cidrs: Vec<&str> = cidrs.filter_map(Value::as_str).collect();
    let count = |list: &str, objects: &[Value]| {
        let mine = objects.iter().filter(|o| text(o, "/spec/node") == named);
        match snapshot.hidden(list, None) {
            Some(_) => NOT_KNOWN.to_owned(),
            None => mine.count().to_string(),
        }
    };
    vec![
        named.into(),
        status,
        internal.join(",").into(),
        cidrs.join(",").into(),
        count("blocks", &snapshot.blocks).into(),
        count("attachments", &snapshot.records).into(),
        age,
        text(object, "/status/nodeInfo/kubeletVersion").into(),
        text(object, "/metadata/uid").into(),
    ]
}

/// One row an interface.
fn attachments(object: &Value) -> Vec<Vec<Cell>> {
    let pod = text(object, "/spec/pod/name");
    let node = text(object, "/spec/node");
    let joined = |one: &Value, pointer: &str| {
        let items = list(one, pointer).iter().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(",")
    };
    let each = list(object, "/status/attachments").iter().map(|one| {
        let state = match text(one, "/state") {
            "Attached" => Cell::painted(Paint::Good, "Attached"),
            state => Cell::painted(Paint::Bad, state),
        };
        vec![
            pod.into(),
            text(one, "/interface").into(),
            network_of(one).into(),
            joined(one, "/ips").into(),
            node.into(),
            state,
            text(one, "/mac").into(),
            joined(one, "/gateways").into(),
            joined(one, "/defaultRoute").into(),
            text(one, "/id").into(),
        ]
    });
    each.collect()
}

fn nad(object: &Value, age: Cell) -> Vec<Cell> {
    let (kind, done_by, note) = nad_done_by(object);
    let paint = match done_by.as_str() {
        "waits" => Paint::Warn,
        "nobody" => Paint::Bad,
        _ => Paint::Plain,
    };
    vec![
        name(object).into(),
        kind.into(),
        Cell::painted(paint, done_by),
        age,
        note.into(),
    ]
}

/// The plugin type of a NAD, who does it (`plexus`, `Network`, `MultiNicNetwork`, `plugins`, `waits`, `nobody`), and
/// what there is to say.
pub fn nad_done_by(object: &Value) -> (String, String, String) {
    let of = |kind: &str, by: &str, note: String| (kind.to_owned(), by.to_owned(), note);
    let Some(config) = object.pointer("/spec/config").and_then(Value::as_str) else {
        let note = "it has no config: a file of its name on the node, or the Network of its name";
        return of("", "Network", note.to_owned());
    };
    match NetworkConfigKind::of(config) {
        NetworkConfigKind::Unreadable(why) => of("", "nobody", why),
        NetworkConfigKind::Waits(kind, why) => of(&kind, "waits", why.to_owned()),
        NetworkConfigKind::MultiNic(_) => of(
            "multi-nic",
            "MultiNicNetwork",
            "an interface on each NIC of the node".to_owned(),
        ),
        NetworkConfigKind::Named(kind) => {
            let note = "the Network that it makes, or that its annotation names";
            of(&kind, "Network", note.to_owned())
        }
        NetworkConfigKind::Network(kind, network) => match *network {
            Network {
                backend: NetworkBackend::Native(native),
                ..
            } => {
                let executed = native.executed_ipam();
                let note = executed.map(|ipam| format!("addresses by executing {}", ipam.name()));
                of(&kind, "plexus", note.unwrap_or_default())
            }
            Network {
                backend: NetworkBackend::Delegate(chain),
                ..
            } => {
                let because = chain
                    .unsupported_key
                    .map(|key| format!("because of key {key:?}"));
                of(&kind, "plugins", because.unwrap_or_default())
            }
        },
        NetworkConfigKind::Invalid(kind, why) => of(&kind, "nobody", why),
    }
}

fn request(object: &Value, age: Cell) -> Vec<Cell> {
    let count = number(object, "/spec/addresses").map(|count| count.to_string());
    vec![
        network_of_block(object).into(),
        text(object, "/spec/node").into(),
        text(object, "/spec/family").into(),
        count.unwrap_or_default().into(),
        age,
        name(object).into(),
    ]
}

fn later(object: &Value, snapshot: &Snapshot, age: Cell) -> Vec<Cell> {
    let (state, why) = match snapshot.served_by(object) {
        ServedBy::Ours(text) => (Cell::painted(Paint::Warn, "waits"), text.into()),
        ServedBy::Unclear(why) => (Cell::painted(Paint::Warn, NOT_KNOWN), why.into()),
        ServedBy::Others => (Cell::painted(Paint::Faint, "not ours"), OTHERS.into()),
    };
    vec![name(object).into(), state, age, why]
}

/// The objects of that namespace, or all; the names if some are given, each of which must be there.
pub fn chosen<'w>(
    kind: &Kind,
    objects: &'w [Value],
    in_namespace: Option<&str>,
    names: &[String],
) -> Result<Vec<&'w Value>, String> {
    let mut found: Vec<&Value> = objects.iter().collect();
    // Records are named by UIDs: people look for pods.
    found.sort_by_key(|object| {
        let pod = text(object, "/spec/pod/name");
        (namespace(object), pod, snapshot::name(object))
    });
    let is_in = |object: &Value, wanted: Option<&str>| {
        !kind.namespaced || wanted.is_none_or(|wanted| namespace(object) == wanted)
    };
    if names.is_empty() {
        found.retain(|object| is_in(object, in_namespace));
        return Ok(found);
    }
    let mut chosen = Vec::new();
    for written in names {
        // [namespace/]name, as other verbs take it.
        let (in_namespace, wanted) = match written.split_once('/') {
            Some((namespace, name)) if kind.namespaced => (Some(namespace), name),
            _ => (in_namespace, written.as_str()),
        };
        let is_it = |object: &&&Value| {
            if !is_in(object, in_namespace) {
                return false;
            }
            name(object) == wanted
                || (kind.kind == "PodAttachments" && text(object, "/spec/pod/name") == wanted)
        };
        let before = chosen.len();
        chosen.extend(found.iter().filter(is_it).copied());
        if chosen.len() == before {
            let location = match in_namespace.filter(|_| kind.namespaced) {
                Some(namespace) => format!(" in namespace {namespace}"),
                None => String::new(),
            };
            return Err(format!("there is no {} {wanted}{location}", kind.kind));
        }
    }
    Ok(chosen)
}

#[cfg(test)]
#[path = "get_tests.rs"]
mod tests;
