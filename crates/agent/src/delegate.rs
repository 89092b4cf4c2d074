//! Attachments that plugins make: each step is journaled before it runs and after it has run, so
//! that whoever comes next knows which plugins may have begun and with what.

use crate::attach::Adding;
use crate::call::Call;
use crate::failure;
use crate::journal::{DelegateRecord, Record};
use crate::segment::Made;
use plexus_api::cni::{Chain, Code, Error, How, Outcome, RemainsNetwork, Version};
use plexus_cni::delegate::{self as runner, Cause, Runner};
use plexus_core::resolve::{Delegate, Resolved};
use serde_json::{Map, Value};

/// What the journal keeps of a delegate before it begins.
pub(crate) fn record_of(delegate: &Delegate, runtime: &Map<String, Value>) -> DelegateRecord {
    DelegateRecord {
        index: delegate.index,
        network: delegate.network.clone(),
        ifname: delegate.ifname.clone(),
        version: delegate.chain.version.to_string(),
        plugins: delegate.chain.plugins.clone(),
        runtime: runtime.clone(),
        begun: 1,
        results: Vec::new(),
    }
}

/// Runs DEL of every plugin that may have begun, in reverse order.
pub(crate) fn del(
    runner: &Runner,
    delegate: &DelegateRecord,
    record: &Record,
    netns: &str,
) -> Result<(), Error> {
    let chain = chain_of(delegate);
    let call = runner::Call {
        container: &record.container,
        netns,
        ifname: &delegate.ifname,
        args: &record.body.args,
    };
    let steps = runner.steps(&delegate.network, &chain, call, &delegate.runtime);
    together(steps.del_chain(delegate.begun, delegate.results.last()))
}

/// Runs CHECK of a delegate's plugins with the result of its ADD.
pub(crate) fn check(
    runner: &Runner,
    delegate: &DelegateRecord,
    record: &Record,
) -> Result<(), Error> {
    let chain = chain_of(delegate);
    let call = runner::Call {
        container: &record.container,
        netns: &record.netns,
        ifname: &delegate.ifname,
        args: &record.body.args,
    };
    let steps = runner.steps(&delegate.network, &chain, call, &delegate.runtime);
    match delegate.results.last() {
        Some(result) => steps.check(result).map_err(|error| error.to_cni()),
        None => Ok(()),
    }
}

/// DEL of one network with nothing but the request: the result that the runtime kept stands in
/// for the journal.
///
/// A configuration that validates says which networks were never executed. Of one that does not,
/// every plugin that can be run is run: one that had nothing to do finds nothing. Those that
/// cannot be run are left out, or the DEL would never succeed.
pub(crate) fn del_from_request(
    runner: &Runner,
    call: &Call<'_>,
    network: &RemainsNetwork,
    result: Option<&Outcome>,
) -> Result<(), Error> {
    let conf = call.conf().ok();
    let how = conf.and_then(|conf| conf.body.networks().get(network.index));
    let (Some(name), None | Some(How::Delegate(_))) = (&network.name, how.map(|n| &n.how)) else {
        return Ok(());
    };
    let version = call.remains().version.unwrap_or(Version::V1_1_0);
    let chain = Chain {
        version,
        plugins: network.plugins.clone(),
        because: None,
    };
    let environment = runner::Call {
        container: call.container()?,
        netns: &call.request.netns,
        ifname: network.interface.as_ref().map_or(call.ifname(), Ok)?,
        args: &call.request.args,
    };
    let runtime = conf
        .map(|conf| conf.runtime.raw.clone())
        .unwrap_or_default();
    let steps = runner.steps(name, &chain, environment, &runtime);
    let mut errors = steps.del_chain(steps.len(), result);
    if how.is_none() {
        errors.retain(|error| !is_left_out(error));
    }
    together(errors)
}

fn is_left_out(error: &runner::Error) -> bool {
    let never = matches!(
        error.cause,
        Cause::NotFound { .. } | Cause::NotAllowed { .. } | Cause::Ourselves(_)
    );
    if never {
        tracing::warn!(
            error = failure::chain(error),
            "a plugin was left out of a DEL without journal and valid configuration"
        );
    }
    never
}

impl Adding<'_> {
    /// Runs ADD of a delegate's plugins. The first step's journal entry has been written.
    pub(crate) fn run_delegate(&mut self, index: usize) -> Result<(), Error> {
        let Some(Resolved::Delegate(delegate)) = self.items.get(index).map(|i| &i.resolved) else {
            return Ok(());
        };
        let delegate = delegate.clone();
        if let Some(because) = &delegate.chain.because {
            tracing::warn!(network = %delegate.network, key = because, "a key is not understood: the plugin is executed, and handed its keys as they are");
        }
        let runtime = self.runtime_of(index).clone();
        for step in 0..delegate.chain.plugins.len() {
            if step > 0 {
                self.journal_step(|record| record.begun = step + 1)?;
            }
            let outcome = self.add_step(&delegate, &runtime, step)?;
            self.journal_step(|record| record.results.push(outcome))?;
        }
        let results = self
            .record
            .body
            .delegates
            .last()
            .map(|record| record.results.as_slice());
        let outcome = results
            .and_then(<[Outcome]>::last)
            .cloned()
            .unwrap_or_default();
        self.made.push(Made { outcome });
        Ok(())
    }

    fn add_step(
        &self,
        delegate: &Delegate,
        runtime: &Map<String, Value>,
        step: usize,
    ) -> Result<Outcome, Error> {
        let call = runner::Call {
            container: &self.record.container,
            netns: &self.record.netns,
            ifname: &delegate.ifname,
            args: &self.record.body.args,
        };
        let steps = self
            .agent
            .runner
            .steps(&delegate.network, &delegate.chain, call, runtime);
        let previous = self
            .record
            .body
            .delegates
            .last()
            .and_then(|record| record.results.last());
        steps
            .add_step(step, previous)
            .map_err(|error| error.to_cni())
    }

    fn journal_step(&mut self, change: impl FnOnce(&mut DelegateRecord)) -> Result<(), Error> {
        if let Some(record) = self.record.body.delegates.last_mut() {
            change(record);
        }
        self.journal_update()
    }
}

fn chain_of(delegate: &DelegateRecord) -> Chain {
    Chain {
        version: Version::parse(&delegate.version).unwrap_or(Version::V1_1_0),
        plugins: delegate.plugins.clone(),
        because: None,
    }
}

fn together(errors: Vec<runner::Error>) -> Result<(), Error> {
    let Some(first) = errors.first() else {
        return Ok(());
    };
    let texts: Vec<String> = errors
        .iter()
        .map(|error| error.to_cni().to_string())
        .collect();
    let code = if first.is_temporary() {
        Code::TryAgainLater
    } else {
        first.to_cni().code
    };
    Err(Error::new(
        code,
        texts.join("; "),
        "repeat the DEL when the plugin can be run",
    ))
}
