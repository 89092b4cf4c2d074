//! Attachments that plugins make: their DEL and CHECK, with what the journal says of their ADD, or with what the
//! request says.

use crate::failure;
use crate::journal::{AttachmentRecord, PluginsRecord, Record};
use crate::serve::call::Call;
use plexus_api::cni::{Chain, Code, Error, Executable, Outcome, RemainsNetwork, Version};
use plexus_cni::delegate::{self as runner, Cause, Runner};
use plexus_types::IfName;
use serde_json::Map;

/// The variables that a plugin gets for an interface of a record.
pub(crate) fn call_for<'r>(
    record: &'r Record,
    ifname: &'r IfName,
    netns: &'r str,
) -> runner::Call<'r> {
    runner::Call {
        container: &record.container,
        netns,
        ifname,
        args: &record.details.args,
    }
}

/// Runs DEL of every plugin that may have begun, in reverse order.
pub(crate) fn del(
    runner: &Runner,
    (attachment, plugins): (&AttachmentRecord, &PluginsRecord),
    record: &Record,
    netns: &str,
) -> Result<(), Error> {
    let chain = chain_of(plugins);
    let call = call_for(record, &attachment.ifname, netns);
    let steps = runner.steps(&attachment.network, &chain, call, &plugins.runtime);
    combined(steps.del_chain(plugins.begun, plugins.results.last()))
}

/// Runs CHECK of a delegate's plugins with the result of its ADD.
pub(crate) fn check(
    runner: &Runner,
    (attachment, plugins): (&AttachmentRecord, &PluginsRecord),
    record: &Record,
) -> Result<(), Error> {
    let Some(result) = plugins.results.last() else {
        return Ok(());
    };
    let chain = chain_of(plugins);
    let call = call_for(record, &attachment.ifname, &record.netns);
    let steps = runner.steps(&attachment.network, &chain, call, &plugins.runtime);
    steps.check(result).map_err(|error| error.to_cni())
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
    let configured = conf.and_then(|conf| conf.body.networks().get(network.index));
    let Some(name) = &network.name else {
        return Ok(());
    };
    let chain = match configured.map(|configured| configured.backend.executed()) {
        Some(None) => return Ok(()),
        Some(Some(chain)) => chain.clone(),
        None => Chain {
            version: call.remains().version.unwrap_or(Version::V1_1_0),
            plugins: network.plugins.clone(),
            unsupported_key: None,
            executable: Executable::Type,
        },
    };
    let environment = runner::Call {
        container: call.container()?,
        netns: &call.request.netns,
        ifname: network.interface.as_ref().map_or(call.ifname(), Ok)?,
        args: &call.request.args,
    };
    let runtime = conf.map_or_else(Map::new, |conf| conf.runtime.raw.clone());
    let steps = runner.steps(name, &chain, environment, &runtime);
    let mut errors = steps.del_chain(chain.plugins.len(), result);
    if configured.is_none() {
        errors.retain(|error| !is_left_out(error));
    }
    combined(errors)
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

fn chain_of(record: &PluginsRecord) -> Chain {
    Chain {
        version: Version::parse(&record.version).unwrap_or(Version::V1_1_0),
        plugins: record.plugins.clone(),
        unsupported_key: None,
        executable: match record.ipam {
            true => Executable::IpamType,
            false => Executable::Type,
        },
    }
}

fn combined(errors: Vec<runner::Error>) -> Result<(), Error> {
    let Some(first) = errors.first() else {
        return Ok(());
    };
    let code = match first.is_temporary() {
        true => Code::TryAgainLater,
        false => first.to_cni().code,
    };
    let texts = errors.iter().map(|error| error.to_cni().to_string());
    let text = texts.collect::<Vec<_>>().join("; ");
    let next = "repeat the DEL when the plugin can be run";
    Err(Error::new(code, text, next))
}
