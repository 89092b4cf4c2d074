//! What is left over: marked links without a record, host-local files without a container, ports
//! that lead to nobody, routers without a network. Nothing is removed: absence of a record is no
//! evidence that the owner is gone.

use super::agent::Agent;
use super::{ApiFacts, Check, Machine, Subject};
use crate::snapshot::{text, uid};
use ipnet::IpNet;
use plexus_core::attachment::Alias;
use plexus_core::plan::{ALIAS_MARK, HostPort};
use plexus_kernel::nft::host_ports;
use plexus_kernel::{Netns, NodeSide, Socket, observe, router, scan};
use plexus_types::{NetnsCookie, RouterName};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// How many are named.
const MAX_NAMED: usize = 5;

pub(super) fn check(machine: &Machine, agent: &Agent, api: Option<&ApiFacts>) -> Vec<Check> {
    let (links, ports, files) = (marked_links(), ports(), host_local(&machine.pools));
    let Some(known) = known(machine, agent) else {
        return vec![Check::warn(
            Subject::Leaks,
            "cannot be told: the agent, which knows what belongs to whom, does not answer",
            "start the agent, then look again",
        )];
    };
    let mut checks = Vec::new();
    match links {
        Ok((links, complete)) => checks.push(links_without_record(&links, &known, complete)),
        Err(why) => checks.push(Check::warn(
            Subject::LeakedLinks,
            why,
            "run as root on the host",
        )),
    }
    match ports {
        Ok(ports) => checks.push(ports_to_nobody(&ports, &known)),
        Err(why) => checks.push(Check::warn(
            Subject::LeakedPorts,
            format!("cannot read the ports that nftables forwards: {why}"),
            "run as root on the host",
        )),
    }
    checks.push(files_without_container(&files, &known));
    let routers = machine.socket.parent().map(|dir| dir.join("routers"));
    if let (Some(dir), Some(facts)) = (routers, api)
        && facts.version.is_ok()
        && !facts.snapshot.unknown.contains_key("networks")
        && let Ok(found) = router::list(&dir)
    {
        checks.push(routers_without_network(&found, facts));
    }
    checks
}

/// What the agent knew before something was looked at, and what it knows now: of whatever comes or goes
/// meanwhile it knows at one of the two times.
fn known(machine: &Machine, agent: &Agent) -> Option<AgentState> {
    let before = agent.attachments.as_ref()?;
    let now = crate::agent::attachments(&machine.socket).ok()?;
    Some(AgentState::of(before.iter().chain(&now)))
}

/// The containers and addresses that the agent knows.
#[derive(Debug, Default)]
pub(super) struct AgentState {
    containers: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

impl AgentState {
    pub(super) fn of<'a>(attachments: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut known = Self::default();
        for one in attachments {
            known.containers.insert(text(one, "/container").to_owned());
            let ips = crate::snapshot::list(one, "/ips")
                .iter()
                .filter_map(Value::as_str);
            let ips = ips.filter_map(|ip| ip.parse::<IpNet>().ok());
            known.addresses.extend(ips.map(|ip| ip.addr()));
        }
        known
    }
}

/// A link with our mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedLink {
    name: String,
    netns: String,
    container: String,
}

/// The links of every namespace that carry this node's mark, and whether every namespace was seen.
pub(super) fn marked_links() -> Result<(Vec<MarkedLink>, bool), String> {
    let here = Netns::current().and_then(|netns| netns.cookie());
    let here = here.map_err(|error| format!("cannot tell this network namespace: {error}"))?;
    let scan = scan::namespaces();
    let mut found = Vec::new();
    for namespace in &scan.found {
        let links = Socket::open_in(&namespace.netns).and_then(|mut s| observe::links(&mut s));
        let Ok(links) = links else { continue };
        for link in links {
            let Some(alias) = ours(&link.alias.unwrap_or_default(), here) else {
                continue;
            };
            found.push(MarkedLink {
                name: link.name,
                netns: namespace.path.display().to_string(),
                container: alias.container,
            });
        }
    }
    Ok((found, scan.complete))
}

fn ours(alias: &str, here: NetnsCookie) -> Option<Alias> {
    if !alias.starts_with(ALIAS_MARK) {
        return None;
    }
    Alias::parse(alias).filter(|alias| alias.node == here)
}

pub(super) fn links_without_record(
    links: &[MarkedLink],
    known: &AgentState,
    complete: bool,
) -> Check {
    let name = Subject::LeakedLinks;
    let lost: Vec<String> = links
        .iter()
        .filter(|link| !known.containers.contains(&link.container))
        .map(|link| {
            format!(
                "{} in {} (container {})",
                link.name, link.netns, link.container
            )
        })
        .collect();
    if lost.is_empty() {
        let seen = if complete {
            ""
        } else {
            " in the namespaces that can be seen"
        };
        return Check::pass(
            name,
            format!("{} marked links{seen}, each with a record", links.len()),
        );
    }
    Check::warn(
        name,
        format!(
            "{} marked links have no record: {}",
            lost.len(),
            some(&lost)
        ),
        "restart the agent: it adopts them; then a DEL or GC removes them. If the container is gone: \
         ip link del",
    )
}

fn ports() -> Result<Vec<HostPort>, String> {
    let node = NodeSide::current().map_err(|error| error.to_string())?;
    host_ports::list(&node).map_err(|error| error.to_string())
}

pub(super) fn ports_to_nobody(ports: &[HostPort], known: &AgentState) -> Check {
    let name = Subject::LeakedPorts;
    let lost: Vec<String> = ports
        .iter()
        .filter(|port| !known.addresses.contains(&port.to.ip()))
        .map(|port| format!("{} to {}", port.port, port.to))
        .collect();
    match lost.is_empty() {
        true => Check::pass(
            name,
            format!("{} ports of the node lead to pods", ports.len()),
        ),
        false => Check::warn(
            name,
            format!("ports of the node lead to nobody: {}", some(&lost)),
            "restart the agent: it sets them anew from its records",
        ),
    }
}

/// An address in host-local's directory: file, and the container that it names.
pub(super) fn host_local(pools: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let directories = fs::read_dir(pools).into_iter().flatten().flatten();
    for directory in directories.map(|entry| entry.path()) {
        let files = fs::read_dir(&directory).into_iter().flatten().flatten();
        for path in files.map(|entry| entry.path()) {
            let file = path.file_name().and_then(|name| name.to_str());
            let is_address = file.is_some_and(|name| name.parse::<IpAddr>().is_ok());
            let Some(content) = is_address.then(|| fs::read_to_string(&path).ok()).flatten() else {
                continue;
            };
            let container = content.lines().next().unwrap_or_default().trim().to_owned();
            found.push((path.display().to_string(), container));
        }
    }
    found.sort();
    found
}

pub(super) fn files_without_container(files: &[(String, String)], known: &AgentState) -> Check {
    let name = Subject::LeakedAddresses;
    let lost: Vec<String> = files
        .iter()
        .filter(|(_, container)| !known.containers.contains(container))
        .map(|(path, container)| format!("{path} (container {container})"))
        .collect();
    match lost.is_empty() {
        true => Check::pass(
            name,
            format!("{} addresses, each with a container", files.len()),
        ),
        false => Check::warn(
            name,
            format!(
                "{} addresses are held for containers that the agent does not know: {}",
                lost.len(),
                some(&lost)
            ),
            "if no other CNI uses that directory and the containers are gone, remove the files",
        ),
    }
}

pub(super) fn routers_without_network(routers: &[RouterName], facts: &ApiFacts) -> Check {
    let name = Subject::LeakedRouters;
    let wanted: BTreeMap<RouterName, String> = facts
        .snapshot
        .networks
        .iter()
        .map(|network| (RouterName::of(&uid(network)), uid(network)))
        .collect();
    let lost: Vec<String> = routers
        .iter()
        .filter(|router| !wanted.contains_key(*router))
        .map(ToString::to_string)
        .collect();
    match lost.is_empty() {
        true => Check::pass(
            name,
            format!("{} routers, each with a Network", routers.len()),
        ),
        false => Check::warn(
            name,
            format!("routers without a Network: {}", some(&lost)),
            "the agent removes them when no pod is in them; see its log if they stay",
        ),
    }
}

fn some(list: &[String]) -> String {
    let named: Vec<&str> = list.iter().take(MAX_NAMED).map(String::as_str).collect();
    match list.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
