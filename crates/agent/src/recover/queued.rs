//! DELs that the shim queued while no agent answered. Drained as files appear, and those of a
//! container before its next ADD: a DEL must never meet what came after it.

use crate::agent::Agent;
use crate::background::backoff::Backoff;
use crate::failure;
use crate::serve::call::Call;
use plexus_api::cni::{Code, Command, Error, Version};
use plexus_cni::queue;
use plexus_kernel::events::{DirectoryWatch, Watched};
use plexus_types::ContainerId;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::Span;

/// When a DEL is looked at again whose container somebody works on.
const BUSY_INTERVAL: Duration = Duration::from_millis(500);

impl Agent {
    /// Has changes of the queue told, also if it is not there yet: whether they are.
    pub(crate) fn watch_queue(&self, watch: &DirectoryWatch) -> bool {
        let directory = queue::dir(&self.options.socket);
        let add = || match watch.add(&directory, Watched::Renamed) {
            Ok(()) => Some(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(false),
        };
        let parent = self.options.socket.parent();
        let add_parent = || parent.is_some_and(|p| watch.add(p, Watched::New).is_ok());
        // Once more: it may have been made in between.
        add().unwrap_or_else(|| add_parent() && add().unwrap_or(true))
    }

    /// Removes what shims left that died while they wrote.
    pub(crate) fn sweep_queue(&self) {
        if let Err(error) = queue::sweep(&queue::dir(&self.options.socket)) {
            let error = queue::describe(&error);
            tracing::warn!(error, "cannot remove what dead shims left");
        }
    }

    /// All of them, oldest first. What fails stays and is tried again, less and less often; those behind
    /// it do not wait for it. Gives when that is, if any stays.
    pub(crate) fn drain_queue(
        &self,
        backoff: &mut Backoff<String>,
        mut step: impl FnMut(String),
    ) -> Result<Option<Instant>, String> {
        let directory = queue::dir(&self.options.socket);
        let names = queue::list(&directory)
            .map_err(|e| format!("cannot read the queue of DELs: {}", queue::describe(&e)))?;
        backoff.keep_only(|name| names.binary_search(name).is_ok());
        let mut busy = None;
        for name in names {
            if !backoff.is_due(&name, Instant::now()) {
                continue;
            }
            step(format!("queued DEL {name}"));
            match self.drain_one(&directory, &name) {
                Ok(true) => {}
                Ok(false) => busy = Some(Instant::now() + BUSY_INTERVAL),
                Err(error) => {
                    tracing::error!(name, %error, "a queued DEL failed, will be tried again");
                    backoff.put_off(&name, Instant::now());
                }
            }
        }
        Ok(backoff.next_due().into_iter().chain(busy).min())
    }

    /// Those of one container, whose lock the caller holds. If one fails, the caller must not go on:
    /// it would be done later, to what the caller makes.
    pub(crate) fn drain_queue_of(&self, container: &ContainerId) -> Result<(), Error> {
        let directory = queue::dir(&self.options.socket);
        if !directory.exists() {
            return Ok(());
        }
        let mut names = queue::list(&directory).map_err(|error| unusable(&error))?;
        names.retain(|name| queue::may_concern(name, container.as_str()));
        for name in names {
            let Some(body) = body(&directory, &name)? else {
                continue;
            };
            match read(&body) {
                Ok(queued) if queued.0.container()? == container => {
                    self.run_queued(&directory, &name, &queued)?;
                }
                Ok(_) => {}
                Err(why) => set_aside(&directory, &name, &why.to_string())?,
            }
        }
        Ok(())
    }

    /// Reads it to know whose it is, and again when it holds that container's lock: an ADD may
    /// have drained it meanwhile. False if somebody is at work on the container: the next look is soon.
    fn drain_one(&self, directory: &Path, name: &str) -> Result<bool, Error> {
        let Some(body) = body(directory, name)? else {
            return Ok(true);
        };
        let queued = match read(&body) {
            Ok(queued) => queued,
            Err(why) => return set_aside(directory, name, &why.to_string()).map(|()| true),
        };
        let Some(_lock) = self.try_lock_container(queued.0.container()?)? else {
            return Ok(false);
        };
        if !directory.join(name).exists() {
            return Ok(true);
        }
        self.run_queued(directory, name, &queued).map(|()| true)
    }

    fn run_queued(
        &self,
        directory: &Path,
        name: &str,
        (call, span): &(Call<'_>, Span),
    ) -> Result<(), Error> {
        let _entered = span.enter();
        self.detach(call).map_err(|error| Error {
            code: Code::TryAgainLater,
            ..failure::at("a DEL that was queued earlier", error)
        })?;
        tracing::info!(name, "a queued DEL is done");
        queue::remove(directory, name).map_err(|error| unusable(&error))
    }
}

/// None if it is not in the queue any more: done by somebody else, or put aside here, since it will never
/// be readable.
fn body(directory: &Path, name: &str) -> Result<Option<String>, Error> {
    match queue::read(directory, name) {
        Ok(body) => Ok(Some(body)),
        Err(queue::Error::Read(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.is_final() => {
            set_aside(directory, name, &queue::describe(&error)).map(|()| None)
        }
        Err(error) => Err(unusable(&error)),
    }
}

fn set_aside(directory: &Path, name: &str, why: &str) -> Result<(), Error> {
    tracing::error!(name, why, "a queued DEL cannot be read: it is put aside");
    queue::set_aside(directory, name).map_err(|error| unusable(&error))
}

/// With its container and interface, without which it is of no use.
fn read(body: &str) -> Result<(Call<'_>, Span), Error> {
    let (mut version, mut span) = (Version::V1_1_0, Span::none());
    let call = Call::read(Command::Del, body.as_bytes(), &mut version, &mut span)?;
    call.key()?;
    Ok((call, span))
}

fn unusable(error: &queue::Error) -> Error {
    let error = queue::describe(error);
    Error::new(
        Code::TryAgainLater,
        format!("the queue of DELs cannot be used: {error}"),
        "check the directory beside the agent's socket",
    )
}
