//! `plexus create network`.

use super::server::ServerFlags;
use super::{DryRun, Structured, print, structured};
use crate::value;
use anyhow::anyhow;
use clap::{Args, Subcommand};
use plexus_api::cni::{Provider, ProviderKind};
use plexus_cli::client::object_name;
use plexus_cli::create::{NetworkFlags, network};
use std::process::ExitCode;

/// What is made.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// A network.
    #[command(visible_alias = "net")]
    Network(Box<Flags>),
}

/// The flags of `plexus create network`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Its name, as [NAMESPACE/]NAME.
    name: String,
    /// A subnet: [KEY=]CIDR[,gateway=ADDRESS][,exclude=PREFIX]…; may be repeated.
    #[arg(long, value_name = "SUBNET")]
    subnet: Vec<String>,
    #[arg(long, help = provider_help())]
    provider: Option<String>,
    /// Prefix length of nodes' IPv4 blocks.
    #[arg(long, value_parser = value::number::<1, 32>)]
    block_size: Option<u16>,
    /// Prefix length of nodes' IPv6 blocks.
    #[arg(long, value_parser = value::number::<1, 128>)]
    block_size_v6: Option<u16>,
    /// MTU; default: from the underlay.
    #[arg(long)]
    mtu: Option<u32>,
    /// A route of every pod: DESTINATION[=GATEWAY]; may be repeated.
    #[arg(long, value_name = "ROUTE")]
    route: Vec<String>,
    /// Traffic to elsewhere leaves under the node's address.
    #[arg(long)]
    snat: bool,
    /// Pods may send from addresses that are not their own.
    #[arg(long)]
    no_source_check: bool,
    /// Whose pods may use it: All, Same, or labels of namespaces such as team=a.
    #[arg(long = "allowed-namespaces", value_name = "NAMESPACES")]
    allowed: Option<String>,
    /// Its identity; default: the object's UID.
    #[arg(long)]
    uuid: Option<String>,
    /// Options of the provider, as JSON.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Make nothing: `client` asks no server, `server` lets it check everything. `-o yaml` shows the object.
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        require_equals = true,
        default_value_t,
        hide_default_value = true
    )]
    dry_run: DryRun,
    /// The object in that form.
    #[arg(short, long, value_enum)]
    output: Option<Structured>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn run(what: &What) -> anyhow::Result<ExitCode> {
    let What::Network(flags) = what;
    let session = match flags.dry_run {
        DryRun::Client => None,
        DryRun::None | DryRun::Server => Some(flags.server.session()?),
    };
    let (namespace, name) = match &session {
        Some(session) => flags.server.namespace_and_name(session, &flags.name)?,
        None => {
            let (namespace, name) = flags.server.written_place(&flags.name)?;
            (namespace.unwrap_or("default").to_owned(), name.to_owned())
        }
    };
    let size = |length: Option<u16>| length.and_then(|length| u8::try_from(length).ok());
    let object = network(&NetworkFlags {
        name,
        namespace: namespace.clone(),
        provider: flags.provider.clone(),
        subnets: flags.subnet.clone(),
        block_size: (size(flags.block_size), size(flags.block_size_v6)),
        mtu: flags.mtu,
        routes: flags.route.clone(),
        snat: flags.snat,
        no_source_check: flags.no_source_check,
        allowed: flags.allowed.clone(),
        uuid: flags.uuid.clone(),
        config: flags.config.clone(),
    })
    .map_err(|problems| anyhow!("this is no network: {problems}"))?;
    let made = match &session {
        Some(session) => session.create(&object, &namespace, flags.dry_run == DryRun::Server)?,
        None => object,
    };
    let text = || format!("{} created{}\n", object_name(&made), flags.dry_run.suffix());
    print(&structured(flags.output, || made.clone(), text))?;
    Ok(ExitCode::SUCCESS)
}

fn provider_help() -> String {
    format!(
        "{}, delegate, or an external one with /; default: {}",
        ProviderKind::names(|_| true).join(", "),
        Provider::DEFAULT
    )
}
