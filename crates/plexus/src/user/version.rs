//! `plexus version`.

use super::server::ServerFlags;
use super::{Structured, print, structured};
use crate::paths;
use clap::Args;
use plexus_cli::snapshot::text;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// The flags of `plexus version`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Ask no server.
    #[arg(long)]
    client: bool,
    /// The agent's socket.
    #[arg(long, env = "PLEXUS_SOCKET", default_value = paths::SOCKET)]
    socket: PathBuf,
    /// In another form.
    #[arg(short, long, value_enum)]
    output: Option<Structured>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let own = env!("CARGO_PKG_VERSION");
    let mut lines = vec![format!("plexus {own}")];
    let mut value = json!({"plexus": own});
    if !flags.client {
        let (server, agent) = (server(flags), agent(flags));
        lines.push(format!("API server: {server}"));
        lines.push(format!("agent: {agent}"));
        value = json!({"plexus": own, "server": server, "agent": agent});
    }
    let text = || lines.join("\n") + "\n";
    print(&structured(flags.output, || value, text))?;
    Ok(ExitCode::SUCCESS)
}

fn server(flags: &Flags) -> String {
    let asked = flags.server.session().and_then(|session| {
        let version = session.version()?;
        Ok(format!(
            "{} at {}",
            text(&version, "/gitVersion"),
            session.server
        ))
    });
    asked.unwrap_or_else(|error| format!("none ({error})"))
}

fn agent(flags: &Flags) -> String {
    match plexus_cli::agent::get(&flags.socket, "/readyz") {
        Ok((200, _)) => format!("ready on {}", flags.socket.display()),
        Ok((_, why)) => why.lines().next().unwrap_or("not ready").to_owned(),
        Err(error) => format!("none on {} ({error})", flags.socket.display()),
    }
}
