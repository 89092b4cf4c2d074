//! What is seen: the objects of the API, and of each node what one script prints, read into values
//! that can be compared.

use super::Observer;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The cluster at one moment, or nearly so.
pub(super) struct ClusterState {
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) api_nodes: Vec<Value>,
    pub(super) pods: Vec<Value>,
    pub(super) records: Vec<Value>,
    pub(super) blocks: Vec<Value>,
    pub(super) networks: Vec<Value>,
}

/// A node.
pub(super) struct Node {
    /// The running ones that have a network namespace of their own, by container id.
    pub(super) sandboxes: BTreeMap<String, Sandbox>,
    /// Pods' namespaces, by the name of their pin.
    pub(super) spaces: BTreeMap<String, Vec<Link>>,
    /// Where these lead.
    pub(super) pod_routes: BTreeMap<String, PodRoutes>,
    pub(super) routers: BTreeMap<String, NetnsState>,
    pub(super) here: NetnsState,
    pub(super) journal: Vec<Attachment>,
    /// Network, subnet, addresses in use.
    pub(super) pools: Vec<(String, String, u64)>,
    pub(super) leases: Vec<Lease>,
    /// Ports of the node, and the pods' addresses that nftables sends them to.
    pub(super) ports: Vec<(u64, IpAddr)>,
    pub(super) queued: usize,
}

/// A pod's sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The pod's, as CNI was told.
    pub uid: String,
    /// The name of its pin.
    pub space: String,
}

/// A network namespace of the node's own.
#[derive(Default)]
pub(super) struct NetnsState {
    pub(super) links: Vec<Link>,
    pub(super) routes: Vec<Route>,
}

/// An interface.
pub(super) struct Link {
    pub(super) name: String,
    pub(super) index: u64,
    /// The index of the other end.
    pub(super) peer: Option<u64>,
    pub(super) has_master: bool,
    pub(super) mac: String,
    /// Without those of the link itself.
    pub(super) ips: BTreeSet<IpAddr>,
}

/// A route of ours.
pub(super) struct Route {
    pub(super) to: String,
    pub(super) via: Option<String>,
    pub(super) device: String,
    pub(super) unreachable: bool,
}

/// All routes and rules of a pod's namespace, as `ip` prints them.
#[derive(Default)]
pub(super) struct PodRoutes {
    pub(super) routes: Vec<Value>,
    pub(super) rules: Vec<Value>,
}

/// One attachment in the journal.
pub(super) struct Attachment {
    pub(super) container: String,
    pub(super) pod: String,
    pub(super) network: String,
    pub(super) uuid: String,
    pub(super) interface: String,
    pub(super) mac: String,
    pub(super) ips: BTreeSet<IpAddr>,
    pub(super) total: u64,
    pub(super) attached: bool,
}

/// An address file of host-local.
pub(super) struct Lease {
    pub(super) network: String,
    pub(super) address: IpAddr,
    pub(super) container: String,
}

/// What looks at a node: one shell script, the same for every kind of node. A line that begins with `@` begins a section.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// How the pins of pods' namespaces begin, with the directory.
    pub pins: &'a str,
    /// The directory with the pins of routers.
    pub routers: &'a str,
    /// Where the agent answers: options of curl, the last one a URL.
    pub agent: &'a [&'a str],
    /// host-local's directory; none if it is not this node's alone.
    pub leases: Option<&'a str>,
    /// Where DELs wait.
    pub queue: &'a str,
}

/// What a [`Script`] and the runtime report about a node.
#[derive(Debug)]
pub struct NodeObservation {
    /// The sandboxes that run, by container id, as whoever runs them says.
    pub sandboxes: BTreeMap<String, Sandbox>,
    /// What the script printed.
    pub printed: String,
}

const SCRIPT: &str = r#"
pins=$1 routers=$2 leases=$3 queue=$4; shift 4
section() { printf '\n@ %s %s\n' "$1" "$2"; }
for pin in "$pins"*; do
  [ -e "$pin" ] || continue
  section space "${pin##*/}"; nsenter --net="$pin" ip -j addr 2>/dev/null || { echo '[]'; continue; }
  section space-routes "${pin##*/}"; nsenter --net="$pin" ip -j route show table all
  section space-rules "${pin##*/}"; nsenter --net="$pin" ip -j rule; nsenter --net="$pin" ip -6 -j rule
done
for pin in "$routers"/*; do
  [ -e "$pin" ] || continue
  section router-links "${pin##*/}"; nsenter --net="$pin" ip -j addr
  section router-routes "${pin##*/}"
  nsenter --net="$pin" ip -j route show proto 80; nsenter --net="$pin" ip -6 -j route show proto 80
done
section links; ip -j addr
section routes; ip -j route show proto 80; ip -6 -j route show proto 80
section journal; curl -sS -m 10 "$@/attachments"
section metrics; curl -sS -m 10 "$@/metrics"
section leases
if [ -n "$leases" ]; then for file in "$leases"/*/*; do
  [ -f "$file" ] && printf '%s %s\n' "$file" "$(head -n1 "$file" | tr -d '\r')"
done; fi
section ports; nft -j list table inet plexus 2>/dev/null || echo '{}'
section queued; ls "$queue" 2>/dev/null
section end
"#;

impl Script<'_> {
    /// The command line that runs it, as root in the node's network namespace.
    pub fn command(&self) -> Vec<String> {
        let leases = self.leases.unwrap_or_default();
        let words = [
            "sh",
            "-c",
            SCRIPT,
            "sh",
            self.pins,
            self.routers,
            leases,
            self.queue,
        ];
        let words = words.iter().chain(self.agent);
        words.map(|word| (*word).to_owned()).collect()
    }
}

impl ClusterState {
    pub(super) fn observe(observer: &dyn Observer) -> Result<Self> {
        let plexus = |kind: &str| observer.list("plexus.dev/v1alpha1", kind);
        let mut nodes = BTreeMap::new();
        for name in observer.nodes()? {
            let observed = observer.observe(&name).and_then(Node::of);
            let node = observed.with_context(|| format!("cannot look at {name}"))?;
            nodes.insert(name, node);
        }
        Ok(Self {
            nodes,
            api_nodes: observer.list("v1", "Node")?,
            pods: observer.list("v1", "Pod")?,
            records: plexus("PodAttachments")?,
            blocks: plexus("Block")?,
            networks: plexus("Network")?,
        })
    }
}

impl Node {
    fn of(observed: NodeObservation) -> Result<Self> {
        let sections = sections(&observed.printed);
        if !sections.contains_key(&("end".to_owned(), String::new())) {
            bail!("the script ended early: {}", observed.printed.trim());
        }
        let text = |kind: &str| section(&sections, kind, "");
        let read = |kind: &str, name: &str| json(section(&sections, kind, name), kind);
        let each = |kind: &str| -> Vec<String> {
            let of_kind = sections.keys().filter(|(found, _)| found == kind);
            of_kind.map(|(_, name)| name.clone()).collect()
        };
        let (mut spaces, mut pod_routes) = (BTreeMap::new(), BTreeMap::new());
        for name in each("space") {
            let links = links(&read("space", &name)?);
            // A pin may be there a moment longer than what it held.
            if !links.is_empty() {
                let lead = PodRoutes {
                    routes: list(&read("space-routes", &name)?).to_vec(),
                    rules: list(&read("space-rules", &name)?).to_vec(),
                };
                pod_routes.insert(name.clone(), lead);
            }
            spaces.insert(name, links);
        }
        let mut routers = BTreeMap::new();
        for name in each("router-links") {
            let space = NetnsState {
                links: links(&read("router-links", &name)?),
                routes: routes(&read("router-routes", &name)?),
            };
            routers.insert(name, space);
        }
        Ok(Self {
            sandboxes: observed.sandboxes,
            spaces,
            pod_routes,
            routers,
            here: NetnsState {
                links: links(&read("links", "")?),
                routes: routes(&read("routes", "")?),
            },
            journal: journal(&read("journal", "")?),
            pools: pools(text("metrics")),
            leases: text("leases").lines().filter_map(lease).collect(),
            ports: ports(&read("ports", "")?),
            queued: text("queued").lines().count(),
        })
    }
}

type Sections = BTreeMap<(String, String), String>;

fn sections(text: &str) -> Sections {
    let mut found = Sections::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("@ ") {
            let (kind, name) = head.split_once(' ').unwrap_or((head, ""));
            current = Some((kind.to_owned(), name.trim().to_owned()));
            found
                .entry(current.clone().unwrap_or_default())
                .or_default();
        } else if let Some(key) = &current
            && !line.is_empty()
        {
            let body = found.entry(key.clone()).or_default();
            body.push_str(line);
            body.push('\n');
        }
    }
    found
}

fn section<'a>(sections: &'a Sections, kind: &str, name: &str) -> &'a str {
    let key = (kind.to_owned(), name.to_owned());
    sections.get(&key).map_or("", String::as_str)
}

/// One document, or several lists as one.
fn json(text: &str, what: &str) -> Result<Value> {
    let mut all = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match document.with_context(|| format!("{what}: {text:?} cannot be read"))? {
            Value::Array(list) => all.extend(list),
            object => return Ok(object),
        }
    }
    if text.trim().is_empty() {
        bail!("{what}: nothing was printed");
    }
    Ok(Value::Array(all))
}

fn links(value: &Value) -> Vec<Link> {
    let address = |info: &Value| {
        let address: IpAddr = info["local"].as_str()?.parse().ok()?;
        (info["scope"] != "link").then_some(address)
    };
    let one = |link: &Value| Link {
        name: string(&link["ifname"]),
        index: link["ifindex"].as_u64().unwrap_or_default(),
        peer: link["link_index"].as_u64(),
        has_master: link["master"].is_string(),
        mac: string(&link["address"]),
        ips: list(&link["addr_info"])
            .iter()
            .filter_map(address)
            .collect(),
    };
    list(value).iter().map(one).collect()
}

fn routes(value: &Value) -> Vec<Route> {
    let one = |route: &Value| Route {
        to: string(&route["dst"]),
        via: route["gateway"]
            .as_str()
            .or(route["via"]["host"].as_str())
            .map(str::to_owned),
        device: string(&route["dev"]),
        unreachable: route["type"] == "unreachable",
    };
    list(value).iter().map(one).collect()
}

fn journal(value: &Value) -> Vec<Attachment> {
    let one = |entry: &Value| Attachment {
        container: string(&entry["container"]),
        pod: string(&entry["pod"]),
        network: string(&entry["network"]),
        uuid: string(&entry["uuid"]),
        interface: string(&entry["interface"]),
        mac: string(&entry["mac"]),
        ips: addresses(&entry["ips"]),
        total: entry["total"].as_u64().unwrap_or_default(),
        attached: entry["state"] == "attached",
    };
    list(value).iter().map(one).collect()
}

fn pools(metrics: &str) -> Vec<(String, String, u64)> {
    let one = |line: &str| {
        let rest = line.strip_prefix("plexus_pool_addresses{")?;
        let (labels, value) = rest.split_once("} ")?;
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        if label("state")? != "used" {
            return None;
        }
        let used = value.parse::<f64>().ok()? as u64;
        Some((label("network")?, label("subnet")?, used))
    };
    metrics.lines().filter_map(one).collect()
}

/// The entries of the maps `ports…`: `[{"concat": ["tcp", 8080]}, {"concat": ["10.1.2.3", 80]}]`.
fn ports(table: &Value) -> Vec<(u64, IpAddr)> {
    let maps = list(&table["nftables"]).iter().map(|one| &one["map"]);
    let maps = maps.filter(|map| string(&map["name"]).starts_with("ports"));
    let entry = |entry: &Value| {
        let port = list(&entry[0]["concat"]).last()?.as_u64()?;
        let address = entry[1]["concat"][0].as_str()?;
        Some((port, address.parse().ok()?))
    };
    maps.flat_map(|map| list(&map["elem"]).iter().filter_map(entry))
        .collect()
}

fn lease(line: &str) -> Option<Lease> {
    let (path, container) = line.split_once(' ')?;
    let (directory, name) = path.rsplit_once('/')?;
    Some(Lease {
        network: directory.rsplit('/').next()?.to_owned(),
        // host-local writes colons as they are.
        address: name.parse().ok()?,
        container: container.trim().to_owned(),
    })
}

/// Addresses, with or without a prefix length.
pub(super) fn addresses(value: &Value) -> BTreeSet<IpAddr> {
    let texts = list(value).iter().filter_map(Value::as_str);
    texts
        .filter_map(|text| text.split('/').next()?.parse().ok())
        .collect()
}

/// The elements of a list; none of anything else.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; empty if it is none.
pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_prints_is_read() {
        let text = "\n@ links \n[{\"ifname\":\"px1\",\"ifindex\":3,\"link_index\":2,\"addr_info\":[\
                    {\"local\":\"10.0.0.1\",\"scope\":\"global\"},{\"local\":\"fe80::1\",\"scope\":\"link\"}]}]\n\
                    \n@ routes \n[{\"dst\":\"10.0.0.1\",\"dev\":\"px1\"}]\n[]\n\n@ end \n";
        let sections = sections(text);
        let links = links(&json(section(&sections, "links", ""), "links").unwrap());
        assert_eq!((links[0].index, links[0].peer), (3, Some(2)));
        assert_eq!(links[0].ips.len(), 1);
        let routes = routes(&json(section(&sections, "routes", ""), "routes").unwrap());
        assert_eq!(routes.len(), 1);
        assert!(sections.contains_key(&("end".to_owned(), String::new())));
        assert!(json("", "journal").is_err(), "an agent that says nothing");
    }

    #[test]
    fn ports_are_read() {
        let key = serde_json::json!({"concat": ["tcp", 8080]});
        let entry = serde_json::json!([key, {"concat": ["10.1.2.3", 80]}]);
        let table = serde_json::json!({"nftables": [{"metainfo": {}}, {"table": {"name": "plexus"}},
            {"map": {"name": "ports4", "elem": [entry]}}, {"map": {"name": "ports6"}}]});
        assert_eq!(ports(&table), [(8080, "10.1.2.3".parse().unwrap())]);
        assert_eq!(ports(&serde_json::json!({})), []);
    }

    #[test]
    fn pools_and_leases_are_read() {
        let pools = pools(
            "# HELP x\nplexus_pool_addresses{network=\"t.blue\",subnet=\"10.1.1.0/26\",state=\"used\"} 2.0\n\
             plexus_pool_addresses{network=\"t.blue\",subnet=\"10.1.1.0/26\",state=\"capacity\"} 61.0\n",
        );
        assert_eq!(pools, [("t.blue".to_owned(), "10.1.1.0/26".to_owned(), 2)]);
        let lease = lease("/var/lib/cni/networks/lan/10.0.0.7 c1").unwrap();
        assert_eq!(
            (lease.network.as_str(), lease.container.as_str()),
            ("lan", "c1")
        );
    }
}
