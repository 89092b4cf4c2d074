//! One CNI call, read from the body of a request: environment and configuration, validated as far
//! as its verb needs them.

use crate::journal::Key;
use crate::span;
use plexus_api::cni::{
    Args, Code, Command, Error, NetConf, POD_ANNOTATIONS, Remains, Request, Target, Version,
};
use plexus_types::{ContainerId, IfName};
use serde_json::Value;
use std::borrow::Cow;
use std::path::PathBuf;
use tracing::Span;

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) command: Command,
    /// The variables, as they came.
    pub(crate) request: Request<'a>,
    target: Option<Target>,
    /// CNI_ARGS, read.
    pub(crate) args: Args,
    conf: Result<NetConf, Error>,
}

/// Why a request is not as expected. The reader names a key that it does not know, however long that is.
fn shortened(error: &serde_json::Error) -> String {
    const MOST: usize = 300;
    let why = error.to_string();
    match why.len() {
        0..=MOST => why,
        _ => {
            let start = &why[..why.floor_char_boundary(MOST)];
            format!(
                "{start}… at line {} column {}",
                error.line(),
                error.column()
            )
        }
    }
}

impl<'a> Call<'a> {
    /// Reads a call. `version` and `span` are set as soon as they are known, for the answer and the log in case of error.
    ///
    /// For DEL a configuration that does not validate is no error: the journal knows better.
    pub(crate) fn read(
        command: Command,
        body: &'a [u8],
        version: &mut Version,
        span: &mut Span,
    ) -> Result<Self, Error> {
        let request: Request<'a> = serde_json::from_slice(body).map_err(|error| {
            *span = span::of_call(command, None, None);
            Error::new(
                Code::Decode,
                format!(
                    "the request is not the expected JSON: {}",
                    shortened(&error)
                ),
                "send {\"containerId\":…,\"netns\":…,\"ifname\":…,\"config\":{…}}",
            )
        })?;
        let text = request.config.get().as_bytes();
        let written = |error: Error, version: &mut Version| {
            *version = NetConf::parse_lenient(text).version.unwrap_or(*version);
            error
        };
        let (target, args) = (request.target(command), Args::parse(&request.args));
        let named = target.as_ref().ok().and_then(Option::as_ref);
        *span = span::of_call(command, named, args.as_ref().ok());
        let target = target.map_err(|error| written(error, version))?;
        let deleting = command == Command::Del;
        let args = match args {
            Err(_) if deleting => Args::default(),
            parsed => parsed.map_err(|error| written(error, version))?,
        };
        let conf = NetConf::parse(text, &args);
        match &conf {
            Ok(conf) => *version = conf.version,
            Err(error) if deleting => {
                tracing::debug!(parent: &*span, %error, "the configuration of a DEL does not validate");
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
        let Ok(Some(annotations)) = self.conf().map(|conf| conf.runtime.annotations.as_ref())
        else {
            return Cow::Borrowed(text);
        };
        let trimmed = || {
            let mut value: Value = serde_json::from_str(text).ok()?;
            let runtime = value.get_mut("runtimeConfig")?.as_object_mut()?;
            let annotations = serde_json::to_value(annotations).ok()?;
            runtime.insert(POD_ANNOTATIONS.to_owned(), annotations);
            serde_json::to_string(&value).ok()
        };
        trimmed().map_or(Cow::Borrowed(text), Cow::Owned)
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
    pub(crate) fn key(&self) -> Result<Key, Error> {
        let target = self.target()?;
        Ok((target.container.clone(), target.ifname.clone()))
    }

    /// `namespace/name` of the pod, if the runtime told it.
    pub(crate) fn pod(&self) -> Option<String> {
        span::pod(&self.args)
    }

    /// The network that the runtime named, for the log.
    pub(crate) fn network(&self) -> String {
        let conf = self.conf.as_ref().ok();
        conf.map(|conf| conf.name.to_string()).unwrap_or_default()
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
