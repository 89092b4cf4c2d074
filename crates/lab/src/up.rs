//! `up`: from nothing, or from whatever an earlier `up` got to, to a lab that is ready. Makes namespaces and
//! wires itself, then starts the keeper and waits for what it reports. Killed half-way it leaves what the
//! next `up` goes on with and what `down` removes.

use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::name::NodeName;
use crate::part::Part;
use crate::process::Process;
use crate::report::Report;
use crate::spec::{Programs, Spec, UpOptions};
use crate::{control, settings, tail, underlay};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Longer than the start of many nodes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Below those that the kernel gives to outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Something that has been reached, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The namespaces of all nodes are there, and joined.
    Underlay {
        /// How many nodes.
        nodes: usize,
        /// How many NICs these have, with `eth0`.
        wires: usize,
    },
    /// A process does its work.
    Ready(String),
}

/// Makes the lab, or adds to it what is asked for now, and waits until it is ready. Wires that were cut are
/// joined again, and what was held is released.
pub fn up(
    layout: &Layout,
    options: &UpOptions,
    programs: Programs,
    tell: &mut dyn FnMut(Step),
) -> Result<Spec, LabError> {
    need_root()?;
    let lock = Lock::take(layout)?;
    let before = Spec::read(layout)?;
    let spec = match &before {
        Some(spec) => spec.changed(options, programs)?,
        None => Spec::new(options, free_port(layout)?, programs)?,
    };
    control::make_room(layout, before.as_ref(), &spec)?;
    settings::prepare(layout)?;
    files::make_dir(&layout.dir().join("log"))?;
    spec.write(layout)?;
    make(layout, &spec)?;
    let nics = spec.all_nics();
    for node in &spec.nodes {
        underlay::partition(layout.name(), *node, &nics, false)?;
        files::remove(&layout.held(Part::Agent(*node)))?;
    }
    for part in [Part::Server, Part::Controller] {
        files::remove(&layout.held(part))?;
    }
    tell(Step::Underlay {
        nodes: spec.nodes.len(),
        wires: spec.wires(),
    });
    ensure_keeper(layout, &spec)?;
    // Others may change the lab while we wait; what we wait for is what we asked for.
    drop(lock);
    wait_ready(layout, &spec, tell)?;
    Ok(spec)
}

/// Namespaces, wires and directories of a lab, under its lock.
pub(crate) fn make(layout: &Layout, spec: &Spec) -> Result<(), LabError> {
    let nics = spec.all_nics();
    underlay::make_fabric(layout.name(), &nics)?;
    let nodes: Vec<NodeName> = spec.nodes.iter().copied().collect();
    for node in &nodes {
        for dir in [
            layout.agent_state(*node),
            layout.plugin_files(*node),
            layout.cni_bin(*node),
            layout.cni_conf(*node),
            layout.sandboxes(*node),
        ] {
            files::make_dir(&dir)?;
        }
    }
    underlay::plug_all(layout.name(), &nodes, &nics)
}

/// Starts the keeper unless it runs. It has a lock of its own, so that a second one ends at once.
pub(crate) fn ensure_keeper(layout: &Layout, spec: &Spec) -> Result<(), LabError> {
    if Process::of_part(layout, Part::Keeper).is_some() {
        return Ok(());
    }
    // What the last one saw is no news.
    files::remove(&layout.report())?;
    let mut child = Part::Keeper.start(layout, spec)?;
    // Reaped if it ends before we do; else whoever adopts it does that.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Waits until everything of the specification is ready.
pub(crate) fn wait_ready(
    layout: &Layout,
    spec: &Spec,
    tell: &mut dyn FnMut(Step),
) -> Result<(), LabError> {
    let mut announced = BTreeSet::new();
    let start = Instant::now();
    loop {
        let report = Report::read(layout)?.unwrap_or_default();
        let missing = report.missing(spec.nodes.iter().copied());
        let names = ["server".to_owned(), "controller".to_owned()];
        let nodes = spec.nodes.iter().map(|node| format!("{node}-agent"));
        for name in names.into_iter().chain(nodes) {
            if !missing.iter().any(|(other, _)| *other == name) && announced.insert(name.clone()) {
                tell(Step::Ready(name));
            }
        }
        if missing.is_empty() && report.generation >= spec.generation {
            return Ok(());
        }
        let keeper_ended = || Process::of_part(layout, Part::Keeper).is_none();
        let late = start.elapsed() > START_TIMEOUT;
        let ended = start.elapsed() > Duration::from_secs(3) && keeper_ended();
        if late || ended {
            return Err(not_ready(layout, &missing, ended));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Only root makes namespaces.
pub(crate) fn need_root() -> Result<(), LabError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(LabError::NotRoot)
}

fn not_ready(layout: &Layout, missing: &[(String, String)], ended: bool) -> LabError {
    if ended {
        let last_lines = tail::of(&layout.log(Part::Keeper));
        return LabError::Refused(format!(
            "the lab's keeper has ended; it said last: {last_lines}; `plexus lab up` starts it again"
        ));
    }
    let last: Vec<String> = missing
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    LabError::NotYet {
        what: format!("lab {} to be ready", layout.name()),
        limit: START_TIMEOUT,
        last: format!(
            "{}; logs are in {}",
            last.join("; "),
            layout.dir().join("log").display()
        ),
    }
}

/// A port of the loopback that nobody uses now, the same for a lab of the same name as a rule.
fn free_port(layout: &Layout) -> Result<u16, LabError> {
    let count = PORTS.end - PORTS.start;
    let hash = layout.name().as_str().bytes().fold(5381_u32, |hash, byte| {
        hash.wrapping_mul(33) ^ u32::from(byte)
    });
    let first = u16::try_from(hash % u32::from(count)).unwrap_or_default();
    let ports = (0..count).map(|step| PORTS.start + (first + step) % count);
    for port in ports {
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(LabError::Refused(format!(
        "no port of 127.0.0.1 from {} to {} is free: end what uses them, or see whether lo is up",
        PORTS.start,
        PORTS.end - 1
    )))
}
