//! From nothing to ready, in an order that cannot harm another agent or a running pod:
//! locks, strays, journal, probe, socket, replay. The socket answers before the replay ends, so that a
//! long one is not taken for a dead agent; what changes anything waits for its end.

use crate::addresses::Addresses;
use crate::agent::Agent;
use crate::background::task::{Next, Run};
use crate::background::{self, Tasks};
use crate::cluster::{Cluster, ClusterError, ClusterOptions, Hooks};
use crate::failure;
use crate::host::cluster_network::OtherCni;
use crate::host::conflist::{self, Conflist};
use crate::host::conflists::Conflists;
use crate::host::install::{self, InstallError};
use crate::host::lock::{Lock, LockError};
use crate::host::mounts::{self, MountError};
use crate::journal::Journal;
use crate::node::devices::Devices;
use crate::node::parents::Parents;
use crate::node::state::NodeState;
use crate::node::underlay;
use crate::node::uplink::Uplink;
use crate::options::{ClusterNetwork, Options};
use crate::report::metrics::Metrics;
use crate::serve::admission::Admission;
use crate::serve::gate::Gate;
use crate::serve::server::{ListenError, Server};
use crate::serve::tcp::{self, QueryListenError};
use plexus_cni::delegate::{self, Runner};
use plexus_kernel::{BootIdError, Features, NetnsError, NodeSide, Signals};
use plexus_types::NetnsCookie;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

/// How long a plugin that an earlier agent started may go on before it is killed.
const STRAY_GRACE: Duration = Duration::from_secs(5);
/// How long requests that are being served may take when the agent is to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(4);

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory or the socket is not ours.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The socket cannot be served.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The node's namespace cannot be used.
    #[error("cannot use this node's network namespace")]
    Netns(#[from] NetnsError),
    /// The boot is unknown, so that no record could be trusted.
    #[error("cannot tell one boot from another")]
    Boot(#[from] BootIdError),
    /// A plugin of an earlier agent cannot be stopped.
    #[error("plugins that an earlier agent started cannot be ended")]
    Strays(#[source] std::io::Error),
    /// The container's mounts would lose what the agent makes.
    #[error(transparent)]
    Mounts(#[from] MountError),
    /// The shim cannot be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The queries cannot be answered where they should be.
    #[error(transparent)]
    Queries(#[from] QueryListenError),
    /// The cluster's API cannot be used.
    #[error("cannot take part in the cluster")]
    Cluster(#[from] ClusterError),
    /// A thread or a signal handler cannot be set up.
    #[error("cannot set up the process")]
    Process(#[source] std::io::Error),
}

/// Runs an agent until it is asked to stop (SIGTERM, SIGINT).
pub fn run(options: Options) -> Result<(), StartError> {
    let signals = Signals::block().map_err(StartError::Process)?;
    run_until(options, || match signals.wait() {
        Ok(signal) => tracing::info!(signal, "asked to stop"),
        Err(error) => tracing::error!(%error, "cannot wait for signals"),
    })
}

/// The same until `stop` returns: for a process that does more than this, and has blocked the
/// signals before it started any thread.
pub fn run_until(options: Options, stop: impl FnOnce()) -> Result<(), StartError> {
    mounts::check(&options)?;
    let _state = Lock::state(&options.state_dir)?;
    let _socket = Lock::socket(&options.socket)?;
    let strays = delegate::end_strays(&options.spool(), STRAY_GRACE).map_err(StartError::Strays)?;
    if strays > 0 {
        tracing::warn!(
            strays,
            "plugins of an earlier agent were still running; they have ended"
        );
    }
    let socket = options.socket.clone();
    let queue = options.queue;
    let agent = Arc::new(assemble(options)?);
    join_cluster(&agent)?;
    let server = Server::bind(&socket, Arc::clone(&agent), queue)?;
    server.start();
    // A journal that cannot be opened stays so until the next start.
    let readable = agent.journal.is_ok();
    let restored = readable && agent.tasks.restore.run_here(|| agent.restore()).is_ok();
    // Before the background writes the configuration that makes a runtime execute it.
    install::install(&agent.options)?;
    agent.ready.store(restored, SeqCst);
    agent.restored.open();
    background::start(&agent).map_err(StartError::Process)?;
    if readable && !restored {
        background::start_restore(&agent).map_err(StartError::Process)?;
    }
    answer_queries(&agent)?;
    plexus_kernel::memory::give_back();
    tracing::info!(node = agent.options.node, socket = %socket.display(), "serving");
    stop();
    tracing::info!("stopping: no new requests, waiting for those in flight");
    server.drain(DRAIN_TIMEOUT);
    Ok(())
}

/// Everything but what is served: journal, addresses, the node as it is.
pub(crate) fn assemble(options: Options) -> Result<Agent, StartError> {
    let node = NodeSide::current_with(options.routers())?;
    let here = node.netns().cookie()?;
    let boot = boot_of(here)?;
    let features = plexus_kernel::probe();
    report(&features);
    let journal = Journal::open(&options.journal()).map_err(|error| {
        let error = failure::journal(&error);
        tracing::error!(%error, "no ADD is served; DEL works from the request");
        error
    });
    let mut delegates = delegate::Options::new(options.delegate_dirs(), options.spool());
    delegates.root = options.host_root.clone().map(delegate::Root::new);
    delegates.allowed = options.allowed_delegates.clone();
    delegates.own = vec![options.cni_bin_dir.join("plexus-cni")];
    delegates.timeout = options.delegate_timeout;
    delegates.at_once = options.delegates_at_a_time;
    Ok(Agent {
        here,
        boot,
        node,
        features,
        journal,
        addresses: Addresses::new(options.host_root.clone()),
        admission: Admission::new(options.queue),
        runner: Runner::new(delegates),
        node_state: NodeState::default(),
        devices: Devices::default(),
        uplink: Uplink::default(),
        parents: Parents::default(),
        underlay: underlay::CachedUnderlay::default(),
        cluster: OnceLock::new(),
        other_cni: OtherCni::new(
            &options.cni_conf_dir,
            options.host_root.as_deref(),
            conflist::NAME,
        ),
        conflist: Conflist::of(&options),
        conflists: Conflists::of(&options),
        routers: RwLock::default(),
        fabric_lock: Mutex::default(),
        tasks: Tasks::new(&options).map_err(StartError::Process)?,
        removed: Mutex::default(),
        unsettled: Mutex::default(),
        metrics: Metrics::default(),
        ready: AtomicBool::new(false),
        restored: Gate::default(),
        options,
    })
}

/// Begins to watch the cluster, if there is one; does not wait for it.
fn join_cluster(agent: &Arc<Agent>) -> Result<(), StartError> {
    let options = &agent.options;
    let Some(kubernetes) = &options.kubernetes else {
        return Ok(());
    };
    let hooks: Arc<dyn Hooks> = Arc::clone(agent) as Arc<dyn Hooks>;
    let cluster = Cluster::start(
        ClusterOptions {
            server: kubernetes.server.clone(),
            node: options.node.clone(),
            state_dir: options.state_dir.clone(),
            cni_conf_dir: options.cni_conf_dir.clone(),
            host_root: options.host_root.clone(),
            pod_cidrs: kubernetes.cluster_network == ClusterNetwork::OwnNodeCidrs,
            allowed_subnets: kubernetes.allowed_subnets(),
            containers: kubernetes.containers,
        },
        hooks,
    )?;
    // There is one start a process, so the place is empty.
    let _ = agent.cluster.set(cluster);
    Ok(())
}

fn answer_queries(agent: &Arc<Agent>) -> Result<(), StartError> {
    let Some(address) = agent.options.query_address else {
        return Ok(());
    };
    let answering = Arc::clone(agent);
    let answer: tcp::Answer = Arc::new(move |path, query| answering.query(path, query));
    match tcp::serve(address, &answer) {
        // Whoever has the port must not keep pods from being attached.
        Err(QueryListenError::Bind(..)) => {
            let listen = move |_: &Run<'_>| match tcp::serve(address, &answer) {
                Ok(_) => Ok(Next::Done),
                Err(error) => {
                    let error = failure::chain(&error);
                    Err(format!("queries are answered on the socket only: {error}"))
                }
            };
            let query = &agent.tasks.query;
            query.start(Vec::new(), listen).map_err(StartError::Process)
        }
        served => Ok(served.map(drop)?),
    }
}

/// This boot of this node: a lab has many nodes on one machine, and a namespace that is made anew
/// under the same name is a node that was rebooted.
fn boot_of(here: NetnsCookie) -> Result<String, StartError> {
    let machine = match std::env::var("PLEXUS_BOOT_ID") {
        Ok(given) if !given.is_empty() => given,
        _ => plexus_kernel::boot_id()?,
    };
    Ok(format!("{machine}/{}", here.0))
}

fn report(features: &Features) {
    for (feature, missing) in features.iter() {
        if let Some(reason) = missing {
            tracing::info!(%feature, reason, "this kernel lacks a feature: networks that need it are refused");
        }
    }
}
