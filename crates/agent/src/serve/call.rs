//! One CNI call, read from the body of a request: environment and configuration, validated as far
//! as its verb needs them.

use plexus_api::cni::{Args, Code, Command, Error, NetConf, Remains, Request, Target, Version};
use plexus_types::{ContainerId, IfName};
use serde_json::Value;
use std::borrow::Cow;
use std::path::PathBuf;

/// The capability by which a runtime sends a pod's annotations.
const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// A call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The verb.
    pub(crate) command: Command,
    /// The variables, as they came.
    pub(crate) request: Request<'a>,
    target: Option<Target>,
    /// CNI_ARGS, read.
    pub(crate) args: Args,
    conf: Result<NetConf, Error>,
}

/// Whom a line of the log is about; empty where it is not known.
#[derive(Debug)]
pub(crate) struct About {
    /// `namespace/name`.
    pub(crate) pod: String,
    /// Its id, shortened.
    pub(crate) container: String,
    /// The one that the call is for.
    pub(crate) interface: String,
    /// In order, separated by commas.
    pub(crate) networks: String,
}

impl<'a> Call<'a> {
    /// Reads a call. `version` is set as soon as it is known, for the answer in case of error.
    ///
    /// For DEL a configuration that does not validate is no error: the journal knows better.
    pub(crate) fn read(
        command: Command,
        body: &'a [u8],
        version: &mut Version,
    ) -> Result<Self, Error> {
        let request: Request<'a> = serde_json::from_slice(body).map_err(|error| {
            Error::new(
                Code::Decode,
                format!("the request is not the expected JSON: {error}"),
                "send {\"containerId\":…,\"netns\":…,\"ifname\":…,\"config\":{…}}",
            )
        })?;
        let text = request.config.get().as_bytes();
        let written = |error: Error, version: &mut Version| {
            *version = NetConf::parse_lenient(text).version.unwrap_or(*version);
            error
        };
        let target = request
            .target(command)
            .map_err(|error| written(error, version))?;
        let deleting = command == Command::Del;
        let args = match Args::parse(&request.args) {
            Err(_) if deleting => Args::default(),
            parsed => parsed.map_err(|error| written(error, version))?,
        };
        let conf = NetConf::parse(text, &args);
        match &conf {
            Ok(conf) => *version = conf.version,
            Err(error) if deleting => {
                tracing::debug!(%error, "the configuration of a DEL does not validate");
                let _ = written(error.clone(), version);
            }
            Err(error) => return Err(written(error.clone(), version)),
        }
        Ok(Self {
            command,
            request,
            target,
            args,
            conf,
        })
    }

    /// The configuration; for DEL it may be unusable.
    pub(crate) fn conf(&self) -> Result<&NetConf, Error> {
        self.conf.as_ref().map_err(Clone::clone)
    }

    /// The configuration as the journal keeps it: of the pod's annotations only those that matter,
    /// since runtimes send all of them.
    pub(crate) fn config_to_keep(&self) -> Cow<'_, str> {
        let text = self.request.config.get();
        let Ok(Some(kept)) = self.conf().map(|conf| conf.runtime.annotations.as_ref()) else {
            return Cow::Borrowed(text);
        };
        let trimmed = serde_json::from_str::<Value>(text)
            .ok()
            .and_then(|mut value| {
                let runtime = value.get_mut("runtimeConfig")?.as_object_mut()?;
                runtime.insert(POD_ANNOTATIONS.to_owned(), serde_json::to_value(kept).ok()?);
                serde_json::to_string(&value).ok()
            });
        trimmed.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// What can be used of a configuration that may not validate.
    pub(crate) fn remains(&self) -> Remains {
        NetConf::parse_lenient(self.request.config.get().as_bytes())
    }

    /// CNI_CONTAINERID.
    pub(crate) fn container(&self) -> Result<&ContainerId, Error> {
        Ok(&self.target()?.container)
    }

    /// CNI_IFNAME.
    pub(crate) fn ifname(&self) -> Result<&IfName, Error> {
        Ok(&self.target()?.ifname)
    }

    /// CNI_NETNS.
    pub(crate) fn netns(&self) -> Option<&PathBuf> {
        self.target.as_ref()?.netns.as_ref()
    }

    fn target(&self) -> Result<&Target, Error> {
        let missing = || {
            let text = "CNI_CONTAINERID and CNI_IFNAME are not set";
            Error::new(Code::InvalidEnvironment, text, "the runtime must set them")
        };
        self.target.as_ref().ok_or_else(missing)
    }

    /// What identifies its record.
    pub(crate) fn key(&self) -> Result<(ContainerId, IfName), Error> {
        Ok((self.container()?.clone(), self.ifname()?.clone()))
    }

    /// `namespace/name` of the pod, if the runtime told it.
    pub(crate) fn pod(&self) -> Option<String> {
        let (namespace, name) = (
            self.args.pod_namespace.as_ref()?,
            self.args.pod_name.as_ref()?,
        );
        Some(format!("{namespace}/{name}"))
    }

    /// Whom a line of the log is about; the network is the one that the runtime named.
    pub(crate) fn about(&self) -> About {
        let target = self.target.as_ref();
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        About {
            pod: self.pod().unwrap_or_default(),
            container: text(target.map(|target| target.container.short())),
            interface: text(target.map(|target| target.ifname.as_str())),
            networks: text(self.conf.as_ref().ok().map(|conf| conf.name.as_str())),
        }
    }

    /// Whom an error is about: the pod if it is known, else the container. Not both: a failure that lasts is
    /// met by one sandbox after the other, and must read the same to be counted as one.
    pub(crate) fn context(&self) -> String {
        match (self.pod(), &self.target) {
            (Some(pod), _) => format!("pod {pod}"),
            (None, Some(target)) => format!("container {}", target.container.short()),
            (None, None) => "container ?".to_owned(),
        }
    }
}
