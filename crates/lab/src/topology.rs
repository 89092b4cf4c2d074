//! A topology: a file that says which nodes a lab has, and which NICs these have. Owns how it is read, and that
//! everything that is wrong with it is said, with line, field, value and remedy. Opens no file.
//!
//! ```yaml
//! nodes: 2                          # or [n1, n5]
//! nics:                             # besides eth0
//! - name: eth1
//!   subnets: [10.0.1.0/24, fd00:10:1::/64]
//!   nodes: [n1]                     # default: all
//!   offset: 100                     # n1 has 10.0.1.101
//!   addresses: {n1: [10.0.1.7]}
//!   mtu: 9000
//!   down: [n1]
//! ```

use crate::address;
use crate::error::LabError;
use crate::name::{MAX_NODES, NodeName};
use crate::nic::{Nic, conflicts, is_of_host};
use crate::spec::USUAL_NODES;
use ipnet::IpNet;
use plexus_api::manifest::{self, Written};
use plexus_api::{Fields, FromText, Problems};
use plexus_types::IfName;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// At most this many NICs besides `eth0`, over all nodes.
const MAX_WIRES: usize = 32;
/// The MTUs with which both families work, and which veths can have.
const MTU: std::ops::RangeInclusive<u32> = 1280..=65_535;
/// At most this many subnets of one NIC.
const MAX_SUBNETS: usize = 8;

/// What a file says of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Its nodes.
    pub nodes: TopologyNodes,
    /// Their NICs besides `eth0`, each on a wire of its own.
    pub nics: Vec<Nic>,
}

/// The nodes of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyNodes {
    /// So many.
    Count(u8),
    /// These.
    Named(BTreeSet<NodeName>),
}

impl TopologyNodes {
    /// The nodes of a lab that has no others.
    fn all(&self) -> BTreeSet<NodeName> {
        match self {
            Self::Count(count) => (1..=*count)
                .filter_map(|number| NodeName::numbered(number).ok())
                .collect(),
            Self::Named(names) => names.clone(),
        }
    }
}

impl Topology {
    /// Reads a file; `name` is what messages call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let refused = |problems: Vec<String>| LabError::Topology {
            file: name.to_owned(),
            problems,
        };
        let manifest = manifest::read(text);
        let faults = manifest.faults.iter();
        let faults: Vec<String> = faults
            .map(|fault| format!("{name}:{}: {}", fault.line, fault.text))
            .collect();
        if !faults.is_empty() {
            return Err(refused(faults));
        }
        let [written] = manifest.objects.as_slice() else {
            let count = manifest.objects.len();
            return Err(refused(vec![format!(
                "{name}:1: has {count} documents: write one, with the keys `nodes` and `nics`"
            )]));
        };
        let Some(map) = written.object.as_object() else {
            return Err(refused(vec![format!(
                "{name}:1: is no map: write the keys `nodes` and `nics`"
            )]));
        };
        read(map).map_err(|problems| refused(located(name, written, &problems)))
    }

    /// How many nodes a lab has that is made from it.
    pub fn node_count(&self) -> usize {
        self.nodes.all().len()
    }
}

fn located(name: &str, written: &Written, problems: &Problems) -> Vec<String> {
    let mut lines: Vec<(usize, String)> = problems
        .0
        .iter()
        .map(|problem| (written.line(&problem.path), problem.to_string()))
        .collect();
    lines.sort_by_key(|(line, _)| *line);
    let texts = lines
        .into_iter()
        .map(|(line, text)| format!("{name}:{line}: {text}"));
    texts.collect()
}

fn read(map: &Map<String, Value>) -> Result<Topology, Problems> {
    let mut fields = Fields::new(map, "");
    let nodes = nodes(&mut fields);
    let all = nodes.all();
    let nics = fields.objects("nics", |fields, _| nic(fields, &all));
    if nics.is_none() && fields.is_sound() {
        fields.missing(
            "nics",
            "list the NICs that nodes have besides eth0, or write []",
        );
    }
    let topology = Topology {
        nodes,
        nics: nics.unwrap_or_default(),
    };
    if topology.nics.len() > MAX_WIRES {
        let count = topology.nics.len();
        fields.problem(
            "nics",
            format!("has {count} NICs: a lab has at most {MAX_WIRES}"),
        );
    } else if fields.is_sound() {
        fields.absorb(conflicts(&topology.nics, &all));
    }
    let problems = fields.finish();
    match problems.0.is_empty() {
        true => Ok(topology),
        false => Err(problems),
    }
}

/// A number, or names.
fn nodes(fields: &mut Fields<'_>) -> TopologyNodes {
    let usual = TopologyNodes::Count(USUAL_NODES);
    let Some(value) = fields.value("nodes") else {
        return usual;
    };
    if value.is_array() {
        let names = node_names(fields, "nodes", None);
        if names.is_empty() && fields.is_sound() {
            fields.problem(
                "nodes",
                "names no node: name one, such as n1, or write a number",
            );
        }
        return TopologyNodes::Named(names);
    }
    let count = value.as_u64().and_then(|count| u8::try_from(count).ok());
    match count.filter(|count| (1..=MAX_NODES).contains(count)) {
        Some(count) => TopologyNodes::Count(count),
        None => {
            let text = format!(
                "{value} is not a number from 1 to {MAX_NODES}: write one, or a list of names such as [n1, n2]"
            );
            fields.problem("nodes", text);
            usual
        }
    }
}

/// Names of nodes, each once; of these if some are given.
fn node_names(
    fields: &mut Fields<'_>,
    key: &'static str,
    among: Option<&BTreeSet<NodeName>>,
) -> BTreeSet<NodeName> {
    let mut names = BTreeSet::new();
    for (number, item) in fields.list(key).unwrap_or_default().iter().enumerate() {
        let at = format!("{key}[{number}]");
        let text = item
            .as_str()
            .map_or_else(|| item.to_string(), str::to_owned);
        match node_name(&text, among) {
            Err(why) => fields.problem(&at, why),
            Ok(node) if !names.insert(node) => {
                fields.problem(&at, format!("{node} is named twice: remove one"));
            }
            Ok(_) => {}
        }
    }
    names
}

fn node_name(text: &str, among: Option<&BTreeSet<NodeName>>) -> Result<NodeName, String> {
    let node: NodeName = text.parse().map_err(|error: LabError| error.to_string())?;
    match among.is_none_or(|nodes| nodes.contains(&node)) {
        true => Ok(node),
        false => Err(format!(
            "{node} is not one of the nodes here: add it to `nodes`, or correct its name"
        )),
    }
}

fn nic(fields: &mut Fields<'_>, all: &BTreeSet<NodeName>) -> Option<Nic> {
    let name = name(fields);
    let subnets = subnets(fields);
    let nodes = fields
        .has("nodes")
        .then(|| node_names(fields, "nodes", Some(all)));
    fields.know(&["nodes"]);
    if nodes.as_ref().is_some_and(BTreeSet::is_empty) && fields.is_sound() {
        fields.problem(
            "nodes",
            "names no node: name those that have this NIC, or leave it out for all",
        );
    }
    let of = nodes.as_ref().unwrap_or(all).clone();
    let offset = fields.number("offset").unwrap_or_default();
    let addresses = addresses(fields, &of, &subnets);
    let mtu = fields.number("mtu");
    if let Some(mtu) = mtu.filter(|mtu| !MTU.contains(mtu)) {
        let text = format!(
            "{mtu} is not an MTU from {} to {}: write one of these, or leave it out for 1500",
            MTU.start(),
            MTU.end()
        );
        fields.problem("mtu", text);
    }
    let down = node_names(fields, "down", Some(&of));
    Some(Nic {
        name: name?,
        subnets,
        nodes,
        offset,
        addresses,
        mtu,
        down,
    })
}

fn name(fields: &mut Fields<'_>) -> Option<IfName> {
    let Some(text) = fields.text("name") else {
        if !fields.has("name") {
            fields.missing("name", "write what nodes call this NIC, such as eth1");
        }
        return None;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = IfName::new(text).ok();
    let why = match &name {
        _ if text == "eth0" => {
            "every node has it: it is the uplink, on 10.200.0.0/24; list the others, such as eth1"
        }
        _ if text == "lo" => "every node has it: write another, such as eth1",
        _ if text.starts_with("px") => {
            "agents give their own links such names: write another, such as eth1"
        }
        Some(_) if text.chars().all(plain) => return name,
        _ => "cannot name a NIC: write 1 to 15 letters, digits, dots, dashes or underscores",
    };
    let short: String = text.chars().take(40).collect();
    fields.problem("name", format!("{short:?}: {why}"));
    None
}

fn subnets(fields: &mut Fields<'_>) -> Vec<IpNet> {
    let Some(items) = fields.list("subnets") else {
        if !fields.has("subnets") {
            fields.missing("subnets", "write one or more, such as [10.0.1.0/24]");
        }
        return Vec::new();
    };
    if !(1..=MAX_SUBNETS).contains(&items.len()) {
        let text = format!(
            "has {} subnets: write 1 to {MAX_SUBNETS}, such as [10.0.1.0/24]",
            items.len()
        );
        fields.problem("subnets", text);
    }
    let mut subnets: Vec<IpNet> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        match subnet(item, &subnets) {
            Ok(net) => subnets.push(net),
            Err(why) => fields.problem(&format!("subnets[{number}]"), why),
        }
    }
    subnets
}

/// A subnet that a NIC can have besides others.
fn subnet(item: &Value, others: &[IpNet]) -> Result<IpNet, String> {
    let Some(text) = item.as_str() else {
        return Err(format!(
            "{item} is no subnet: write one such as 10.0.1.0/24"
        ));
    };
    let net = IpNet::from_text(text)?;
    let (shortest, longest) = match net {
        IpNet::V4(_) => (8, 30),
        IpNet::V6(_) => (16, 126),
    };
    if net != net.trunc() {
        return Err(format!("{net} has host bits set: write {}", net.trunc()));
    }
    if !(shortest..=longest).contains(&net.prefix_len()) {
        return Err(format!(
            "{net} has a prefix of {} bits: write one of {shortest} to {longest}",
            net.prefix_len()
        ));
    }
    if let Some((other, what)) = address::reserved(net) {
        return Err(format!("{net} overlaps {other}, {what}: choose another"));
    }
    match others.iter().find(|other| address::overlap(**other, net)) {
        Some(other) => Err(format!("{net} overlaps {other} of this NIC: keep one")),
        None => Ok(net),
    }
}

/// The addresses that are named for nodes: each in one of the subnets, one of each subnet.
fn addresses(
    fields: &mut Fields<'_>,
    of: &BTreeSet<NodeName>,
    subnets: &[IpNet],
) -> BTreeMap<NodeName, Vec<IpAddr>> {
    let mut addresses = BTreeMap::new();
    for (key, value) in fields.map_of("addresses").into_iter().flatten() {
        let at = format!("addresses.{key}");
        match (node_name(key, Some(of)), value.as_array()) {
            (Err(why), _) => fields.problem(&at, why),
            (Ok(_), None) => fields.problem(&at, "must be a list: write it as [10.0.1.7]"),
            (Ok(node), Some(items)) => {
                addresses.insert(node, addresses_of(fields, &at, items, subnets));
            }
        }
    }
    addresses
}

fn addresses_of(
    fields: &mut Fields<'_>,
    at: &str,
    items: &[Value],
    subnets: &[IpNet],
) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let at = format!("{at}[{number}]");
        let parsed = item.as_str().and_then(|text| text.parse::<IpAddr>().ok());
        let Some(address) = parsed else {
            fields.problem(
                &at,
                format!("{item} is not an IP address: write one of `subnets`"),
            );
            continue;
        };
        match subnets.iter().find(|net| net.contains(&address)) {
            None => fields.problem(
                &at,
                format!("{address} is in none of `subnets`: write one that is"),
            ),
            Some(net) if !is_of_host(*net, address) => {
                let text =
                    format!("{address} is the first or the last of {net}: choose one between");
                fields.problem(&at, text);
            }
            Some(net) if addresses.iter().any(|other| net.contains(other)) => {
                let text = format!("{address} is a second one of {net}: keep one");
                fields.problem(&at, text);
            }
            Some(_) => addresses.push(address),
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        match Topology::parse("t.yaml", text) {
            Ok(topology) => panic!("taken: {topology:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[track_caller]
    fn refused(text: &str, lines: &[&str]) {
        let found = problems(text);
        let all: Vec<&str> = found.lines().skip(1).map(str::trim_start).collect();
        assert_eq!(all.len(), lines.len(), "{found}");
        for (line, wanted) in all.iter().zip(lines) {
            assert!(line.starts_with(wanted), "{line}\n{wanted}");
            assert!(line.contains(": "), "no remedy: {line}");
        }
    }

    #[test]
    fn a_file_says_nodes_and_nics() {
        let text = "\
nodes: [n1, n5]
nics:
- name: eth1
  subnets: [10.0.1.0/24, fd00:10:1::/64]
- name: rail2
  subnets: [10.0.1.0/24]
  nodes: [n5]
  offset: 100
  addresses: {n5: [10.0.1.77]}
  mtu: 9000
  down: [n5]
";
        let topology = Topology::parse("t.yaml", text).unwrap();
        let (n1, n5): (NodeName, NodeName) = ("n1".parse().unwrap(), "n5".parse().unwrap());
        assert_eq!(topology.nodes.all(), BTreeSet::from([n1, n5]));
        let [first, second] = topology.nics.as_slice() else {
            panic!("{topology:?}")
        };
        let first = first.of(n5).unwrap();
        assert_eq!(first.addresses[0].to_string(), "10.0.1.5/24");
        assert_eq!(first.addresses[1].to_string(), "fd00:10:1::5/64");
        assert_eq!((first.mtu, first.up), (None, true));
        assert_eq!(second.of(n1), None);
        let second = second.of(n5).unwrap();
        assert_eq!(second.addresses[0].to_string(), "10.0.1.77/24");
        assert_eq!((second.mtu, second.up), (Some(9000), false));
    }

    /// The book's file, and the example.
    #[test]
    fn what_is_shown_is_taken() {
        let this = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let read = |name: &str| std::fs::read_to_string(format!("{this}/../../{name}")).unwrap();
        let page = read("docs/src/lab.md");
        let block = page.split("```yml\n").nth(1).unwrap();
        let block = block.split("```").next().unwrap();
        let topology = Topology::parse("lab.md", block).unwrap();
        let of_n2 = topology.nics[1].of("n2".parse().unwrap()).unwrap();
        assert_eq!(of_n2.addresses[0].to_string(), "10.0.1.77/24");
        let example = read("examples/seed-002/hosts.topology");
        let topology = Topology::parse("hosts.topology", &example).unwrap();
        assert_eq!((topology.node_count(), topology.nics.len()), (4, 4));
    }

    #[test]
    fn nodes_may_be_a_number_and_nics_none() {
        let topology = Topology::parse("t.yaml", "nodes: 4\nnics: []\n").unwrap();
        assert_eq!(topology.nodes, TopologyNodes::Count(4));
        let topology = Topology::parse("t.yaml", "nics: []\n").unwrap();
        assert_eq!(topology.node_count(), usize::from(USUAL_NODES));
    }

    #[test]
    fn keys_and_shapes_are_checked() {
        refused("", &["t.yaml:1: has 0 documents"]);
        refused("a: 1\n---\nb: 1\n", &["t.yaml:1: has 2 documents"]);
        refused("[n1]\n", &["t.yaml:1: is no map"]);
        refused("nodes: [", &["t.yaml:"]);
        refused("nodes: 2\n", &["t.yaml:1: nics: is missing"]);
        refused(
            "nics: []\nnodes: 1\nnodes: 2\n",
            &["t.yaml:3: the key \"nodes\" occurs twice"],
        );
        refused(
            "nics: []\nnode: 2\n",
            &["t.yaml:2: node: is not a known key: did you mean \"nodes\"?"],
        );
        refused(
            "nics:\n- {name: eth1, subnet: 10.0.1.0/24}\n",
            &[
                "t.yaml:2: nics[0].subnets: is missing",
                "t.yaml:2: nics[0].subnet: is not a known key: did you mean \"subnets\"?",
            ],
        );
        for nodes in ["0", "201", "-1", "1.5", "many", "{}"] {
            let text = format!("nics: []\nnodes: {nodes}\n");
            refused(&text, &["t.yaml:2: nodes: "]);
        }
        refused("nics: []\nnodes: []\n", &["t.yaml:2: nodes: names no node"]);
        refused(
            "nics: []\nnodes: [n1, n201, n1]\n",
            &[
                "t.yaml:2: nodes[1]: \"n201\" is no node of a lab",
                "t.yaml:2: nodes[2]: n1 is named twice",
            ],
        );
    }

    /// One NIC with this beside its name.
    fn with(more: &str) -> String {
        format!("nodes: 2\nnics:\n- {{name: eth1, {more}}}\n")
    }

    #[test]
    fn a_nics_values_are_checked() {
        for (name, why) in [
            ("eth0", "is the uplink"),
            ("lo", "every node has it"),
            ("px1", "agents give"),
            ("sixteen-letters-", "1 to 15"),
            ("\"*\"", "1 to 15"),
            ("\"a b\"", "1 to 15"),
        ] {
            let text = format!("nics:\n- {{name: {name}, subnets: [10.0.1.0/24]}}\n");
            let found = problems(&text);
            assert!(
                found.contains("nics[0].name: ") && found.contains(why),
                "{found}"
            );
        }
        for (subnet, why) in [
            ("10.0.1.7/24", "write 10.0.1.0/24"),
            ("10.0.1.0/31", "one of 8 to 30"),
            ("\"fd00::/127\"", "one of 16 to 126"),
            ("10.0.0.0/7", "10.0.0.0/7"),
            (
                "10.200.0.0/16",
                "overlaps 10.200.0.0/24, the network of eth0",
            ),
            ("10.200.0.128/25", "overlaps 10.200.0.0/24"),
            ("203.0.113.0/24", "overlaps 203.0.113.1/32"),
            ("here", "\"here\" is not an address"),
            ("24", "24 is no subnet"),
            (
                "10.0.1.0/24, 10.0.0.0/16",
                "10.0.0.0/16 overlaps 10.0.1.0/24 of this NIC",
            ),
        ] {
            let found = problems(&with(&format!("subnets: [{subnet}]")));
            assert!(
                found.contains("t.yaml:3: nics[0].subnets[") && found.contains(why),
                "{subnet}: {found}"
            );
        }
        let subnets = "subnets: [10.0.1.0/24]";
        for (more, path, why) in [
            ("mtu: 1279", "mtu", "from 1280 to 65535"),
            ("mtu: large", "mtu", "whole number"),
            ("offset: -1", "offset", "whole number"),
            ("down: [n3]", "down[0]", "n3 is not one of the nodes here"),
            ("nodes: []", "nodes", "names no node"),
            ("nodes: [n3]", "nodes[0]", "n3 is not one of the nodes here"),
            ("nodes: [n1], down: [n2]", "down[0]", "n2 is not one"),
            (
                "addresses: {n3: [10.0.1.9]}",
                "addresses.n3",
                "n3 is not one",
            ),
            (
                "addresses: {n1: 10.0.1.9}",
                "addresses.n1",
                "must be a list",
            ),
            (
                "addresses: {n1: [10.0.2.9]}",
                "addresses.n1[0]",
                "in none of `subnets`",
            ),
            (
                "addresses: {n1: [10.0.1.0]}",
                "addresses.n1[0]",
                "the first or the last",
            ),
            (
                "addresses: {n1: [x]}",
                "addresses.n1[0]",
                "\"x\" is not an IP address",
            ),
            (
                "addresses: {n1: [10.0.1.8, 10.0.1.9]}",
                "addresses.n1[1]",
                "a second one of",
            ),
            (
                "addresses: {n1: [10.0.1.2]}",
                "addresses",
                "both n1's and n2's",
            ),
            ("offset: 254", "subnets[0]", "has no address for node n1"),
        ] {
            let found = problems(&with(&format!("{subnets}, {more}")));
            let path = format!("t.yaml:3: nics[0].{path}: ");
            assert!(
                found.contains(&path) && found.contains(why),
                "{more}: {found}"
            );
        }
    }

    #[test]
    fn all_problems_are_said_at_once() {
        let text = "nodes: 300\nnics:\n- name: eth0\n  subnets: [10.0.1.1/24]\n  mtu: 1\n";
        let found = problems(text);
        assert!(
            found.starts_with("t.yaml cannot be used: 4 problems"),
            "{found}"
        );
        assert_eq!(found.lines().count(), 5, "{found}");
    }
}
