//! The agent: what it holds, and the way from a request to a verb and back.
//!
//! Each verb has a file of its own in `verb/`.

use crate::addresses::Addresses;
use crate::background::Tasks;
use crate::cluster::Cluster;
use crate::failure;
use crate::host::cluster_network::OtherCni;
use crate::host::conflist::Conflist;
use crate::host::conflists::Conflists;
use crate::journal::{Journal, Key, Stored};
use crate::node::devices::Devices;
use crate::node::parents::Parents;
use crate::node::state::NodeState;
use crate::node::underlay;
use crate::node::uplink::Uplink;
use crate::options::Options;
use crate::report::metrics::Metrics;
use crate::serve::admission::{Admission, ContainerLock, Refused, Slot};
use crate::serve::call::Call;
use crate::serve::gate::Gate;
use crate::serve::http::Response;
use crate::sync::lock;
use plexus_api::cni::{Code, Command, Error, Version};
use plexus_cni::delegate::Runner;
use plexus_kernel::{Features, NodeSide};
use plexus_types::{ContainerId, IfName, NetnsCookie};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock};
use std::time::Duration;
use tracing::Span;

/// How long an operation waits for another one on the same container.
const CONTAINER_LOCK_TIMEOUT: Duration = Duration::from_secs(110);
/// How long a call waits for the node to be restored; the shim waits for its answer a little longer.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(50);

/// Until everything that the journal knows is settled, an address could be given out twice.
pub(crate) fn not_restored() -> Error {
    Error::new(
        Code::NotAvailable,
        "the node's networks are not restored from the journal",
        "the agent's log says what is in the way; it is tried again",
    )
}

/// Everything on the node.
pub(crate) struct Agent {
    pub(crate) options: Options,
    /// This node's namespace.
    pub(crate) here: NetnsCookie,
    /// This boot of this node.
    pub(crate) boot: String,
    pub(crate) node: NodeSide,
    pub(crate) features: Features,
    /// Or why there is none: then ADD is refused and DEL works from the request.
    pub(crate) journal: Result<Journal, Error>,
    pub(crate) addresses: Addresses,
    pub(crate) admission: Admission,
    pub(crate) runner: Runner,
    pub(crate) node_state: NodeState,
    pub(crate) devices: Devices,
    pub(crate) uplink: Uplink,
    /// Which sort of links each parent carries.
    pub(crate) parents: Parents,
    pub(crate) underlay: underlay::CachedUnderlay,
    /// The cluster that this node belongs to, once it is being watched.
    pub(crate) cluster: OnceLock<Cluster>,
    /// The CNI that gives pods their first interface, where that is another one.
    pub(crate) other_cni: OtherCni,
    /// Our configuration in the runtime's directory, where we are the cluster's CNI.
    pub(crate) conflist: Option<Conflist>,
    /// Those of Networks, where containers are served that are no pods.
    pub(crate) conflists: Option<Conflists>,
    /// Routers are made by ADDs and removed by the fabric: never at the same time.
    pub(crate) routers: RwLock<()>,
    /// What is known of other nodes is looked at and made true by one thread at a time.
    pub(crate) fabric_lock: Mutex<()>,
    /// What happens without anyone asking.
    pub(crate) tasks: Tasks,
    /// Removed, but the journal could not be told: it is told later.
    pub(crate) removed: Mutex<BTreeSet<Key>>,
    /// What could not be settled at start: looked at again later.
    pub(crate) unsettled: Mutex<BTreeSet<Key>>,
    pub(crate) metrics: Metrics,
    pub(crate) ready: AtomicBool,
    /// Closed while the node is being restored: nobody changes anything meanwhile.
    pub(crate) restored: Gate,
}

/// What became of a request, and what must wait for the answer's delivery.
pub(crate) struct Handled<'a> {
    pub(crate) response: Response,
    /// What an ADD made: undone if the answer cannot be delivered.
    pub(crate) undelivered: Option<NewAttachments>,
    /// The container stays ours until then.
    pub(crate) held: Option<(Option<Slot<'a>>, ContainerLock<'a>)>,
    /// The networks of what was attached or detached, for the log.
    pub(crate) networks: Option<String>,
}

/// What an ADD made, by what the journal knows it.
pub(crate) struct NewAttachments {
    pub(crate) container: ContainerId,
    pub(crate) ifname: IfName,
    pub(crate) pod_uid: Option<String>,
}

impl Handled<'_> {
    fn answer(status: u16, json: String) -> Self {
        Self {
            response: Response::json(status, json),
            undelivered: None,
            held: None,
            networks: None,
        }
    }
}

impl Agent {
    /// The journal, or the reason why nothing can be begun.
    pub(crate) fn journal(&self) -> Result<&Journal, Error> {
        self.journal.as_ref().map_err(Clone::clone)
    }

    /// All records that can be read.
    pub(crate) fn stored(&self) -> Result<Vec<Stored>, Error> {
        Ok(self.journal()?.all()?)
    }

    /// All records; none if one cannot be read.
    pub(crate) fn stored_if_readable(&self) -> Result<Option<Vec<Stored>>, Error> {
        let stored = self.stored()?;
        Ok(self.is_journal_readable().then_some(stored))
    }

    /// Whether the journal tells everything: a row that cannot be read may have any address, port or network. To be
    /// asked after the rows were read.
    pub(crate) fn is_journal_readable(&self) -> bool {
        self.journal()
            .is_ok_and(|journal| journal.quarantined().is_empty())
    }

    /// What is still to be settled.
    pub(crate) fn unsettled(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        lock(&self.unsettled)
    }

    /// What is removed but still journaled.
    pub(crate) fn removed(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        lock(&self.removed)
    }

    /// Serves one CNI request; never panics on input. `gone` tells whether the caller has left. `span` becomes the
    /// one that its lines in the log have.
    pub(crate) fn handle(
        &self,
        command: Command,
        body: &[u8],
        gone: &mut dyn FnMut() -> bool,
        span: &mut Span,
    ) -> Handled<'_> {
        let started = std::time::Instant::now();
        let mut version = Version::V1_1_0;
        let read = Call::read(command, body, &mut version, span);
        let _entered = span.enter();
        let read = read.inspect_err(|error| {
            tracing::warn!(code = error.code.number(), %error, "not understood");
        });
        let served = read.and_then(|call| {
            let served = self.serve(&call, gone);
            if let Err(error) = &served {
                self.refused(&call, error);
            }
            served
        });
        let handled = served.unwrap_or_else(|error| {
            Handled::answer(failure::status(error.code), error.to_json(version))
        });
        self.metrics
            .served(command, handled.response.status == 200, started.elapsed());
        handled
    }

    /// An ADD whose answer nobody read: nobody will use what it made.
    pub(crate) fn undo_undelivered(&self, made: &NewAttachments) {
        tracing::warn!("the answer to ADD could not be delivered: undoing it");
        if let Err(error) = self.detach_record(&made.container, &made.ifname) {
            tracing::error!(%error, "undoing failed, will be tried again");
            self.tasks.removals.wake();
        }
    }

    /// Says that a call failed, to whoever reads the log and to the pod's owner.
    fn refused(&self, call: &Call<'_>, error: &Error) {
        let (networks, code) = (call.network(), error.code.number());
        tracing::warn!(networks, code, %error, "refused");
        if call.command == Command::Add {
            self.report_failed(call, error);
        }
        if matches!(call.command, Command::Add | Command::Del | Command::Gc) {
            self.tasks.removals.wake();
        }
    }

    fn serve<'a>(
        &'a self,
        call: &Call<'_>,
        gone: &mut dyn FnMut() -> bool,
    ) -> Result<Handled<'a>, Error> {
        belongs_to_version(call)?;
        let mut handled = Handled::answer(200, String::new());
        if call.command == Command::Status {
            return self.status(call).map(|()| handled);
        }
        // Held until the call is served.
        let Some(_inside) = self.restored.enter(RESTORE_TIMEOUT, &mut *gone) else {
            return Err(Error::new(
                Code::TryAgainLater,
                "the node's networks are still being restored",
                "try again; the agent's log says what takes so long",
            ));
        };
        match call.command {
            Command::Add => return self.serve_add(call, gone),
            Command::Del => {
                let lock = self.lock_container(call, gone)?;
                self.detach(call)?;
                handled.held = Some((None, lock));
                handled.networks = Some(call.network());
            }
            Command::Check => {
                let _lock = self.lock_container(call, gone)?;
                self.check(call)?;
            }
            Command::Gc => self.collect(call)?,
            Command::Status => {}
        }
        Ok(handled)
    }

    fn serve_add<'a>(
        &'a self,
        call: &Call<'_>,
        gone: &mut dyn FnMut() -> bool,
    ) -> Result<Handled<'a>, Error> {
        if !self.ready.load(SeqCst) {
            self.journal()?;
            return Err(not_restored());
        }
        let slot = self.admission.take_slot().map_err(failure::refused)?;
        let lock = self.lock_container(call, gone)?;
        if gone() {
            return Err(failure::refused(Refused::CallerGone));
        }
        self.drain_queue_of(call.container()?)?;
        let (outcome, fresh, networks) = self.attach(call, &slot)?;
        let version = call.conf()?.version;
        Ok(Handled {
            response: Response::json(200, outcome.to_json(version)),
            undelivered: match fresh {
                true => Some(NewAttachments {
                    container: call.container()?.clone(),
                    ifname: call.ifname()?.clone(),
                    pod_uid: call.args.pod_uid.clone(),
                }),
                false => None,
            },
            held: Some((Some(slot), lock)),
            networks: Some(networks),
        })
    }

    fn lock_container(
        &self,
        call: &Call<'_>,
        gone: &mut dyn FnMut() -> bool,
    ) -> Result<ContainerLock<'_>, Error> {
        self.admission
            .lock_container(call.container()?, CONTAINER_LOCK_TIMEOUT, gone)
            .map_err(failure::refused)
    }
}

/// Which version brought a verb; a configuration of an earlier one cannot ask for it.
fn belongs_to_version(call: &Call<'_>) -> Result<(), Error> {
    let since = match call.command {
        Command::Add | Command::Del => return Ok(()),
        Command::Check => Version::V0_4_0,
        Command::Gc | Command::Status => Version::V1_1_0,
    };
    let written = call.conf()?.version;
    if written >= since {
        return Ok(());
    }
    let verb = call.command.path().to_uppercase();
    Err(Error::new(
        Code::IncompatibleVersion,
        format!("{verb} came with version {since}, the configuration has cniVersion {written}"),
        format!("write cniVersion {since} or later, or do not send {verb}"),
    ))
}
