//! DELs that the shim queued while no agent answered. Drained as files appear, and those of a
//! container before its next ADD: a DEL must never meet what came after it.

use crate::call::Call;
use crate::failure;
use crate::verbs::Agent;
use plexus_api::cni::{Code, Command, Error, Version};
use plexus_cni::queue;
use plexus_types::ContainerId;
use std::path::Path;

impl Agent {
    /// All of them, oldest first. What fails stays and is tried again.
    pub(crate) fn drain_queue(&self) {
        let directory = queue::dir(&self.options.socket);
        if !directory.exists() {
            return;
        }
        if let Err(error) = queue::sweep(&directory) {
            tracing::warn!(
                error = queue::describe(&error),
                "cannot remove what dead shims left"
            );
        }
        let names = match queue::list(&directory) {
            Ok(names) => names,
            Err(error) => {
                tracing::error!(
                    error = queue::describe(&error),
                    "cannot read the queue of DELs"
                );
                return;
            }
        };
        for name in names {
            if let Err(error) = self.drain_one(&directory, &name) {
                tracing::error!(name, %error, "a queued DEL failed, will be tried again");
            }
        }
    }

    /// Those of one container, whose turn is the caller's. If one fails, the caller must not go on:
    /// it would be done later, to what the caller makes.
    pub(crate) fn drain_queue_of(&self, container: &ContainerId) -> Result<(), Error> {
        let directory = queue::dir(&self.options.socket);
        if !directory.exists() {
            return Ok(());
        }
        for name in queue::list(&directory).map_err(|error| unusable(&error))? {
            if queue::may_concern(&name, container.as_str()) {
                let body = queue::read(&directory, &name).map_err(|error| unusable(&error))?;
                let call = read(&body)?;
                if call.container()? == container {
                    self.run_queued(&directory, &name, &call)?;
                }
            }
        }
        Ok(())
    }

    /// Reads it to know whose it is, and again when that container's turn has come: an ADD may
    /// have drained it meanwhile.
    fn drain_one(&self, directory: &Path, name: &str) -> Result<(), Error> {
        let body = queue::read(directory, name).map_err(|error| unusable(&error))?;
        let call = read(&body)?;
        let _turn = self.second_turn(call.container()?)?;
        if !directory.join(name).exists() {
            return Ok(());
        }
        self.run_queued(directory, name, &call)
    }

    fn run_queued(&self, directory: &Path, name: &str, call: &Call<'_>) -> Result<(), Error> {
        self.detach(call).map_err(|error| Error {
            code: Code::TryAgainLater,
            ..failure::at("a DEL that was queued earlier", error)
        })?;
        tracing::info!(name, "a queued DEL is done");
        queue::remove(directory, name).map_err(|error| unusable(&error))
    }
}

fn read(body: &str) -> Result<Call<'_>, Error> {
    let mut version = Version::V1_1_0;
    Call::read(Command::Del, body.as_bytes(), &mut version)
}

fn unusable(error: &queue::Error) -> Error {
    Error::new(
        Code::TryAgainLater,
        format!(
            "the queue of DELs cannot be used: {}",
            queue::describe(error)
        ),
        "check the directory beside the agent's socket",
    )
}
