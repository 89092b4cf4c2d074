//! How a long-running verb logs: to standard error, as text or as JSON.

use crate::value;
use clap::Args;
use tracing_subscriber::fmt::MakeWriter;

/// The flags about it.
#[derive(Debug, Args)]
pub(crate) struct LogFlags {
    /// Log as JSON, one object a line.
    #[arg(long, env = "PLEXUS_LOG_JSON")]
    log_json: bool,
    /// What to log: off, error, warn, info, debug, trace, or per room such as
    /// info,plexus_agent=debug.
    #[arg(long, env = "PLEXUS_LOG", default_value = "info", value_parser = value::log)]
    log: String,
}

/// The client of the API says every request that fails while the server is away; our own lines say
/// it once a minute. A filter that names it wins.
const QUIET: &str = "kube_client=off,kube_runtime=off";

/// Logs to standard error from now on.
pub(crate) fn start(flags: &LogFlags) -> anyhow::Result<()> {
    start_to(flags, std::io::stderr)
}

/// Logs from now on, to this writer.
pub(crate) fn start_to<W>(flags: &LogFlags, writer: W) -> anyhow::Result<()>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_new(format!("{QUIET},{}", flags.log))
        .map_err(|error| anyhow::anyhow!("--log {:?} is not a filter: {error}", flags.log))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    if flags.log_json {
        log.json().init();
    } else {
        log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .init();
    }
    Ok(())
}
