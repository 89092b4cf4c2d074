//! STATUS: could an ADD with this configuration be served? Answered from memory; runtimes ask
//! every few seconds, and a failure makes the node NotReady, so it fails only for a configuration
//! that really cannot be served.

use crate::call::Call;
use crate::verbs::{Agent, not_restored};
use plexus_api::cni::{Code, Error, How};
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// Code 50 with the reason if an ADD would be refused.
    pub(crate) fn status(&self, call: &Call<'_>) -> Result<(), Error> {
        let unavailable = |error: Error| Error {
            code: Code::NotAvailable,
            ..error
        };
        self.journal().map_err(unavailable)?;
        if !self.ready.load(SeqCst) {
            return Err(not_restored());
        }
        for network in call.conf()?.body.networks() {
            match &network.how {
                How::Native(native) => {
                    self.require_features(native, &network.name)
                        .map_err(unavailable)?;
                }
                How::Delegate(chain) => self
                    .runner
                    .status(&network.name, chain)
                    .map_err(|error| unavailable(error.to_cni()))?,
            }
        }
        Ok(())
    }
}
