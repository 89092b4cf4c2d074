//! What commands have in common towards whoever runs them: how they print, and that some are root's.

use anyhow::{Context, bail};
use std::io::{ErrorKind, Write};

/// Writes to standard output at once. A reader that has seen enough is no failure: what a command was
/// asked to do, it does to the end.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_to_reader(text).map(drop)
}

/// The same, for a command that goes on only as long as somebody reads: whether somebody does.
pub(crate) fn print_to_reader(text: &str) -> anyhow::Result<bool> {
    print_bytes(text.as_bytes())
}

/// The same, for what need not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes);
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => {
            written.context("cannot write to standard output")?;
            Ok(true)
        }
    }
}

/// Fails for anybody but root; `why` says what is done that only root may do.
pub(crate) fn need_root(why: &str) -> anyhow::Result<()> {
    let user = rustix::process::geteuid();
    if !user.is_root() {
        bail!("{why} (this is user {}): run it as root", user.as_raw());
    }
    Ok(())
}
