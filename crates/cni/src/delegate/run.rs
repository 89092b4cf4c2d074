//! One plugin, one verb: find it, agree on a version, run it, read its answer.

use super::derive::{Extras, derive};
use super::error::excerpt;
use super::exec::{Job, Output};
use super::find::{PluginFile, find};
use super::spool::Spooled;
use super::version::Spoken;
use super::{Call, Cause, Runner};
use plexus_api::cni::{self, Executable, Outcome, Version};
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a plugin is executed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Add,
    Del,
    Check,
    Gc,
    Status,
    Version,
}

impl Verb {
    /// The value of CNI_COMMAND.
    pub(super) fn name(self) -> &'static str {
        self.words().0
    }

    /// The value of CNI_COMMAND, and the names of the effect, before and after.
    fn words(self) -> (&'static str, (&'static str, &'static str)) {
        match self {
            Verb::Add => ("ADD", ("exec.add<", "exec.add>")),
            Verb::Del => ("DEL", ("exec.del<", "exec.del>")),
            Verb::Check => ("CHECK", ("exec.check<", "exec.check>")),
            Verb::Gc => ("GC", ("exec.gc<", "exec.gc>")),
            Verb::Status => ("STATUS", ("exec.status<", "exec.status>")),
            Verb::Version => ("VERSION", ("exec.version<", "exec.version>")),
        }
    }
}

/// What a plugin is run for, and by when it must have ended; no instant: the runner's usual limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errand {
    pub(super) verb: Verb,
    pub(super) until: Option<Instant>,
}

impl From<Verb> for Errand {
    fn from(verb: Verb) -> Self {
        Self { verb, until: None }
    }
}

impl Errand {
    /// How long it may take from now.
    fn limit(self, usual: Duration) -> Duration {
        self.until.map_or(usual, |until| {
            usual.min(until.saturating_duration_since(Instant::now()))
        })
    }
}

/// A plugin that was found, and the version to speak with it.
pub(super) struct Ready {
    plugin_file: PluginFile,
    pub(super) version: Version,
}

impl Runner {
    /// Finds the plugin of a configuration, and asks it for its versions if we do not know them.
    /// `errand` is what it will be run for: it says whose slots the question takes.
    pub(super) fn ready(
        &self,
        executable: Executable,
        plugin: &Map<String, Value>,
        errand: Errand,
        wanted: Version,
    ) -> Result<Ready, Cause> {
        let plugin_file = self.locate(executable, plugin)?;
        let spoken = match self.known.get(&plugin_file) {
            Some(spoken) => spoken,
            None => {
                let spoken = self.ask_versions(&plugin_file, errand)?;
                self.known.put(&plugin_file, spoken.clone());
                spoken
            }
        };
        let Some(version) = spoken.choose(wanted) else {
            let theirs = excerpt(spoken.all.join(", ").as_bytes());
            let ours = Version::ALL.map(Version::as_str).join(", ");
            return Err(Cause::NoCommonVersion { theirs, ours });
        };
        Ok(Ready {
            plugin_file,
            version,
        })
    }

    /// Finds the binary of a configuration, and that of the IPAM plugin that it executes; runs nothing.
    pub(super) fn locate(
        &self,
        executable: Executable,
        plugin: &Map<String, Value>,
    ) -> Result<PluginFile, Cause> {
        let name = executable.name(plugin).ok_or(Cause::NoType(executable))?;
        let plugin_file = find(&self.options, name)?;
        // The plugin executes its IPAM plugin itself, so this is the only chance to refuse it.
        if executable == Executable::Type
            && let Some(ipam) = Executable::IpamType.name(plugin)
            && !ipam.is_empty()
        {
            find(&self.options, ipam)?;
        }
        Ok(plugin_file)
    }

    /// Runs it; the answer's text.
    pub(super) fn run(
        &self,
        ready: &Ready,
        errand: Errand,
        plugin: &Map<String, Value>,
        extras: Extras<'_>,
        call: Option<&Call<'_>>,
    ) -> Result<String, Cause> {
        let config = derive(plugin, extras);
        let output = self.execute(&ready.plugin_file, errand.verb, errand, &config, call)?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(failure(&output, &text));
        }
        Ok(text.into_owned())
    }

    fn ask_versions(&self, plugin_file: &PluginFile, errand: Errand) -> Result<Spoken, Cause> {
        let config = format!(r#"{{"cniVersion":"{}"}}"#, Version::V1_1_0);
        let output = self.execute(plugin_file, Verb::Version, errand, &config, None)?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(Cause::NoVersions(failure(&output, &text).to_string()));
        }
        Spoken::parse(&text).map_err(Cause::NoVersions)
    }

    fn execute(
        &self,
        plugin_file: &PluginFile,
        verb: Verb,
        errand: Errand,
        config: &str,
        call: Option<&Call<'_>>,
    ) -> Result<Output, Cause> {
        let options = &self.options;
        let slots = match errand.verb {
            Verb::Del => &self.deleting,
            Verb::Status => &self.asking,
            _ => &self.usual,
        };
        let waited = errand.limit(options.timeout);
        let Some(_slot) = slots.take(waited) else {
            let at_once = options.at_once;
            return Err(Cause::Busy { at_once, waited });
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let (_spooled, stdin) = Spooled::new(&options.spool, number, config)
            .map_err(|error| Cause::Spool(options.spool.clone(), error))?;
        let job = Job {
            path: &plugin_file.path,
            root: options.root.as_ref(),
            env: self.env(verb, call),
            stdin,
            limit: errand.limit(options.timeout),
            max_output: options.max_output,
            effect: verb.words().1,
        };
        let begun = Instant::now();
        let output = job.run();
        let success = output.as_ref().is_ok_and(|output| output.status.success());
        self.tally
            .count(&plugin_file.path, verb.name(), success, begun.elapsed());
        output
    }

    /// Exactly what the specification names, and PATH: plugins call `iptables` and the like.
    fn env(&self, verb: Verb, call: Option<&Call<'_>>) -> Vec<(&'static str, String)> {
        const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let dirs = self
            .options
            .plugin_dirs
            .iter()
            .map(|dir| dir.to_string_lossy());
        // Our own PATH says nothing about another root.
        let ours = std::env::var("PATH").ok();
        let path = ours.filter(|_| self.options.root.is_none());
        let path = path.unwrap_or_else(|| USUAL_PATH.to_owned());
        let mut env = vec![
            ("CNI_COMMAND", verb.name().to_owned()),
            ("CNI_PATH", dirs.collect::<Vec<_>>().join(":")),
            ("PATH", path),
        ];
        if let Some(call) = call {
            env.push(("CNI_CONTAINERID", call.container.to_string()));
            env.push(("CNI_NETNS", call.netns.to_owned()));
            env.push(("CNI_IFNAME", call.ifname.to_string()));
            env.push(("CNI_ARGS", call.args.to_owned()));
        }
        env
    }
}

/// The result of an ADD. One without a version is in the version that we asked for. An IPAM plugin knows no
/// interfaces: what it says of them is dropped.
pub(super) fn read_outcome(
    executable: Executable,
    text: &str,
    version: Version,
) -> Result<Outcome, Cause> {
    let garbled = |why: String| Cause::Garbled {
        why,
        stdout: excerpt(text.as_bytes()),
    };
    let mut value: Value =
        serde_json::from_str(text).map_err(|error| garbled(error.to_string()))?;
    if let Some(map) = value.as_object_mut() {
        if map
            .get("code")
            .and_then(Value::as_u64)
            .is_some_and(|code| code != 0)
            && let Some(error) = cni::Error::from_json(text)
        {
            return Err(Cause::Told(Box::new(error)));
        }
        map.entry("cniVersion")
            .or_insert_with(|| version.as_str().into());
        if executable == Executable::IpamType {
            map.remove("interfaces");
            let ips = map.get_mut("ips").and_then(Value::as_array_mut);
            for ip in ips.into_iter().flatten().filter_map(Value::as_object_mut) {
                ip.remove("interface");
            }
        }
    }
    Outcome::from_value(&value).map_err(|error| garbled(error.msg))
}

fn failure(output: &Output, text: &str) -> Cause {
    match cni::Error::from_json(text) {
        Some(mut error) => {
            if error.msg.is_empty() {
                error.msg = excerpt(&output.stderr);
            }
            Cause::Told(Box::new(error))
        }
        None => {
            let error_output = if output.stderr.is_empty() {
                &output.stdout
            } else {
                &output.stderr
            };
            Cause::Broke {
                status: output.status.to_string(),
                stderr: excerpt(error_output),
            }
        }
    }
}
