//! Changes to a lab that is up: nodes come and go, processes are killed and started, wires are cut.

use crate::down::Removal;
use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::name::NodeName;
use crate::nic::Nic;
use crate::part::Part;
use crate::process::{self, Process};
use crate::report::Report;
use crate::spec::Spec;
use crate::underlay;
use crate::up::{self, Step, need_root};
use plexus_kernel::{mount, named};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// How long the keeper may take to let go of a node.
const NODE_REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Adds a node, and waits until it is ready.
pub fn add_node(layout: &Layout, tell: &mut dyn FnMut(Step)) -> Result<NodeName, LabError> {
    need_root()?;
    let lock = Lock::take(layout)?;
    let mut spec = of(layout)?;
    let node = spec.next_node()?;
    let before = spec.clone();
    spec.nodes.insert(node);
    spec.check()?;
    spec.generation += 1;
    make_room(layout, Some(&before), &spec)?;
    // Its wires before its agent.
    up::make(layout, &spec)?;
    spec.write(layout)?;
    tell(Step::Underlay {
        nodes: spec.nodes.len(),
        wires: spec.wires(),
    });
    up::ensure_keeper(layout, &spec)?;
    drop(lock);
    up::wait_ready(layout, &spec, tell)?;
    Ok(node)
}

/// Switches a node off and removes it: its agent is killed, its sandboxes and wires vanish, its Node and its
/// pods are deleted. Nobody is asked to leave first. Goes on with one whose removal was interrupted.
pub fn remove_node(
    layout: &Layout,
    node: NodeName,
    tell: &mut dyn FnMut(Removal),
) -> Result<(), LabError> {
    need_root()?;
    let _lock = Lock::take(layout)?;
    let mut spec = of(layout)?;
    if !layout.node(node).exists() {
        spec.has(layout, node)?;
    }
    need_keeper(layout)?;
    tell(Removal::Begun);
    if spec.nodes.remove(&node) {
        spec.generation += 1;
        spec.write(layout)?;
    }
    wait_until(&format!("node {node} to be switched off"), || {
        let report = Report::read(layout)?.unwrap_or_default();
        let gone = report.generation >= spec.generation && !report.nodes.contains_key(&node);
        Ok(gone)
    })?;
    tell(Removal::SwitchedOff);
    discard(layout, node, &spec.all_nics())
}

/// Removes what a node has on this machine: processes, wires, namespace, and last its directory, which says
/// that all this is ours.
fn discard(layout: &Layout, node: NodeName, nics: &[Nic]) -> Result<(), LabError> {
    let name = [layout.name().node(node)];
    process::end_all(|| Ok(Process::in_namespaces(&name)), &mut BTreeSet::new())?;
    underlay::unplug(layout.name(), node, nics)?;
    let dir = layout.node(node);
    mount::unmount_below(&dir).map_err(LabError::file("unmount what is in", &dir))?;
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LabError::file("remove", &dir)(error))
        }
        _ => Ok(()),
    }
}

/// Makes room for nodes that come: what an interrupted removal left of one of that number goes, and what is
/// not the lab's is not taken.
pub(crate) fn make_room(
    layout: &Layout,
    before: Option<&Spec>,
    spec: &Spec,
) -> Result<(), LabError> {
    let is_new = |node: &&NodeName| before.is_none_or(|before| !before.nodes.contains(*node));
    let new: Vec<NodeName> = spec.nodes.iter().filter(is_new).copied().collect();
    let fabric = before.is_none().then(|| layout.name().fabric());
    let without = new.iter().filter(|node| !layout.node(**node).exists());
    let wanted: Vec<String> = without.map(|node| layout.name().node(*node)).collect();
    for name in wanted.into_iter().chain(fabric) {
        if named::path(&name).exists() {
            return Err(LabError::Refused(format!(
                "there is a network namespace {name} that this lab has not made: choose another name with --lab, \
                 or remove all namespaces of that name, with whatever runs in them, with `plexus lab down`"
            )));
        }
    }
    let nics = spec.all_nics();
    for node in new {
        if layout.node(node).exists() {
            discard(layout, node, &nics)?;
        }
    }
    Ok(())
}

/// Kills a process of the lab; the keeper starts it again, unless it is held. Gives the process that is no more;
/// none if it is held, and did not run. Without the server the API is away; without the controller nobody looks
/// after networks and blocks.
pub fn kill(layout: &Layout, part: Part, hold: bool) -> Result<Option<i32>, LabError> {
    has(layout, part)?;
    if hold {
        files::put_json(&layout.held(part), &true)?;
    }
    match Process::of_part(layout, part) {
        Some(process) => process.kill().map(|()| Some(process.pid())),
        // It ended by itself, and now nobody starts it again: that is what was asked for.
        None if hold => Ok(None),
        None => Err(LabError::DoesNotRun {
            part: part.to_string(),
            log: layout.log(part),
        }),
    }
}

/// Lets the keeper start what was held, and waits until it is ready.
pub fn start(layout: &Layout, part: Part) -> Result<(), LabError> {
    has(layout, part)?;
    need_keeper(layout)?;
    files::remove(&layout.held(part))?;
    wait_until(&format!("{part} to be ready"), || {
        let report = Report::read(layout)?.unwrap_or_default();
        let ready = report.of(part).filter(|seen| seen.ready);
        // The one that is reported may have been killed a moment ago.
        let runs = Process::of_part(layout, part).map(|process| process.pid());
        Ok(ready.is_some_and(|seen| seen.pid == runs))
    })
}

/// Refuses what is not a process of this lab that can be killed and started.
fn has(layout: &Layout, part: Part) -> Result<(), LabError> {
    need_root()?;
    let spec = of(layout)?;
    match part {
        Part::Agent(node) => spec.has(layout, node).map(drop),
        Part::Server | Part::Controller => Ok(()),
        Part::Keeper => Err(LabError::Refused(
            "the keeper is what starts the others: `plexus lab up` starts it".to_owned(),
        )),
    }
}

/// Cuts all wires of a node, or joins them again.
pub fn partition(layout: &Layout, node: NodeName, cut: bool) -> Result<(), LabError> {
    need_root()?;
    let _lock = Lock::take(layout)?;
    let spec = of(layout)?;
    spec.has(layout, node)?;
    underlay::partition(layout.name(), node, &spec.all_nics(), cut)
}

/// The lab as it is recorded.
pub(crate) fn of(layout: &Layout) -> Result<Spec, LabError> {
    Spec::read(layout)?.ok_or_else(|| LabError::no_lab(layout))
}

fn need_keeper(layout: &Layout) -> Result<(), LabError> {
    if Process::of_part(layout, Part::Keeper).is_some() {
        return Ok(());
    }
    Err(LabError::Refused(
        "the lab's keeper does not run: `plexus lab up` starts it again".to_owned(),
    ))
}

fn wait_until(
    what: &str,
    mut holds: impl FnMut() -> Result<bool, LabError>,
) -> Result<(), LabError> {
    let start = Instant::now();
    while start.elapsed() < NODE_REMOVAL_TIMEOUT {
        if holds()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(LabError::NotYet {
        what: what.to_owned(),
        limit: NODE_REMOVAL_TIMEOUT,
        last: "see `plexus lab status`".to_owned(),
    })
}
