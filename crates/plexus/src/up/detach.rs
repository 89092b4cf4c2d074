//! `plexus up --detach`: the same in the background, in a session of its own; returns when it serves.

use super::paths::Paths;
use super::rotated_log;
use anyhow::{Context, bail};
use plexus_cli::agent::get;
use rustix::net::sockopt::socket_peercred;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to serve.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Of its log, when it has ended.
const LAST_LINES: usize = 8;

/// Starts ourselves with the flags that were given, but for this one.
pub(crate) fn start(paths: &Paths) -> anyhow::Result<u32> {
    crate::server::make_parent(&paths.log())?;
    let log = rotated_log::open(&paths.log())?;
    let begins = log.metadata().map_or(0, |file| file.len());
    let program = std::env::current_exe().context("cannot find our own program")?;
    let arguments = std::env::args_os()
        .skip(1)
        .filter(|word| word != "--detach");
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start in the background")?;
    wait(&mut child, paths, begins)?;
    Ok(child.id())
}

/// Until pods and containers can be attached.
fn wait(child: &mut Child, paths: &Paths, begins: u64) -> anyhow::Result<()> {
    let log = paths.log();
    let until = Instant::now() + START_TIMEOUT;
    let first = paths.cni_conf_dir.join("00-plexus.conflist");
    let mut last = String::from("its agent does not answer yet");
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            bail!("it has ended ({status}):\n{}", tail(&log, begins));
        }
        let is_ours = is_served_by(&paths.socket, child.id());
        match get(&paths.socket, "/readyz") {
            Ok(_) if !is_ours => "another agent has its socket".clone_into(&mut last),
            Ok((200, _)) if first.exists() => return Ok(()),
            Ok((200, _)) => {}
            Ok((_, text)) => text
                .lines()
                .next()
                .unwrap_or_default()
                .clone_into(&mut last),
            Err(_) => {}
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    bail!(
        "it does not serve after {} s ({last}), and goes on trying; its log is {}",
        START_TIMEOUT.as_secs(),
        log.display()
    )
}

/// Whether it is this process that listens there: an agent of Kubernetes has the same place.
fn is_served_by(socket: &Path, process: u32) -> bool {
    let peer = UnixStream::connect(socket).and_then(|stream| Ok(socket_peercred(&stream)?));
    peer.is_ok_and(|peer| peer.pid.as_raw_nonzero().get().cast_unsigned() == process)
}

/// What it said last.
fn tail(log: &Path, begins: u64) -> String {
    let all = std::fs::read(log).unwrap_or_default();
    // A log that was full meanwhile begins anew.
    let begins = usize::try_from(begins).unwrap_or_default();
    let begins = if begins > all.len() { 0 } else { begins };
    let new = String::from_utf8_lossy(all.get(begins..).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = new.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..);
    last.unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn who_listens_is_asked_of_the_kernel() {
        let socket = std::env::temp_dir().join(format!("px-detach-{}.sock", std::process::id()));
        let me = std::process::id();
        assert!(!is_served_by(&socket, me));
        let listens = UnixListener::bind(&socket).unwrap();
        assert!(is_served_by(&socket, me));
        assert!(!is_served_by(&socket, me + 1));
        drop(listens);
        assert!(!is_served_by(&socket, me));
        std::fs::remove_file(socket).unwrap();
    }
}
