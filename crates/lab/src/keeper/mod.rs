//! The keeper: what systemd, the kubelets and the scheduler are to a cluster. Starts server, controller and
//! agents and starts again what dies; registers Nodes; gives pods a node, a sandbox and a status. Makes no
//! network: `plexus-cni` does.
//!
//! ```text
//!   lab.json ──► nodes ──► one supervisor per agent     server, controller: one each
//!   API: pods ──► one worker per pod ──► sandbox ──► plexus-cni ──► status, Events
//! ```
//!
//! It has a line of its own to the API: pods come and go also on a node whose wires are cut. Killed at any
//! time, the next one finds the processes by their marks and the sandboxes by their records.

mod ask;
mod claims;
mod nodes;
mod pods;
mod schedule;
mod server;
mod shared;
mod status;
mod supervise;
mod worker;

use crate::api;
use crate::error::LabError;
use crate::layout::Layout;
use crate::lock::try_lock;
use crate::part::Part;
use crate::spec::Spec;
use plexus_kernel::Signals;
use shared::Shared;
use std::sync::Arc;
use supervise::supervise;

/// Keeps a lab until it is asked to stop; leaves its processes and pods as they are.
pub fn run_keeper(layout: &Layout) -> Result<(), LabError> {
    let failed = |source| LabError::Start {
        what: "the keeper".to_owned(),
        source,
    };
    let signals = Signals::block().map_err(failed)?;
    let spec = Spec::read(layout)?.ok_or_else(|| LabError::no_lab(layout))?;
    let Some(_alone) = try_lock(&layout.keeper_lock())? else {
        tracing::info!("another keeper keeps this lab");
        return Ok(());
    };
    let runtime = api::runtime()?;
    let shared = Arc::new(Shared::new(layout.clone(), spec));
    let (stop, stopped) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let _ = signals.wait();
            let _ = stop.send(());
        })
        .map_err(failed)?;
    runtime.spawn(shared::follow_spec(Arc::clone(&shared)));
    runtime.spawn(shared::write_report(Arc::clone(&shared)));
    runtime.spawn(supervise(Arc::clone(&shared), Part::Server));
    runtime.spawn(supervise(Arc::clone(&shared), Part::Controller));
    runtime.spawn(nodes::run(Arc::clone(&shared)));
    runtime.spawn(pods::run(Arc::clone(&shared)));
    tracing::info!(lab = %layout.name(), "keeping");
    let _ = runtime.block_on(stopped);
    // Calls of plugins that are under way go on without us; the next keeper asks again.
    runtime.shutdown_background();
    Ok(())
}
