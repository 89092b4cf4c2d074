//! A chain of plugins, verb by verb. The caller journals between the steps of an ADD.

use super::derive::Extras;
use super::error::role;
use super::run::{Errand, Ready, Verb, read_outcome};
use super::{Call, Cause, Error, Runner};
use plexus_api::cni::{Chain, Executable, Outcome, ValidAttachment, Version};
use plexus_types::NetworkName;
use serde_json::{Map, Value};
use std::time::Instant;

/// One network's plugins, for one interface of one container.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    runner: &'a Runner,
    network: &'a NetworkName,
    chain: &'a Chain,
    call: Call<'a>,
    runtime: &'a Map<String, Value>,
}

impl Runner {
    /// The steps of a chain; `runtime` is the runtimeConfig as it came.
    pub fn steps<'a>(
        &'a self,
        network: &'a NetworkName,
        chain: &'a Chain,
        call: Call<'a>,
        runtime: &'a Map<String, Value>,
    ) -> Steps<'a> {
        Steps {
            runner: self,
            network,
            chain,
            call,
            runtime,
        }
    }

    /// Whether every plugin of the chain is there, may be run and speaks a version that we speak:
    /// asked before anything is begun, so that nothing needs to be undone.
    pub fn can_run(&self, network: &NetworkName, chain: &Chain) -> Result<(), Error> {
        for plugin in &chain.plugins {
            self.ready(chain.executable, plugin, Verb::Add.into(), chain.version)
                .map_err(|cause| failed(network, chain, plugin, Verb::Add, cause))?;
        }
        Ok(())
    }

    /// Asks the plugins that know STATUS (1.1.0) whether they can serve ADDs; the first that cannot
    /// decides. A plugin that cannot be found or asked for its versions could not be run either.
    ///
    /// Ends by `until`, or soon after. A plugin that is busy or slow has decided nothing: what is
    /// given back says which did not answer, and why.
    pub fn status(
        &self,
        network: &NetworkName,
        chain: &Chain,
        until: Instant,
    ) -> Result<Vec<String>, Error> {
        let verb = Verb::Status;
        let errand = Errand {
            verb,
            until: Some(until),
        };
        let mut silent = Vec::new();
        for plugin in &chain.plugins {
            self.locate(chain.executable, plugin)
                .map_err(|cause| failed(network, chain, plugin, verb, cause))?;
            if Instant::now() >= until {
                let (role, name) = (role(chain.executable), name(chain.executable, plugin));
                silent.push(format!(
                    "network {network}: no time was left to ask {role} {name}"
                ));
                continue;
            }
            match self.without_container(network, chain, plugin, errand, None) {
                Err(error) if is_slow(&error) => silent.push(error.to_cni().to_string()),
                answered => answered?,
            }
        }
        Ok(silent)
    }

    /// Tells the plugins that know GC (1.1.0) what must stay. Tries all, reports every error.
    pub fn gc(
        &self,
        network: &NetworkName,
        chain: &Chain,
        valid: &[ValidAttachment],
    ) -> Vec<Error> {
        let run =
            |plugin| self.without_container(network, chain, plugin, Verb::Gc.into(), Some(valid));
        chain
            .plugins
            .iter()
            .filter_map(|plugin| run(plugin).err())
            .collect()
    }

    fn without_container(
        &self,
        network: &NetworkName,
        chain: &Chain,
        plugin: &Map<String, Value>,
        errand: Errand,
        valid: Option<&[ValidAttachment]>,
    ) -> Result<(), Error> {
        let run = || {
            let ready = self.ready(chain.executable, plugin, errand, chain.version)?;
            if ready.version < Version::V1_1_0 {
                return Ok(());
            }
            let extras = Extras {
                network,
                version: ready.version,
                prev: None,
                runtime: None,
                valid,
            };
            self.run(&ready, errand, plugin, extras, None).map(drop)
        };
        run().map_err(|cause| failed(network, chain, plugin, errand.verb, cause))
    }
}

impl Steps<'_> {
    /// Runs ADD of one plugin; `prev` is the result of the step before. Its result is the
    /// container's result so far.
    ///
    /// After an error call [`del_chain`](Self::del_chain) with `step + 1`: the plugin that failed
    /// may have done half of its work.
    pub fn add_step(&self, step: usize, prev: Option<&Outcome>) -> Result<Outcome, Error> {
        let plugin = self.get(step, Verb::Add)?;
        self.with_plugin(plugin, Verb::Add, |ready| {
            let text = self.run(ready, plugin, Verb::Add, prev)?;
            read_outcome(self.chain.executable, &text, ready.version)
        })
    }

    /// Runs DEL of the first `count` plugins, the last of them first, each with `result`: the last
    /// result that the ADD reached. Tries all, reports every error.
    pub fn del_chain(&self, count: usize, result: Option<&Outcome>) -> Vec<Error> {
        let plugins = self.chain.plugins.iter().take(count).rev();
        plugins
            .filter_map(|plugin| self.del(plugin, result).err())
            .collect()
    }

    /// Runs CHECK of every plugin that knows it (0.4.0), with the result of the ADD; the first
    /// that finds something decides.
    pub fn check(&self, result: &Outcome) -> Result<(), Error> {
        for plugin in &self.chain.plugins {
            self.with_plugin(plugin, Verb::Check, |ready| {
                if ready.version < Version::V0_4_0 {
                    return Ok(());
                }
                self.run(ready, plugin, Verb::Check, Some(result)).map(drop)
            })?;
        }
        Ok(())
    }

    fn del(&self, plugin: &Map<String, Value>, result: Option<&Outcome>) -> Result<(), Error> {
        self.with_plugin(plugin, Verb::Del, |ready| {
            // Before 0.4.0 a DEL had no prevResult.
            let result = result.filter(|_| ready.version >= Version::V0_4_0);
            self.run(ready, plugin, Verb::Del, result).map(drop)
        })
    }

    fn get(&self, step: usize, verb: Verb) -> Result<&Map<String, Value>, Error> {
        self.chain.plugins.get(step).ok_or_else(|| Error {
            network: self.network.to_string(),
            plugin: format!("#{step}"),
            executable: self.chain.executable,
            verb: verb.name(),
            cause: Cause::NoType(self.chain.executable),
        })
    }

    /// Does something with a plugin that is ready for a verb.
    fn with_plugin<T>(
        &self,
        plugin: &Map<String, Value>,
        verb: Verb,
        run: impl FnOnce(&Ready) -> Result<T, Cause>,
    ) -> Result<T, Error> {
        let chain = self.chain;
        let ready = self
            .runner
            .ready(chain.executable, plugin, verb.into(), chain.version);
        ready
            .and_then(|ready| run(&ready))
            .map_err(|cause| failed(self.network, chain, plugin, verb, cause))
    }

    fn run(
        &self,
        ready: &Ready,
        plugin: &Map<String, Value>,
        verb: Verb,
        prev: Option<&Outcome>,
    ) -> Result<String, Cause> {
        let extras = Extras {
            network: self.network,
            version: ready.version,
            prev,
            runtime: Some(self.runtime),
            valid: None,
        };
        self.runner
            .run(ready, verb.into(), plugin, extras, Some(&self.call))
    }
}

/// Whether a plugin did not get so far as to answer. Asking again may give an answer.
fn is_slow(error: &Error) -> bool {
    error.is_temporary() || matches!(error.cause, Cause::TimedOut { .. } | Cause::Watch(_))
}

fn name(executable: Executable, plugin: &Map<String, Value>) -> String {
    let name = executable.name(plugin).unwrap_or("?");
    name.chars().take(100).collect()
}

fn failed(
    network: &NetworkName,
    chain: &Chain,
    plugin: &Map<String, Value>,
    verb: Verb,
    cause: Cause,
) -> Error {
    Error {
        network: network.to_string(),
        plugin: name(chain.executable, plugin),
        executable: chain.executable,
        verb: verb.name(),
        cause,
    }
}
