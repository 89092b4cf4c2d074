//! `plexus up`: the embedded API, the controller and the agent in one process, for one machine.
//!
//! ```text
//!   signals blocked ─► lock ─► API ─► context ─► controller ─► agent … SIGTERM
//!                                  agent drains ─► controller stops ─► API stops
//! ```

mod detach;
mod host;
mod lock;
mod netns_lock;
mod parts;
mod paths;
mod rotated_log;
mod stored_name;
mod unit;

pub(crate) use lock::Lock;
pub(crate) use netns_lock::NetnsLock;
pub(crate) use parts::{Machine, agent};
pub(crate) use paths::{PathFlags, Paths};
pub(crate) use rotated_log::previous as previous_log;

use crate::context;
use crate::log::{self, LogFlags};
use crate::out::{need_root, print};
use crate::server::{self, LISTEN, ServerOptions};
use crate::value::{self, Cidrs};
use anyhow::{Context, bail};
use clap::Args;
use ipnet::IpNet;
use parts::Controller;
use plexus_core::allowed_subnets::{AllowedSubnets, USUAL_RANGES};
use plexus_kernel::Signals;
use rotated_log::RotatedLog;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The flags of `plexus up`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Go on in the background; return when containers can be attached.
    #[arg(long)]
    detach: bool,
    /// Print a systemd unit that runs this command with these flags, and do nothing else.
    #[arg(long)]
    print_unit: bool,
    /// Name of this host's Node; default: that of the first start, which is the host's name then.
    #[arg(long)]
    node: Option<String>,
    /// Addresses of this host's Node, comma-separated; default: those of the default route's link.
    #[arg(long, value_delimiter = ',', num_args = 0..)]
    node_ip: Vec<IpAddr>,
    /// Where the API is served.
    #[arg(long, default_value = LISTEN)]
    listen: SocketAddr,
    /// Subnets of the network that containers get without naming one, comma-separated; default:
    /// 10.245.0.0/16 and fd00:245::/48.
    #[arg(long, value_delimiter = ',', num_args = 0.., value_parser = value::cidr)]
    own_subnets: Vec<IpNet>,
    /// The ranges that the subnets of `routed` Networks must be in, comma-separated; nothing for none.
    #[arg(long, default_value = USUAL_RANGES, value_parser = value::cidrs)]
    allowed_subnets: Cidrs,
    /// Where the agent's queries are answered besides its socket, such as 127.0.0.1:9091.
    #[arg(long, value_parser = value::loopback)]
    query_address: Option<SocketAddr>,
    /// The plexus-cni to install; default: the one beside this program.
    #[arg(long)]
    shim_source: Option<PathBuf>,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    paths: PathFlags,
    /// Said by --detach to what it starts.
    #[arg(long, hide = true)]
    detached: bool,
}

/// Runs until it is asked to stop.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    if flags.print_unit {
        return print_unit();
    }
    need_root("plexus up changes this host's networks")?;
    let paths = flags.paths.paths()?;
    if flags.detach {
        // It would find the other one's agent ready.
        Lock::check_free(&paths.lock())?;
        let process = detach::start(&paths)?;
        return print_next_steps(&paths, process);
    }
    if flags.detached {
        // A session of its own: the end of the terminal is not ours.
        rustix::process::setsid().context("cannot begin a session")?;
    }
    // Before there is any thread, so that all of them have it so.
    let signals = Signals::block().context("cannot block signals")?;
    match flags.detached {
        true => log::start_to(&flags.log, RotatedLog::of_this_process(paths.log()))?,
        false => log::start(&flags.log)?,
    }
    check_shim(&flags)?;
    let _first = Lock::take(&paths.lock())?;
    let _netns_lock = NetnsLock::take()?;
    let machine = machine(
        &flags,
        stored_name::find(&paths.node(), flags.node.as_deref())?,
    );
    // Once there was an agent they are ours, and in use.
    if !agent(&paths, &machine, None).journal().exists() {
        host::check_free(&machine.subnets)?;
    }
    let server = server::start(ServerOptions {
        dir: paths.server_dir.clone(),
        listen: flags.listen,
        listeners: Vec::new(),
        unix: paths.api_socket.clone(),
        names: vec![machine.node.clone()],
        // Containers are not ours to end: a pod here is a record, and goes when it is deleted.
        pods_wait: false,
    })
    .map_err(|error| at_another_place(error, flags.listen))?;
    match paths.context().put(server.kubeconfig())? {
        Some(said) => tracing::info!("{said}"),
        None => tracing::warn!(
            kubeconfig = %server.kubeconfig().display(),
            "no context is put into a kubeconfig: HOME is not set; name a file with --kubeconfig, or use the server's own"
        ),
    }
    // Before anything is the Node's.
    stored_name::store(&paths.node(), &machine.node)?;
    let controller = Controller::start(&machine, &paths.api_socket)?;
    let options = agent(&paths, &machine, Some(&paths.api_socket));
    let served = plexus_agent::run_until(options, || match signals.wait() {
        Ok(signal) => tracing::info!(signal, "asked to stop"),
        Err(error) => tracing::error!(%error, "cannot wait for signals"),
    });
    controller.stop();
    server.stop();
    served.context("the agent does not start")
}

fn shim(flags: &Flags) -> Option<PathBuf> {
    let arguments = flags.shim_source.clone();
    arguments.or_else(plexus_agent::shim_beside_us)
}

fn check_shim(flags: &Flags) -> anyhow::Result<()> {
    if shim(flags).is_none() {
        bail!("there is no plexus-cni beside this program: name it with --shim-source");
    }
    Ok(())
}

fn machine(flags: &Flags, node: String) -> Machine {
    Machine {
        node,
        node_ips: flags.node_ip.clone(),
        subnets: match flags.own_subnets.is_empty() {
            true => host::usual_subnets(),
            false => flags.own_subnets.clone(),
        },
        allowed_subnets: AllowedSubnets::new(flags.allowed_subnets.0.clone()),
        shim: shim(flags),
        query_address: flags.query_address,
    }
}

/// What to do if the API's port is somebody else's.
fn at_another_place(error: anyhow::Error, listen: SocketAddr) -> anyhow::Error {
    let in_use = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::AddrInUse)
    };
    match error.chain().any(in_use) {
        true => error.context(format!(
            "another program has {listen}: serve the API somewhere else with --listen"
        )),
        false => error,
    }
}

fn print_unit() -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find our own program")?;
    let arguments = std::env::args_os().skip(2);
    let arguments = arguments.filter(|word| word != "--print-unit" && word != "--detach");
    let mut arguments = unit::absolute(arguments, &path_flags())?;
    // systemd sets no HOME: the kubeconfig is that of whoever printed it.
    let is_kubeconfig = |word: &OsString| {
        let word = word.to_string_lossy();
        word == "--kubeconfig" || word.starts_with("--kubeconfig=")
    };
    if !arguments.iter().any(is_kubeconfig)
        && let Some(place) = context::kubeconfig_path(None)?
    {
        arguments.extend(["--kubeconfig".into(), place.into_os_string()]);
    }
    print(&unit::text(&program, &arguments))
}

/// The flags that take a path.
fn path_flags() -> Vec<String> {
    let path = clap::value_parser!(PathBuf).type_id();
    let all = Flags::augment_args(clap::Command::new("up"));
    let paths = all
        .get_arguments()
        .filter(|flag| flag.get_value_parser().type_id() == path);
    let names = paths.filter_map(clap::Arg::get_long);
    names.map(|name| format!("--{name}")).collect()
}

fn print_next_steps(paths: &Paths, process: u32) -> anyhow::Result<()> {
    let log = paths.log();
    let context = paths.context();
    let export = match &context.place {
        Some(_) => String::new(),
        None => format!(
            "  export KUBECONFIG={}\n",
            paths.server_dir.join("kubeconfig").display()
        ),
    };
    let place = match &context.place {
        Some(place) => format!("; context {} in {}", context.name, place.display()),
        None => String::new(),
    };
    print(&format!(
        "plexus runs (process {process}); it logs to {}{place}\n\n\
         {export}  plexus get networks            # or kubectl\n  \
         podman run --network NAME …    # a Network of the namespace default, by its name\n  \
         plexus down                    # removes everything again\n",
        log.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_take_a_path_are_known() {
        let flags = path_flags();
        for flag in ["--root", "--state-dir", "--kubeconfig", "--shim-source"] {
            assert!(flags.iter().any(|known| known == flag), "{flags:?}");
        }
        assert!(!flags.iter().any(|known| known == "--node"), "{flags:?}");
    }
}
