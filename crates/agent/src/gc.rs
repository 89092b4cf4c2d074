//! GC: removes what the runtime no longer knows. Only with a list: no list is not an empty list.

use crate::call::Call;
use crate::failure;
use crate::verbs::Agent;
use plexus_api::cni::{Body, Code, Error, How, ValidAttachment};

impl Agent {
    /// Removes the network's attachments that are not in the list. A valid container id covers all
    /// of its interfaces in standalone mode, where the runtime knows only the first.
    pub(crate) fn collect(&self, call: &Call<'_>) -> Result<(), Error> {
        let conf = call.conf()?;
        let Some(valid) = &conf.valid_attachments else {
            tracing::info!(network = %conf.name, "GC without a list of valid attachments removes nothing");
            return Ok(());
        };
        let standalone = matches!(conf.body, Body::All { .. });
        let stored = self
            .journal()?
            .of_network(&conf.name)
            .map_err(|e| failure::journal(&e))?;
        let mut problems = Vec::new();
        for stored in stored {
            let record = &stored.record;
            let covered = valid.iter().any(|one| {
                one.container == record.container && (standalone || one.ifname == record.ifname)
            });
            if covered {
                continue;
            }
            let removed = self.second_turn(&record.container).and_then(|_turn| {
                tracing::info!(container = %record.container, ifname = %record.ifname, "GC removes an attachment");
                self.detach_record(&record.container, &record.ifname)
            });
            problems.extend(removed.err().map(|error| error.to_string()));
        }
        self.collect_delegates(&conf.body, valid, &mut problems);
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::Failed,
            problems.join("; "),
            "repeat the GC",
        ))
    }

    fn collect_delegates(
        &self,
        body: &Body,
        valid: &[ValidAttachment],
        problems: &mut Vec<String>,
    ) {
        for network in body.networks() {
            if let How::Delegate(chain) = &network.how {
                let errors = self.runner.gc(&network.name, chain, valid);
                problems.extend(errors.iter().map(|error| error.to_cni().to_string()));
            }
        }
    }
}
