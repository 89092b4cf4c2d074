//! STATUS: could an ADD with this configuration be served? Runtimes ask every few seconds, and a
//! failure makes the node NotReady, so it fails only for a configuration that really cannot be
//! served.
//!
//! Native networks are answered from memory, and from the journal only if it could not be written
//! last time. Delegates that know STATUS are executed, apart from those of ADDs and DELs and within
//! [`LIMIT`] for all of them; one that does not answer in time is logged and counts as able.

use crate::call::Call;
use crate::verbs::{Agent, not_restored};
use plexus_api::cni::{Code, Error, How};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The shim gives up after 5 s, and a plugin that is killed takes some time to end.
const LIMIT: Duration = Duration::from_secs(2);

impl Agent {
    /// Code 50 with the reason if an ADD would be refused.
    pub(crate) fn status(&self, call: &Call<'_>) -> Result<(), Error> {
        let unavailable = |error: Error| Error {
            code: Code::NotAvailable,
            ..error
        };
        let until = Instant::now() + LIMIT;
        let journal = self.journal().map_err(unavailable)?;
        if let Some(error) = journal.trouble() {
            return Err(unavailable(error));
        }
        if !self.ready.load(SeqCst) {
            return Err(not_restored());
        }
        for network in call.conf()?.body.networks() {
            match &network.how {
                How::Native(native) => {
                    self.require_features(native, &network.name)
                        .map_err(unavailable)?;
                }
                How::Delegate(chain) => {
                    let asked = self.runner.status(&network.name, chain, until);
                    for silent in asked.map_err(|error| unavailable(error.to_cni()))? {
                        tracing::warn!(silent, "a plugin did not answer STATUS in time");
                    }
                }
            }
        }
        Ok(())
    }
}
