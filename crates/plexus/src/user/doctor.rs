//! `plexus doctor`.

use super::server::{ServerFlags, now};
use super::{Structured, code, print, structured};
use crate::out::need_root;
use crate::paths;
use clap::Args;
use plexus_cli::client::{ClientError, Need, Session};
use plexus_cli::doctor::{ApiFacts, Machine, Verdict, examine};
use plexus_cli::snapshot::{Snapshot, text};
use plexus_cli::text::Screen;
use std::path::PathBuf;
use std::process::ExitCode;

/// The flags of `plexus doctor`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The agent's socket.
    #[arg(long, env = "PLEXUS_SOCKET", default_value = paths::SOCKET)]
    socket: PathBuf,
    /// The agent's state directory.
    #[arg(long, env = "PLEXUS_STATE_DIR", default_value = paths::STATE)]
    state_dir: PathBuf,
    /// Directory in which runtimes look for CNI plugins.
    #[arg(long, env = "PLEXUS_CNI_BIN_DIR", default_value = paths::CNI_BIN)]
    cni_bin_dir: PathBuf,
    /// Directory in which runtimes look for CNI configurations.
    #[arg(long, env = "PLEXUS_CNI_CONF_DIR", default_value = paths::CNI_CONF)]
    cni_conf_dir: PathBuf,
    /// Directory of the plugins to execute, if not the CNI plugin directory.
    #[arg(long, env = "PLEXUS_DELEGATE_BIN_DIR")]
    delegate_bin_dir: Option<PathBuf>,
    /// Directory of host-local's addresses.
    #[arg(long, default_value = paths::POOLS)]
    pools: PathBuf,
    /// This node's name in the cluster.
    #[arg(long, env = "PLEXUS_NODE")]
    node: Option<String>,
    /// Say only what this kernel can do, a line a feature.
    #[arg(long)]
    kernel: bool,
    /// Ask no API server.
    #[arg(long)]
    no_api: bool,
    /// Show only what is not as it should be.
    #[arg(short, long)]
    quiet: bool,
    /// Fail also for what is only to be looked at.
    #[arg(long)]
    strict: bool,
    /// In another form.
    #[arg(short, long, value_enum)]
    output: Option<Structured>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    if flags.kernel {
        need_root("--kernel tries what only root may do")?;
        print(&features())?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = Machine {
        socket: flags.socket.clone(),
        state_dir: flags.state_dir.clone(),
        cni_bin_dir: flags.cni_bin_dir.clone(),
        delegate_bin_dir: flags.delegate_bin_dir.clone(),
        cni_conf_dir: flags.cni_conf_dir.clone(),
        pools: flags.pools.clone(),
        netns: paths::NETNS.into(),
        labs: paths::LABS.into(),
    };
    let api = match flags.no_api {
        true => None,
        false => fetch_api_facts(flags),
    };
    let report = examine(&machine, api.as_ref());
    let text = || report.render(Screen::stdout(), !flags.quiet);
    print(&structured(flags.output, || report.to_json(), text))?;
    let bad = if flags.strict {
        Verdict::Warn
    } else {
        Verdict::Fail
    };
    Ok(code(report.verdict() < bad))
}

fn features() -> String {
    let features = plexus_kernel::probe();
    let lines = features.iter().map(|(feature, missing)| match missing {
        None => format!("{feature}: yes\n"),
        Some(reason) => format!("{feature}: no: {reason}\n"),
    });
    lines.collect()
}

/// What can be learnt of an API server; none if nobody says where one is.
fn fetch_api_facts(flags: &Flags) -> Option<ApiFacts> {
    let mut facts = ApiFacts {
        node: flags.node.clone(),
        server: String::new(),
        version: Ok(String::new()),
        snapshot: Snapshot::default(),
    };
    let session = match flags.server.chosen() {
        Ok(chosen) => {
            facts.server = format!("the server of {chosen}");
            flags.server.session()
        }
        Err(error) => match error.downcast_ref() {
            Some(ClientError::Nowhere) => return None,
            _ => Err(error),
        },
    };
    match session {
        Ok(session) => ask(&session, &mut facts),
        Err(error) if is_unnamed(&error) => return None,
        Err(error) => facts.version = Err(crate::chain(&error)),
    }
    Some(facts)
}

/// Whether there are contexts, and none of them is current.
fn is_unnamed(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::NoContext { name, .. }) if name.is_empty())
}

fn ask(session: &Session, facts: &mut ApiFacts) {
    facts.server.clone_from(&session.server);
    let needs = [Need::Networks, Need::Nodes, Need::Leases];
    let asked = session.version().and_then(|version| {
        let snapshot = session.snapshot(&needs, None, now())?;
        Ok((text(&version, "/gitVersion").to_owned(), snapshot))
    });
    match asked {
        Ok((version, snapshot)) => {
            facts.version = Ok(version);
            facts.snapshot = snapshot;
        }
        Err(error) => facts.version = Err(crate::chain(&error.into())),
    }
}
